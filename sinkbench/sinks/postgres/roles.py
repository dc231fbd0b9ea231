"""Which node of a local PostgreSQL is the primary. A file in the data names it while it is not the first node or roles
change, and a node starts as primary only if named (`postgres/run`). The file is written between the old primary's death
and the promotion, so that the next controller can finish after a kill.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from sinkbench.errors import StackError
from sinkbench.sinks.postgres.places import PRIMARY_FILE, pgbouncer_endpoint, postgres_endpoint
from sinkbench.stack import Say
from sinkbench.stack.spec import OwnNodes, Roles

CONNECT_SECONDS = 3
# A killed process is gone at once, except for what the kernel must write.
GONE_SECONDS = 10.0
# It must answer, apply what it has received, and write a first checkpoint.
PROMOTE_SECONDS = 60
# A copy of all data, if the killed node cannot be rewound.
STREAM_SECONDS = 180.0
POLL_SECONDS = 0.1
FOLLOWS = """
    SELECT sender_port FROM pg_stat_wal_receiver WHERE pg_is_in_recovery() AND status = 'streaming'
"""
IN_SYNC = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'potential')"
RECEIVED = "SELECT coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn"
# The line of a database in PgBouncer's configuration.
_SERVER = re.compile(r"^(\S+ = )host=\S+ port=\S+", re.MULTILINE)


def farthest(received: dict[str, int]) -> str:
    """The replica that has received most; the first of equal ones. Raises StackError if there is none."""
    if not received:
        raise StackError("no replica of PostgreSQL answers that could be promoted; `sinkbench status` shows them")
    return max(received, key=lambda name: received[name])


def waiting_for(names: Sequence[str]) -> str:
    """The setting by which commits wait for one of these nodes; without any they do not wait."""
    listed = "FIRST 1 ({})".format(", ".join(f'"{name}"' for name in names)) if names else ""
    return f"synchronous_standby_names = '{listed}'"


def pointed_at(config: str, host: str, port: int) -> str:
    return _SERVER.sub(rf"\g<1>host={host} port={port}", config)


class PostgresRoles(Roles):
    def __init__(self, own: OwnNodes) -> None:
        self._place = own.place
        self._data = own.data
        self._processes = own.processes
        place = own.place()
        self._nodes = {node.name: place.address(node, "postgres_port") for node in place.layout.of("postgres")}
        self._synchronous = place.layout.postgres.synchronous
        self._first = next(iter(self._nodes))

    @property
    def primary(self) -> str:
        """The node that is, or is about to be, the primary. Raises StackError if the file names none of the nodes."""
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
            self._restart(name)
        return self._nodes[new]

    def demote(self) -> None:
        """Starts stopped nodes as replicas, and makes commits wait for replicas again if so configured."""
        primary = self.primary
        for name in self._nodes:
            if not self._runs(name):
                self._processes.start(name)
        self._wait_until_in_sync(primary)

    def finish(self) -> None:
        """Finishes an interrupted promotion, and stops replicas of another primary; does nothing without the file."""
        if (primary := self._named()) is None:
            return
        if not self._runs(primary):
            self._processes.start(primary)
        self._wait(lambda: self._answers(primary), PROMOTE_SECONDS, f"{primary} does not answer")
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
            (self._data / PRIMARY_FILE).unlink()
        except (StackError, psycopg.Error, OSError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise StackError(
                f"the roles of postgres could not be changed back: {reason}; run `sinkbench up` again, or, without its"
                f" data: `sinkbench down`, and remove {self._data}"
            ) from None

    # --- the file -------------------------------------------------------------------------------------------------

    def _named(self) -> str | None:
        path = self._data / PRIMARY_FILE
        try:
            name = path.read_text(encoding="utf-8").partition(" ")[0]
        except FileNotFoundError:
            return None
        if name not in self._nodes:
            raise StackError(f"{path}: names no node of this topology; run `sinkbench down`, and remove {self._data}")
        return name

    def _name(self, name: str) -> None:
        path = self._data / PRIMARY_FILE
        new = path.with_suffix(".new")
        new.write_text("{} {} {}\n".format(name, *self._nodes[name]), encoding="utf-8")
        # The services' account reads it.
        new.chmod(0o644)
        new.replace(path)

    # --- the nodes ------------------------------------------------------------------------------------------------

    def _connect(self, name: str) -> psycopg.Connection[Any]:
        address = postgres_endpoint(self._place()).nodes[name].address
        return psycopg.connect(address, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="sinkbench")

    def _ask(self, name: str, question: str) -> Any:
        try:
            with self._connect(name) as connection:
                row = connection.execute(question.encode()).fetchone()
        except psycopg.Error as error:
            raise StackError(f"{name}: {str(error).strip().splitlines()[0]}") from None
        return None if row is None else row[0]

    def _answers(self, name: str) -> bool:
        try:
            return bool(self._ask(name, "SELECT true"))
        except StackError:
            if not self._runs(name):
                raise StackError(f"{name} died while starting; `sinkbench logs {name}` says why") from None
            return False

    def _follows(self, name: str, primary: str) -> bool:
        try:
            return bool(self._ask(name, FOLLOWS) == self._nodes[primary][1])
        except StackError:
            return False

    def _promote(self, name: str) -> None:
        if not self._ask(name, f"SELECT pg_promote(true, {PROMOTE_SECONDS})"):
            raise StackError(f"{name} was not promoted in {PROMOTE_SECONDS} s; `sinkbench logs {name}` says why")

    def _restart(self, name: str) -> None:
        self._processes.stop(name)
        self._processes.start(name)

    def _wait_until_in_sync(self, primary: str) -> None:
        others = [name for name in self._nodes if name != primary]

        def all_follow() -> bool:
            for name in others:
                if not self._runs(name):
                    raise StackError(f"{name} died while starting; `sinkbench logs {name}` says why")
            return all(self._follows(name, primary) for name in others)

        self._wait(all_follow, STREAM_SECONDS, f"not all replicas stream from {primary}")
        if not self._synchronous:
            return
        # A file of the server's own, which its next start removes: then its role determines the setting.
        with self._connect(primary) as connection:
            folder = connection.execute("SHOW data_directory").fetchall()[0][0]
            connection.execute(
                sql.SQL("COPY (SELECT {}) TO {}").format(
                    sql.Literal(waiting_for(others)), sql.Literal(str(Path(folder) / "waits.conf"))
                )
            )
            connection.execute("SELECT pg_reload_conf()")
        in_sync = f"not all replicas of {primary} are in sync"
        self._wait(lambda: self._ask(primary, IN_SYNC) == len(others), STREAM_SECONDS, in_sync)

    def _tell_pooler(self, primary: str) -> None:
        """Makes PgBouncer connect to that node. If it does not run, it learns the node when it starts."""
        if not self._runs("pgbouncer"):
            return
        path = self._data / "pgbouncer" / "pgbouncer.ini"
        path.write_text(pointed_at(path.read_text(encoding="utf-8"), *self._nodes[primary]), encoding="utf-8")
        address = pgbouncer_endpoint(self._place()).address
        try:
            # The console has no prepared statements.
            with psycopg.connect(
                address, autocommit=True, prepare_threshold=None, connect_timeout=CONNECT_SECONDS
            ) as console:
                console.execute("RELOAD")
                console.execute("RECONNECT")
        except psycopg.Error as error:
            raise StackError(f"pgbouncer: {str(error).strip().splitlines()[0]}") from None

    def _runs(self, name: str) -> bool:
        return any(each.name == name and each.running for each in self._processes.programs())

    @staticmethod
    def _wait(until: Callable[[], bool], seconds: float, otherwise: str) -> None:
        deadline = time.monotonic() + seconds
        while not until():
            if time.monotonic() > deadline:
                raise StackError(f"{otherwise} ({seconds:.0f} s)")
            time.sleep(POLL_SECONDS)
