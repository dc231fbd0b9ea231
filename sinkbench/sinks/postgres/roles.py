"""Which node of a local PostgreSQL is the primary. A file names it while it is not the first node, or roles change, and
a node starts as primary only if named (`postgres/run`). It is written between the old primary's death and the
promotion, so that the next controller can finish after a kill."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from sinkbench.errors import StackError
from sinkbench.sinks.postgres.session import connect
from sinkbench.stack import Endpoint, Say
from sinkbench.stack.processes import Supervisor
from sinkbench.stack.registry import NOWHERE, Place, Roles
from sinkbench.stack.security import ACCOUNT
from sinkbench.topology import Node

# In the data directory, while the first node is not the primary, or roles change.
PRIMARY_FILE = "postgres-primary"
CONNECT_SECONDS = 3
# A killed process is gone at once, except for what the kernel must write.
GONE_SECONDS = 10.0
# It must answer, apply what it has received, and write a first checkpoint.
PROMOTE_SECONDS = 60
# A copy of all data, if the killed node cannot be rewound.
STREAM_SECONDS = 180.0
FOLLOWS = "SELECT sender_port FROM pg_stat_wal_receiver WHERE pg_is_in_recovery() AND status = 'streaming'"
IN_SYNC = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'potential')"
RECEIVED = "SELECT coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn"
# The line of a database in PgBouncer's configuration.
_SERVER = re.compile(r"^(\S+ = )host=\S+ port=\S+", re.MULTILINE)


def postgres_endpoint(place: Place) -> Endpoint:
    nodes = {node.name: place.address(node, "postgres_port") for node in place.layout.of("postgres")}
    found = {
        name: replace(_endpoint(place, *at), options={} if name == place.primary("postgres") else {"role": "replica"})
        for name, at in nodes.items()
    }
    reachable = [each for each in nodes.values() if each[1] != NOWHERE]
    if len(found) == 1 or not reachable:
        return found[place.primary("postgres")]
    any_of = _endpoint(place, *(",".join(str(each[part]) for each in reachable) for part in (0, 1)))
    return replace(any_of, address=f"{any_of.address} target_session_attrs=read-write", nodes=found)


def pgbouncer_endpoint(place: Place) -> Endpoint:
    return _endpoint(place, *place.address(place.layout.of("pgbouncer")[0], "pgbouncer_port"), "pgbouncer")


def _endpoint(place: Place, host: str, port: int | str, database: str = ACCOUNT) -> Endpoint:
    """The connection string, and one for a person without the password; `host` and `port` may be lists with commas."""
    shown = f"host={host} user={ACCOUNT} port={port} dbname={ACCOUNT}"
    if place.security is None:
        return Endpoint(f"host={host} user={ACCOUNT} password={ACCOUNT} port={port} dbname={database}", shown=shown)
    shown = f"{shown} sslmode=verify-full"
    secret = {"password": place.security.passwords["postgres"], "sslrootcert": str(place.security.ca)}
    return Endpoint(make_conninfo(shown, dbname=database, **secret), shown=shown)


def postgres_shared(place: Place) -> Mapping[str, str]:
    """PostgreSQL's variables for all services, with its account; see `postgres/run`."""
    return {
        # For connectors that search all nodes for the primary.
        "POSTGRES_HOSTS": ",".join(place.hosts("postgres_port")),
        "POSTGRES_STANDBYS": ",".join(place.layout.postgres.nodes[1:]),
        "POSTGRES_SYNCHRONOUS": "on" if place.layout.postgres.synchronous else "",
        "POSTGRES_DB": ACCOUNT,
        "POSTGRES_USER": ACCOUNT,
        "POSTGRES_PASSWORD": ACCOUNT,
        "POSTGRES_PRIMARY_FILE": f"{place.data}/{PRIMARY_FILE}",
    }


def postgres_own(place: Place, node: Node) -> Mapping[str, str]:
    if node.number == 1:
        return {"POSTGRES_NODE": node.name}
    host, port = place.address(place.layout.of("postgres")[0], "postgres_port")
    return {"POSTGRES_NODE": node.name, "POSTGRES_PRIMARY_HOST": host, "POSTGRES_PRIMARY_PORT": str(port)}


