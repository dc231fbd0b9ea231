"""Connections of sinkbench to PostgreSQL, and what the server, PgBouncer and standbys are set to."""

import re
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from sinkbench.analysis.replication import ReplicationState, Standby, database_promise, database_replication
from sinkbench.analysis.settable import Given, Settable, one_of, whole
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.jdbcurl import POOLER, given, jdbc_url
from sinkbench.sinks.postgres.poolmetrics import PoolMetrics
from sinkbench.sinks.values import SinkSettings

Connection = psycopg.Connection[Any]
Console = psycopg.Connection[DictRow]

# The table that postgres/schema.sql creates; a trial's table is this one, renamed.
SCHEMA_TABLE = "tides"
# The controller's name, so that its connections do not count as a connector's.
APPLICATION = "sinkbench"
# What the server promises for a committed row, and what else its speed depends on.
UNSAFE_IF_OFF = ("fsync", "synchronous_commit", "full_page_writes")
DURABILITY = (*UNSAFE_IF_OFF, "wal_level", "synchronous_standby_names", "wal_writer_delay")
TUNING = ("wal_compression", "max_wal_size", "shared_buffers")
# As a server reads them on its command line: `-c NAME=VALUE`, `-cNAME=VALUE` or `--NAME=VALUE`.
_OPTION = re.compile(r"(?:^|\s)(?:-c\s*|--)([\w.-]+)=(\S*)")
_SWITCH = {**dict.fromkeys(("true", "yes", "1"), "on"), **dict.fromkeys(("false", "no", "0"), "off")}
_POOLER: Settable = Settable(
    {
        "pool_mode": one_of("session", "transaction", "statement"),
        "default_pool_size": whole(1, 10_000),
        "reserve_pool_size": whole(0, 10_000),
        "min_pool_size": whole(0, 10_000),
        "max_client_conn": whole(1, 1_000_000),
        "max_prepared_statements": whole(0, 100_000),
        "query_wait_timeout": whole(0, 86_400),
    },
    lasts=False,
)
SETTABLE: Mapping[str, Settable] = {
    "postgres": Settable({"synchronous_commit": one_of("off", "local", "remote_write", "on", "remote_apply")}),
    "pgbouncer": _POOLER,
}
# Any user may set a PostgreSQL parameter whose name has a dot.
_BEFORE = "sinkbench.before_"
WRITTEN = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn()::text END"
UNAPPLIED = "SELECT pid FROM pg_stat_replication WHERE replay_lsn < %s::pg_lsn"
_FILE = files("sinkbench.sinks.postgres").joinpath("statements.sql").read_text(encoding="utf-8")
_STATEMENTS = dict(re.findall(r"^-- name: (\w+)\n(.+?)(?=^-- name: |\Z)", _FILE, re.MULTILINE | re.DOTALL))
# A standby reports at once when it has applied all that it has.
APPLY_SECONDS = 2.0


def connect(dsn: str, **more: Any) -> Connection:
    """Opens a connection in autocommit mode. Raises psycopg.Error."""
    return psycopg.connect(dsn, autocommit=True, application_name=APPLICATION, **more)


def read_sql(name: str) -> sql.SQL:
    """The statement of that name in `statements.sql`."""
    return sql.SQL(_STATEMENTS[name])


def set_session(connection: Connection) -> None:
    """Sets a connection of sinkbench's own, until it ends or runs `RESET ALL`."""
    connection.execute(read_sql("session"))


def is_unlogged(connection: Connection, table: str) -> bool:
    return bool(connection.execute(read_sql("unlogged"), [table, table]).fetchall())


def settings_of(connection: Connection, table: str, config: Mapping[str, str]) -> SinkSettings:
    """The settings of the server and of a table for sessions of a connector with this configuration."""
    found: dict[str, str] = {}
    with suppress(psycopg.Error):
        # An empty list of names is a setting, too.
        asked = session_settings(connection, [*DURABILITY, *TUNING], config)
        found = {name: value or "none" for name, value in asked.items()}
    durability, tuning = ({name: found.get(name) for name in names} for names in (DURABILITY, TUNING))
    return SinkSettings(durability, tuning, database_promise(durability, unlogged=is_unlogged(connection, table)))


def session_settings(connection: Connection, wanted: Sequence[str], config: Mapping[str, str]) -> dict[str, str]:
    """The server's settings as they are in sessions of a connector with this configuration."""
    found = {str(name): str(value) for name, value in connection.execute(read_sql("settings"), [[*wanted]])}
    # What was set for the database since this connection began applies to connectors' sessions.
    found |= {name: value for name, value in of_database(connection).items() if name in wanted}
    return found if (commit := own_commit(config)) is None else {**found, "synchronous_commit": commit}


