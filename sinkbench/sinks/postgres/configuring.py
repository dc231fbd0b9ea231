"""Sets PostgreSQL and PgBouncer for a trial. Each database setting's previous value is kept in a second one, so that
another controller can restore it after a kill. PgBouncer's file is unchanged: reading it restores the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from sinkbench.analysis.settable import Given, Settable, one_of, whole
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.reading import SinkPooling

Connection = psycopg.Connection[Any]
Console = psycopg.Connection[DictRow]

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
# The versions of PgBouncer since which settings exist.
_SINCE = {"max_prepared_statements": "1.21"}
# Any user may set a PostgreSQL parameter whose name has a dot.
_BEFORE = "sinkbench.before_"
_OF_DATABASE = """
    SELECT unnest(setconfig) FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
    WHERE datname = current_database() AND setrole = 0
"""


def of_database(connection: Connection) -> dict[str, str]:
    found = (str(line).partition("=") for (line,) in connection.execute(_OF_DATABASE))
    return {name: value for name, _, value in found}


def database_set(connection: Connection, given: Mapping[str, str]) -> None:
    """Sets the database for new sessions; `given` has values that `SETTABLE` permits."""
    there = of_database(connection)
    for name, value in given.items():
        # The previous value first: a setting without it would never be undone.
        if _BEFORE + name not in there:
            _alter(connection, _BEFORE + name, there.get(name, ""))
        _alter(connection, name, value)


def database_set_back(connection: Connection) -> list[str]:
    """Restores the database's settings. Returns the names of what was restored."""
    left = {name: was for name, was in of_database(connection).items() if name.startswith(_BEFORE)}
    for mark, was in left.items():
        _alter(connection, mark.removeprefix(_BEFORE), was or None)
        _alter(connection, mark, None)
    return sorted(mark.removeprefix(_BEFORE) for mark in left)


def _alter(connection: Connection, name: str, value: str | None) -> None:
    """`name` may have dots; None resets the setting."""
    database, parameter = sql.Identifier(connection.info.dbname), sql.Identifier(*name.split("."))
    if value is None:
        connection.execute(sql.SQL("ALTER DATABASE {} RESET {}").format(database, parameter))
    else:
        connection.execute(sql.SQL("ALTER DATABASE {} SET {} TO {}").format(database, parameter, sql.Literal(value)))


def _config(console: Console) -> dict[str, str]:
    return {str(row["key"]): str(row["value"]) for row in console.execute("SHOW CONFIG")}


def refusal_of_pooler(console: Console, given: Mapping[str, str]) -> str | None:
    """Why this PgBouncer cannot be set so, or cannot reconnect, in one line; None if it can."""
    there = _config(console)
    version = (console.info.parameter_status("server_version") or "?").partition("/")[0]
    for name in given:
        if name not in there:
            since = f"; that came with {_SINCE[name]}" if name in _SINCE else ""
            return f"PgBouncer {version} has no setting {name}{since}: use a later one, or leave it out of the plan"
    admins = {name.strip() for name in there.get("admin_users", "").split(",")}
    if console.info.user in admins:
        return None
    return (
        f"PgBouncer does not let {console.info.user} set anything: it is none of its admin_users; add it there, and"
        " restart PgBouncer"
    )


def set_pooler(console: Console, given: Mapping[str, str]) -> None:
    """Sets PgBouncer until it restarts or rereads its file; `given` has values that `SETTABLE` permits."""
    for name, value in given.items():
        # The console has no parameters; names and values are those of `SETTABLE`.
        console.execute(f"SET {name} = '{value}'".encode())


def renew(console: Console, *, read_file: bool = False) -> list[str]:
    """Makes PgBouncer reconnect to the database, so that its settings apply, and returns the names of settings that
    changed. With `read_file`, PgBouncer first reads its file, which undoes what its console has set. Does nothing if
    this user lacks the right, since then nothing was set either.
    """
    before = _config(console)
    try:
        if read_file:
            console.execute("RELOAD")
        console.execute("RECONNECT")
    except psycopg.DatabaseError:
        if refusal_of_pooler(console, {}) is None:
            raise
        return []
    after = _config(console)
    return sorted(name for name in _POOLER.settings if before.get(name) != after.get(name))


def pooling(console: Console, database: str) -> SinkPooling:
    """The settings of a database's pools; its own take precedence over the general ones."""
    there = _config(console)
    own = next((row for row in console.execute("SHOW DATABASES") if row["name"] == database), {})
    mode, size = own.get("pool_mode") or there.get("pool_mode"), own.get("pool_size")
    # Some versions show an impossible number if the database has no pool size of its own.
    if size is None or int(size) < 0:
        size = there.get("default_pool_size")
    prepared = there.get("max_prepared_statements")
    return SinkPooling(
        None if mode is None else str(mode),
        None if size is None else int(size),
        # Versions without the setting do not support clients' prepared statements.
        int(prepared) if prepared is not None else 0,
    )


@maps_exceptions(psycopg.Error)
class ServiceSettings:
    def __init__(self, connection: Connection, console: Console | None) -> None:
        self._connection = connection
        self._console = console
        self.given: Given = {}

    def refusal(self, given: Given) -> str | None:
        wanted = given.get("pgbouncer", {})
        if self._console is not None:
            return refusal_of_pooler(self._console, wanted)
        return "this stack has no PgBouncer; leave 'pgbouncer' out of the settings" if wanted else None

    def apply(self, given: Given) -> None:
        self.given = given
        database_set(self._connection, given.get("postgres", {}))
        if self._console is not None:
            set_pooler(self._console, given.get("pgbouncer", {}))
            renew(self._console)

    def revert(self) -> list[str]:
        self.given = {}
        found = [f"the setting {name} of postgres" for name in database_set_back(self._connection)]
        if self._console is not None:
            found += [f"the setting {name} of pgbouncer" for name in renew(self._console, read_file=True)]
        return found