def postgres_needs(place: Place, node: Node) -> frozenset[str]:
    """A replica copies the primary. PgBouncer would start without PostgreSQL, but answer with errors."""
    primary = place.primary("postgres")
    return frozenset() if node.name == primary else frozenset({primary})


def farthest(received: dict[str, int]) -> str:
    """The replica that has received most; the first of equal ones. Raises StackError if there is none."""
    if not received:
        raise StackError("no replica of PostgreSQL answers that could be promoted; `sinkbench status` shows them")
    return max(received, key=lambda name: received[name])


def waiting_for(names: Sequence[str]) -> str:
    """The setting by which commits wait for one of these nodes."""
    listed = "FIRST 1 ({})".format(", ".join(f'"{name}"' for name in names)) if names else ""
    return f"synchronous_standby_names = '{listed}'"


def pointed_at(config: str, host: str, port: int) -> str:
    return _SERVER.sub(rf"\g<1>host={host} port={port}", config)


class PostgresRoles(Roles):
    def __init__(self, current: Callable[[], Place], processes: Supervisor) -> None:
        self._place = current
        self._processes = processes
        place = current()
        self._file = Path(place.data) / PRIMARY_FILE
        self._nodes = {node.name: place.address(node, "postgres_port") for node in place.layout.of("postgres")}
        self._synchronous = place.layout.postgres.synchronous
        self._first = next(iter(self._nodes))

    @property
    def primary(self) -> str:
        """As in `Roles`. Raises StackError if the file names none of the nodes."""
        return self._named() or self._first

    def promote(self) -> tuple[str, int]:
        """As in `Roles`, of the replica that has received most."""
        old = self.primary
        if not self._runs(old):
            raise StackError(f"{old} does not run; `sinkbench up` starts it")
        received = {name: self._ask(name, RECEIVED) for name in self._nodes if name != old and self._runs(name)}
        farthest(received)
        self._processes.kill(old)
        self._wait(lambda: not self._runs(old), GONE_SECONDS, f"{old} was killed, and is still there")
        # What was in transit has arrived by now.
        new = farthest({name: self._ask(name, RECEIVED) for name in received})
        self._name(new)
        self._promote(new)
        self._tell_pooler(new)
        for name in set(received) - {new}:
            self._processes.stop(name)
            self._processes.start(name)
        return self._nodes[new]

    def demote(self) -> None:
        """Starts stopped nodes as replicas, and makes commits wait for replicas again if so configured."""
        primary = self.primary
        for name in self._nodes:
            if not self._runs(name):
                self._processes.start(name)
        others = [name for name in self._nodes if name != primary]
        all_follow = f"not all replicas stream from {primary}"
        self._wait(lambda: all(self._follows(name, primary) for name in others), STREAM_SECONDS, all_follow)
        if self._synchronous:
            # A file of the server's own, which its next start removes: then its role determines the setting.
            file = Path(self._ask(primary, "SHOW data_directory")) / "waits.conf"
            setting, to = sql.Literal(waiting_for(others)), sql.Literal(str(file))
            self._ask(primary, sql.SQL("COPY (SELECT {}) TO {}").format(setting, to).as_string(None))
            self._ask(primary, "SELECT pg_reload_conf()")
            in_sync = f"not all replicas of {primary} are in sync"
            self._wait(lambda: self._ask(primary, IN_SYNC) == len(others), STREAM_SECONDS, in_sync)

    def finish(self) -> None:
        """Finishes an interrupted promotion, and stops replicas of another primary; does nothing without the file."""
        if (primary := self._named()) is None:
            return
        if not self._runs(primary):
            self._processes.start(primary)
        answers = f"{primary} does not answer"
        self._wait(lambda: self._asked(primary, "SELECT true") is not None, PROMOTE_SECONDS, answers)
        if self._ask(primary, "SELECT pg_is_in_recovery()"):
            self._promote(primary)
        for name in self._nodes:
            if name != primary and self._runs(name) and not self._follows(name, primary):
                self._processes.stop(name)
        self._tell_pooler(primary)

    def restore(self, say: Say = lambda line: None) -> None:
        """As in `Roles`; does nothing without the file. Raises StackError with a fix."""
        if self._named() is None:
            return
        say("changing the roles of postgres back")
        try:
            self.finish()
            self.demote()
            if (primary := self.primary) != self._first:
                # A server that shuts down sends its replicas all that it has; then neither has more than the other.
                self._processes.stop(primary)
                self._name(self._first)
                self._promote(self._first)
                self._tell_pooler(self._first)
                for name in self._nodes:
                    if name not in (primary, self._first):
                        self._processes.stop(name)
                self.demote()
            self._file.unlink()
        except (StackError, OSError) as error:
            raise StackError(
                f"the roles of postgres could not be changed back: {error}; run `sinkbench up` again, or, without its"
                f" data: `sinkbench down`, and remove {self._file.parent}"
            ) from None

    def _named(self) -> str | None:
        try:
            name = self._file.read_text(encoding="utf-8").partition(" ")[0]
        except FileNotFoundError:
            return None
        if name not in self._nodes:
            data = self._file.parent
            raise StackError(f"{self._file}: names no node of this topology; run `sinkbench down`, and remove {data}")
        return name

    def _name(self, name: str) -> None:
        new = self._file.with_suffix(".new")
        new.write_text("{} {} {}\n".format(name, *self._nodes[name]), encoding="utf-8")
        # The services' account reads it.
        new.chmod(0o644)
        new.replace(self._file)

    def _ask(self, name: str, question: str) -> Any:
        return _asked_at(name, postgres_endpoint(self._place()).nodes[name].address, question)

    def _asked(self, name: str, question: str) -> Any:
        """The answer of a node that may be starting; None if there is none yet. Raises StackError if it has died."""
        try:
            return self._ask(name, question)
        except StackError:
            if not self._runs(name):
                raise StackError(f"{name} died while starting; `sinkbench logs {name}` says why") from None
            return None

    def _follows(self, name: str, primary: str) -> bool:
        return bool(self._asked(name, FOLLOWS) == self._nodes[primary][1])

    def _promote(self, name: str) -> None:
        if not self._ask(name, f"SELECT pg_promote(true, {PROMOTE_SECONDS})"):
            raise StackError(f"{name} was not promoted in {PROMOTE_SECONDS} s; `sinkbench logs {name}` says why")

    def _tell_pooler(self, primary: str) -> None:
        """Makes PgBouncer connect to that node. If it does not run, it learns the node when it starts."""
        if self._runs("pgbouncer"):
            path = self._file.parent / "pgbouncer" / "pgbouncer.ini"
            path.write_text(pointed_at(path.read_text(encoding="utf-8"), *self._nodes[primary]), encoding="utf-8")
            for command in ("RELOAD", "RECONNECT"):
                _asked_at("pgbouncer", pgbouncer_endpoint(self._place()).address, command)

    def _runs(self, name: str) -> bool:
        return name in self._processes.pids()

    @staticmethod
    def _wait(until: Callable[[], bool], seconds: float, otherwise: str) -> None:
        deadline = time.monotonic() + seconds
        while not until():
            if time.monotonic() > deadline:
                raise StackError(f"{otherwise} ({seconds:.0f} s)")
            time.sleep(0.1)


def _asked_at(name: str, address: str, question: str) -> Any:
    """The first value of the answer; None if there is none. Raises StackError if it fails."""
    try:
        # PgBouncer's console has no prepared statements.
        with connect(address, prepare_threshold=None, connect_timeout=CONNECT_SECONDS) as connection:
            cursor = connection.execute(question.encode())
            row = cursor.fetchone() if cursor.description else None
    except psycopg.Error as error:
        raise StackError(f"{name}: {str(error).strip().splitlines()[0]}") from None
    return None if row is None else row[0]