def own_commit(config: Mapping[str, str]) -> str | None:
    """The `synchronous_commit` that a connector's sessions set by their URL's `options=-c NAME=VALUE`. None if they set
    none, or use the stack's PgBouncer, which does not pass it on: 1.18 refuses clients that have any."""
    url = jdbc_url(config)
    if url is None or POOLER in given(config)[0]:
        return None
    # The last one counts, as for the server.
    found = {name.replace("-", "_").lower(): value for name, value in _OPTION.findall(url.options.get("options", ""))}
    commit = found.get("synchronous_commit")
    return None if commit is None else _SWITCH.get(commit.lower(), commit.lower())


def of_database(connection: Connection) -> dict[str, str]:
    return dict(str(line).split("=", 1) for (line,) in connection.execute(read_sql("of_database")))


def set_to(console: Console | PoolMetrics) -> dict[str, str]:
    """What PgBouncer is set to."""
    return {str(row["key"]): str(row["value"]) for row in console.execute(b"SHOW CONFIG")}


@maps_exceptions(psycopg.Error)
class Server:
    """What a server and its PgBouncer are set to, and the server's standbys."""

    def __init__(self, connection: Connection, console: Console | None) -> None:
        self._connection = connection
        self._console = console
        self.given: Given = {}

    def refusal(self, given: Given) -> str | None:
        wanted = given.get("pgbouncer", {})
        if self._console is None:
            return "this stack has no PgBouncer; leave 'pgbouncer' out of the settings" if wanted else None
        there, user = set_to(self._console), self._console.info.user
        if unknown := [name for name in wanted if name not in there]:
            return f"this PgBouncer has no setting {unknown[0]}; use a later version, or leave it out of the plan"
        if user in {name.strip() for name in there.get("admin_users", "").split(",")}:
            return None
        return f"PgBouncer does not let {user} set anything; add it to admin_users, and restart PgBouncer"

    def apply(self, given: Given) -> None:
        self.given = given
        there = of_database(self._connection)
        for name, value in given.get("postgres", {}).items():
            # The previous value first: a setting without it would never be undone.
            if _BEFORE + name not in there:
                self._alter(_BEFORE + name, there.get(name, ""))
            self._alter(name, value)
        if self._console is not None:
            for name, value in given.get("pgbouncer", {}).items():
                # The console has no parameters; names and values are those of `SETTABLE`.
                self._console.execute(f"SET {name} = '{value}'".encode())
            self._renew(self._console, "RECONNECT")

    def revert(self) -> list[str]:
        self.given = {}
        marks = {name: was for name, was in of_database(self._connection).items() if name.startswith(_BEFORE)}
        for mark, was in marks.items():
            self._alter(mark.removeprefix(_BEFORE), was or None)
            self._alter(mark, None)
        found = [f"the setting {mark.removeprefix(_BEFORE)} of postgres" for mark in sorted(marks)]
        if self._console is not None:
            before = set_to(self._console)
            # Reading its file undoes what its console has set.
            self._renew(self._console, "RELOAD", "RECONNECT")
            changed = sorted(name for name, _ in set_to(self._console).items() - before.items())
            found += [f"the setting {name} of pgbouncer" for name in changed if name in _POOLER.settings]
        return found

    def _alter(self, name: str, value: str | None) -> None:
        """`name` may have dots; None resets the setting."""
        change = sql.SQL("ALTER DATABASE {} RESET {}" if value is None else "ALTER DATABASE {} SET {} TO {}")
        database, parameter = sql.Identifier(self._connection.info.dbname), sql.Identifier(*name.split("."))
        self._connection.execute(change.format(database, parameter, sql.Literal(value)))

    def _renew(self, console: Console, *commands: LiteralString) -> None:
        """Makes PgBouncer reconnect, so that its settings apply. Does nothing without the right to."""
        try:
            for command in commands:
                console.execute(command)
        except psycopg.DatabaseError:
            if self.refusal({}) is None:
                raise

    def check(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        """Where commits wait until standbys have applied them, it waits up to `APPLY_SECONDS` for that."""
        commit = session_settings(self._connection, ["synchronous_commit"], config).get("synchronous_commit")
        behind = _behind(self._connection) if commit == "remote_apply" else set()
        with self._connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(read_sql("standbys")).fetchall()
        return database_replication(bool(rows[0]["follows"]), str(rows[0]["names"]), standbys_of(rows, behind))


def _behind(connection: Connection) -> set[int]:
    """The WAL senders of standbys that do not apply, within `APPLY_SECONDS`, what is written by now."""
    ((written,),) = connection.execute(WRITTEN).fetchall()
    deadline = time.monotonic() + APPLY_SECONDS
    while (found := {int(pid) for (pid,) in connection.execute(UNAPPLIED, [written])}) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def standbys_of(rows: Iterable[Mapping[str, Any]], behind: Container[int] = ()) -> list[Standby]:
    """The standbys in rows of `standbys`, one even without any; `behind` are WAL senders of those that do not apply."""
    there = [row for row in rows if row["pid"] is not None]
    return [Standby(row["name"], row["state"], row["sync_state"], row["pid"] not in behind) for row in there]
