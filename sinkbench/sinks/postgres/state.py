"""The state of PostgreSQL and PgBouncer before a race: connections, pools, replicas, durability."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row

from loadgen.reading import read_text
from sinkbench.analysis.replication import waited_for
from sinkbench.errors import ServiceError, TargetError
from sinkbench.services.failures import in_one_line, map_exceptions
from sinkbench.services.versions import numbers_of
from sinkbench.sinks.postgres import jdbc, replication
from sinkbench.sinks.postgres.session import APPLICATION, UNSAFE_IF_OFF
from sinkbench.sinks.state import Checkup, Database, Pooler, SinkState, Target
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
        (SELECT coalesce(sum(numbackends), 0) FROM pg_stat_database) AS backends,
        (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS waited_for
"""
SESSIONS = """
    SELECT application_name AS name, client_port AS port FROM pg_stat_activity WHERE backend_type = 'client backend'
"""
SETTINGS = "SELECT name, current_setting(name) AS value FROM pg_settings WHERE name = ANY(%s)"
UNLOGGED = re.compile(r"\bCREATE\s+UNLOGGED\s+TABLE\b", re.IGNORECASE)
# Since this version PgBouncer can make prepared statements follow a client; since 1.24 it does so by default, as its
# setting shows.
PREPARES = (1, 21)

SERVERS = ("sv_active", "sv_idle", "sv_used", "sv_tested", "sv_login")

Row = Mapping[str, Any]


def look(endpoints: Endpoints) -> SinkState:
    """PostgreSQL, and PgBouncer if the stack has one. Raises ServiceError if PostgreSQL does not answer."""
    with map_exceptions(psycopg.Error), _connected(endpoints.sinks["postgres"].address) as connection:
        asked = connection.execute(ASKED).fetchall()[0]
        sessions = connection.execute(SESSIONS).fetchall()
        following = connection.execute(replication.ASKED).fetchall()
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
    return SinkState(database_of(asked, sessions, pooled, following), pooler, unsafe=unsafe, unseen=unseen)


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


def database_of(asked: Row, sessions: Sequence[Row], pooled: Container[int], following: Sequence[Row] = ()) -> Database:
    """A server by answers; `pooled` are ports of a pooler's connections, named like the client they served last."""
    seen = bool(asked["sees"])
    by_jdbc = sum(row["name"] == DRIVER and row["port"] not in pooled for row in sessions)
    used = sum(row["name"] != APPLICATION for row in sessions) if seen else int(asked["backends"])
    return Database(
        most_connections=int(asked["most"]),
        reserved=int(asked["reserved"]),
        used=used,
        by_jdbc=by_jdbc if seen else None,
        # A quorum waits for some of its standbys, whichever answer first.
        waited_for=waited_for(str(following[0]["names"])) if following else int(asked["waited_for"]),
        waits_for=str(following[0]["names"]) if following else "",
        standbys=tuple(replication.standbys_of(following)),
    )


def _pooler(endpoint: Endpoint, database: str) -> tuple[Pooler, set[int]]:
    """PgBouncer's state for the database, and the ports of its connections to it."""
    with map_exceptions(psycopg.Error), _connected(endpoint.address) as console:
        asked = {what: console.execute(f"SHOW {what}".encode()).fetchall() for what in ("CONFIG", "DATABASES", "POOLS")}
        ports = {int(row["local_port"]) for row in console.execute("SHOW SERVERS") if row["database"] == database}
        version = str(next(iter(console.execute("SHOW VERSION").fetchall()[0].values())))
    parts = conninfo_to_dict(endpoint.address)
    address = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}"
    return pooler_of(address, version, asked, database), ports


def pooler_of(address: str, version: str, asked: Mapping[str, list[Any]], database: str) -> Pooler:
    """PgBouncer's state for the database, by its answers to SHOW CONFIG, DATABASES and POOLS."""
    config = {str(row["key"]): str(row["value"]) for row in asked["CONFIG"]}
    # A database that the entry "*" serves is shown once a client has used it.
    served: Row = next((row for row in asked["DATABASES"] if row["name"] == database), {})
    pools = [row for row in asked["POOLS"] if row["database"] == database]
    return Pooler(
        address=address,
        mode=str(served.get("pool_mode") or config["pool_mode"]),
        pool=int(served.get("pool_size") or config["default_pool_size"]),
        most_clients=int(config["max_client_conn"]),
        clients=sum(int(row["cl_active"]) + int(row["cl_waiting"]) for row in pools),
        servers=sum(int(row[column]) for row in pools for column in SERVERS),
        prepared=numbers_of(version) >= PREPARES and int(config.get("max_prepared_statements", 0)) > 0,
    )


def target_of(file: Path) -> Target:
    """The table that a file of SQL would create. Raises TargetError if the file cannot be read."""
    try:
        text = read_text(file, TargetError)
    except FileNotFoundError:
        raise TargetError(f"{file}: there is no such file; restore it") from None
    unlogged = ("the table is UNLOGGED",) if UNLOGGED.search(text) else ()
    return Target(name=file.name, unsafe=unlogged)


def read_only(endpoints: Endpoints, config: Mapping[str, str]) -> bool | None:
    """See `jdbc.read_only`."""
    return jdbc.read_only(config, _known(endpoints), anywhere=not endpoints.shared)


def refusal(endpoints: Endpoints, config: Mapping[str, str]) -> str | None:
    """See `jdbc.refusal`."""
    return jdbc.refusal(config, _known(endpoints))


def _known(endpoints: Endpoints) -> list[str]:
    return [endpoints.sinks[name].address for name in ("postgres", "pgbouncer") if name in endpoints.sinks]


CHECKUP = Checkup(look, target_of, "postgres/schema.sql", read_only)
