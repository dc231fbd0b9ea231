"""The state of PostgreSQL and PgBouncer before a race, and the login of a connector that failed."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row

from loadgen.reading import read_text
from sinkbench.errors import ServiceError, TargetError
from sinkbench.services.failures import in_one_line, map_exceptions
from sinkbench.sinks.jdbcurl import given, jdbc_url
from sinkbench.sinks.postgres.session import APPLICATION, UNSAFE_IF_OFF, pooling
from sinkbench.sinks.values import Checkup, Database, Pooler, SinkState
from sinkbench.stack import Endpoint, Endpoints

TIMEOUT_SECONDS = 10
# pgjdbc's application name, unless its URL sets `ApplicationName`.
DRIVER = "PostgreSQL JDBC Driver"
# PostgreSQL has `reserved_connections` since version 16.
ASKED = """
    SELECT current_setting('max_connections')::int AS most,
        current_setting('superuser_reserved_connections')::int
            + coalesce(current_setting('reserved_connections', true), '0')::int AS reserved,
        pg_has_role('pg_read_all_stats', 'USAGE') AS sees,
        (SELECT coalesce(sum(numbackends), 0) FROM pg_stat_database) AS backends
"""
SESSIONS = """
    SELECT application_name AS name, client_port AS port FROM pg_stat_activity WHERE backend_type = 'client backend'
"""
SETTINGS = "SELECT name, current_setting(name) AS value FROM pg_settings WHERE name = ANY(%s)"
UNLOGGED = re.compile(r"\bCREATE\s+UNLOGGED\s+TABLE\b", re.IGNORECASE)

Row = Mapping[str, Any]


def look(endpoints: Endpoints) -> SinkState:
    """PostgreSQL, and PgBouncer if the stack has one. Raises ServiceError if PostgreSQL does not answer."""
    with map_exceptions(psycopg.Error), _connected(endpoints.sinks["postgres"].address) as connection:
        asked = connection.execute(ASKED).fetchall()[0]
        sessions = connection.execute(SESSIONS).fetchall()
        settings = {str(row["name"]): str(row["value"]) for row in connection.execute(SETTINGS, [[*UNSAFE_IF_OFF]])}
        database = connection.info.dbname
    unsafe = tuple(f"{name} is off" for name in UNSAFE_IF_OFF if settings.get(name) == "off")
    unseen: dict[str, str] = {}
    pooler, pooled = None, set[int]()
    if "pgbouncer" not in endpoints.sinks:
        unseen["pooler"] = "this stack has no pgbouncer"
    else:
        try:
            pooler, pooled = _pooler(endpoints.sinks["pgbouncer"], database)
        except ServiceError as error:
            unseen["pooler"] = in_one_line(error)
    return SinkState(database_of(asked, sessions, pooled), pooler, unsafe=unsafe, unseen=unseen)


def _connected(address: str) -> psycopg.Connection[DictRow]:
    # PgBouncer's console has no prepared statements.
    return psycopg.connect(
        address,
        autocommit=True,
        application_name=APPLICATION,
        connect_timeout=TIMEOUT_SECONDS,
        prepare_threshold=None,
        row_factory=dict_row,
    )


def database_of(asked: Row, sessions: Sequence[Row], pooled: Container[int]) -> Database:
    """A server by answers; `pooled` are ports of a pooler's connections, named like the client they served last."""
    seen = bool(asked["sees"])
    by_jdbc = sum(row["name"] == DRIVER and row["port"] not in pooled for row in sessions)
    used = sum(row["name"] != APPLICATION for row in sessions) if seen else int(asked["backends"])
    return Database(int(asked["most"]), int(asked["reserved"]), used, by_jdbc if seen else None)


def _pooler(endpoint: Endpoint, database: str) -> tuple[Pooler, set[int]]:
    """PgBouncer's state for the database, and the ports of its connections to it."""
    with map_exceptions(psycopg.Error), _connected(endpoint.address) as console:
        settings = pooling(console, database)
        most = next(row["value"] for row in console.execute("SHOW CONFIG") if row["key"] == "max_client_conn")
        clients = sum(row["database"] == database for row in console.execute("SHOW CLIENTS"))
        ports = {int(row["local_port"]) for row in console.execute("SHOW SERVERS") if row["database"] == database}
    parts = conninfo_to_dict(endpoint.address)
    address = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}"
    return Pooler(address, settings, int(most), clients), ports


def target_of(file: Path) -> tuple[str, ...]:
    """Why a crash loses rows of the table that a file of SQL would create. Raises TargetError if it cannot be read."""
    try:
        text = read_text(file, TargetError)
    except FileNotFoundError:
        raise TargetError(f"{file}: there is no such file; restore it") from None
    return ("the table is UNLOGGED",) if UNLOGGED.search(text) else ()


def refusal(endpoints: Endpoints, config: Mapping[str, str]) -> str | None:
    """Logs in as a connector's configuration says, to that of the stack's own servers which its URL leads to: a
    connector may hide PostgreSQL's answer, as Debezium's does. Returns the error in one line; None if there is none, if
    the URL leads elsewhere, or if only the workers know the login.
    """
    url, (_, user, password) = jdbc_url(config), given(config)
    if url is None or not user or not password or "${" in f"{user}{password}{url.database}":
        return None
    for name in ("postgres", "pgbouncer"):
        address = endpoints.sinks[name].address if name in endpoints.sinks else ""
        parts = conninfo_to_dict(address)
        places = zip(str(parts.get("host")).split(","), str(parts.get("port")).split(","), strict=False)
        if any(url.leads_to(":".join(place)) for place in places):
            try:
                login = make_conninfo(address, user=user, password=password, dbname=url.database)
                psycopg.connect(login, connect_timeout=TIMEOUT_SECONDS).close()
            except psycopg.Error as error:
                return in_one_line(error)
    return None


CHECKUP = Checkup(look, target_of, "postgres/schema.sql")
