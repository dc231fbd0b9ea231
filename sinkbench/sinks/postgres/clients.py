"""The clients of a database and of its PgBouncer, the bottlenecks that they show, and the state before a race."""

import math
import re
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from loadgen.reading import read_text
from sinkbench.analysis.pooler import POOL_QUERIES, POOL_TRANSACTIONS, POOL_WAIT_SECONDS, POOL_WAITING, POOL_WORST_WAIT
from sinkbench.analysis.samples import OTHER_POOL_CLIENTS
from sinkbench.analysis.words import percent
from sinkbench.bottleneck.evidence import Evidence
from sinkbench.bottleneck.rules import Finding, Rule, may_be_sink, share_of_tasks
from sinkbench.errors import ServiceError, TargetError
from sinkbench.services.failures import in_one_line, map_exceptions, maps_exceptions
from sinkbench.sinks import values
from sinkbench.sinks.jdbcurl import given, jdbc_url
from sinkbench.sinks.postgres.poolmetrics import METRICS, SERVERS, PoolMetrics
from sinkbench.sinks.postgres.session import APPLICATION, UNSAFE_IF_OFF, Connection, Console, connect, read_sql, set_to
from sinkbench.stack import Endpoint, Endpoints

# A connector's connections to PgBouncer close within this time after its tasks are gone: a put may still run.
CLOSING_SECONDS = 15.0
# How often PgBouncer's statistics are read; a query costs it more than the count of its clients does.
STATS_SECONDS = 1.0
STATS = {
    POOL_WAIT_SECONDS: ("total_wait_time", 1e-6),
    POOL_QUERIES: ("total_query_count", 1.0),
    POOL_TRANSACTIONS: ("total_xact_count", 1.0),
}
OF_POOLER = ("SERVERS", "CLIENTS")
# Without this right a role does not see the kind and name of others' connections.
SEES_BACKENDS = "SELECT pg_has_role('pg_read_all_stats', 'USAGE')"
# Shares of the tasks' time from which on a wait limits.
WAITING = 0.3
CLIENT_WAITING = 0.5
TIMEOUT_SECONDS = 10
# pgjdbc's application name, unless its URL sets `ApplicationName`, and that of our own connector.
DRIVERS = ("PostgreSQL JDBC Driver", "sinkbench-reference")
OFF = "SELECT name FROM pg_settings WHERE name = ANY(%s) AND current_setting(name) = 'off'"
UNLOGGED = re.compile(r"\bCREATE\s+UNLOGGED\s+TABLE\b", re.IGNORECASE)
Row = Mapping[str, Any]


def open_console(address: str) -> Console:
    """Connects without prepared statements, which PgBouncer's console has not."""
    return connect(address, prepare_threshold=None, connect_timeout=TIMEOUT_SECONDS, row_factory=dict_row)


def open_pools(endpoint: Endpoint) -> Console | PoolMetrics:
    """Connects to PgBouncer's console, or to the metrics that replace it."""
    return PoolMetrics(endpoint) if METRICS in endpoint.options else open_console(endpoint.address)


@maps_exceptions(psycopg.Error)
class PgBouncer:
    def __init__(self, console: Console | PoolMetrics, database: str) -> None:
        self._console = console
        self._database = database
        self._stats_at = -math.inf
        # Clients that do not count as the trial's, as by `clients`.
        self.others: set[tuple[str, str]] = set()

    def rows(self, what: str) -> list[dict[str, Any]]:
        return [row for row in self._console.execute(f"SHOW {what}".encode()) if row["database"] == self._database]

    def read(self) -> values.SinkPooling:
        """The settings of the database's pools; its own take precedence over the general ones."""
        there = set_to(self._console)
        own = next((row for row in self._console.execute(b"SHOW DATABASES") if row["name"] == self._database), {})
        size = own.get("pool_size")
        # Some versions show an impossible number if the database has no pool size of its own.
        size = there["default_pool_size"] if size is None or int(size) < 0 else size
        # Versions without the setting do not support clients' prepared statements.
        prepared = int(there.get("max_prepared_statements", 0))
        return values.SinkPooling(str(own.get("pool_mode") or there["pool_mode"]), int(size), prepared)

    def clients(self) -> set[tuple[str, str]]:
        """The clients of this database, by address in PgBouncer's memory and connect time."""
        return {(str(row["ptr"]), str(row["connect_time"])) for row in self.rows("CLIENTS")}

    def connections(self) -> values.PoolReading:
        pools = self.rows("POOLS")

        def added(*columns: str) -> int:
            return sum(int(pool[column]) for pool in pools for column in columns)

        waits = (int(pool["maxwait"]) + int(pool["maxwait_us"]) / 1e6 for pool in pools)
        signs = {POOL_WAITING: added("cl_waiting"), POOL_WORST_WAIT: max(waits, default=0.0), **self._stats()}
        if self.others:
            signs[OTHER_POOL_CLIENTS] = len(self.others & self.clients())
        return values.PoolReading(added("cl_active", "cl_waiting"), added(*SERVERS), signs)

    def _stats(self) -> dict[str, float]:
        """Statistics of this database so far; empty if they were read less than a second ago."""
        if time.monotonic() - self._stats_at < STATS_SECONDS:
            return {}
        self._stats_at = time.monotonic()
        rows = self.rows("STATS")
        return {sign: sum(int(row[column]) for row in rows) * factor for sign, (column, factor) in STATS.items()}


@maps_exceptions(psycopg.Error)
class Clients:
    """The connections of one database, the trial's and others'."""

    def __init__(self, connection: Connection, pooler: PgBouncer | None) -> None:
        self._connection = connection
        self._pooler = pooler
        self._sees_backends = bool(connection.execute(SEES_BACKENDS).fetchall()[0][0])
        self._since = datetime.min.replace(tzinfo=UTC)

    def reading(self, sequence: int, keyed: int) -> values.SinkReading:
        """Records stored, by a table's sequence and, if it has a key, by its deletions; and the connections."""
        wanted = [sequence, keyed, self._since, APPLICATION]
        with self._connection.cursor(row_factory=dict_row) as cursor:
            (found,) = cursor.execute(read_sql("reading"), wanted).fetchall()
        stored, backends = found.pop("stored"), found.pop("backends")
        signs = {name: float(value) for name, value in found.items() if value is not None}
        return values.SinkReading(stored, *((backends, signs) if self._sees_backends else (None, {})))

    def seen(self) -> values.SinkOthers:
        written = {str(table): int(rows) for table, rows in self._connection.execute(read_sql("written"))}
        if not self._sees_backends:
            return values.SinkOthers(None, written)
        ((backends,),) = self._connection.execute(read_sql("backends"), [APPLICATION]).fetchall()
        servers, clients = (0, 0) if self._pooler is None else (len(self._pooler.rows(of)) for of in OF_POOLER)
        return values.SinkOthers(max(int(backends) - servers, 0) + clients, written)

    def drop(self, name: str) -> None:
        schema, _, table = name.rpartition(".")
        self._connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(schema or "public", table)))

    def exclude_existing(self) -> None:
        # The previous trial's connections may still be open. Those that counted as others' at the last call stay.
        deadline = time.monotonic() + CLOSING_SECONDS
        while self._pooler is not None and self._pooler.clients() - self._pooler.others and time.monotonic() < deadline:
            time.sleep(0.1)
        ((self._since,),) = self._connection.execute("SELECT clock_timestamp()").fetchall()
        if self._pooler is not None:
            self._pooler.others = self._pooler.clients()

    def diverted(self, target: str) -> str | None:
        # The connectors name the table itself.
        return None


def _waiting(seen: Evidence, sign: str) -> float:
    return share_of_tasks(seen, sign) or 0.0


def lock_waits(seen: Evidence) -> Finding | None:
    """Backends of 30 % of the tasks, on average, wait for another transaction's lock."""
    if (share := _waiting(seen, "pg_wait_lock")) < WAITING:
        return None
    return Finding("postgres", "lock waits", f"{percent(share)} of the tasks' time inserts wait for a lock", share)


def wal_waits(seen: Evidence) -> Finding | None:
    """30 % of the tasks' time is spent in PostgreSQL's write-ahead log: its locks, writes and syncs."""
    if (share := _waiting(seen, "pg_wait_wal")) < WAITING or not may_be_sink(seen):
        return None
    return Finding("postgres", "WAL", f"{percent(share)} of the tasks' time PostgreSQL waits for its WAL", share)


def waits_for_disk(seen: Evidence) -> Finding | None:
    """30 % of the tasks' time PostgreSQL reads or writes files of tables, or waits for processes that do."""
    disk, latches = (_waiting(seen, sign) for sign in ("pg_wait_io", "pg_wait_lwlock"))
    if disk + latches < WAITING or not may_be_sink(seen):
        return None
    text = f"{percent(disk)} of the tasks' time PostgreSQL waits for its files, {percent(latches)} for its own latches"
    return Finding("postgres", "PostgreSQL I/O", text, min(disk + latches, 1.0))


def waits_for_client(seen: Evidence) -> Finding | None:
    """Half of the tasks' time their backends wait in an open transaction for the connector. More such backends than
    tasks belong to other clients, and say nothing about the connector."""
    share = _waiting(seen, "pg_wait_client")
    if share < CLIENT_WAITING or seen.levels["pg_wait_client"] > seen.around.tasks:
        return None
    text = f"{percent(share)} of the tasks' time PostgreSQL waits for the connector within a transaction"
    return Finding("connect", "PostgreSQL waits for Connect", text, share)


def pool_waits(seen: Evidence) -> Finding | None:
    """Clients of 30 % of the tasks, on average, wait for a free connection of PgBouncer's pool."""
    if (share := _waiting(seen, POOL_WAITING)) < WAITING:
        return None
    text = f"{seen.levels[POOL_WAITING]:.1f} clients wait for a connection of the pool"
    return Finding("pgbouncer", "pool waits", text, share)


RULES: tuple[Rule, ...] = (lock_waits, pool_waits, wal_waits, waits_for_disk, waits_for_client)


def look(endpoints: Endpoints) -> values.SinkState:
    """PostgreSQL, and PgBouncer if the stack has one. Raises ServiceError if PostgreSQL does not answer."""
    with map_exceptions(psycopg.Error), open_console(endpoints.sinks["postgres"].address) as connection:
        asked = connection.execute(read_sql("limits")).fetchall()[0]
        sessions = connection.execute(read_sql("sessions")).fetchall()
        off = {str(row["name"]) for row in connection.execute(OFF, [[*UNSAFE_IF_OFF]])}
        name = connection.info.dbname
    unsafe = tuple(f"{each} is off" for each in UNSAFE_IF_OFF if each in off)
    pooler, pooled, unseen = None, set[int](), {"pooler": "this stack has no pgbouncer"}
    if (endpoint := endpoints.sinks.get("pgbouncer")) is not None:
        try:
            with map_exceptions(psycopg.Error), closing(open_pools(endpoint)) as console:
                of, most = PgBouncer(console, name), int(set_to(console)["max_client_conn"])
                # Its connections to the database are named like the client that they served last.
                pooled = {int(row["local_port"]) for row in of.rows("SERVERS")}
                parts = conninfo_to_dict(endpoint.address)
                address = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}"
                pooler, unseen = values.Pooler(address, of.read(), most, len(of.clients())), {}
        except ServiceError as error:
            unseen = {"pooler": in_one_line(error)}
    return values.SinkState(database_of(asked, sessions, pooled), pooler, unsafe=unsafe, unseen=unseen)


def database_of(asked: Row, sessions: Sequence[Row], pooled: Container[int]) -> values.Database:
    """A server by answers; `pooled` are ports of a pooler's connections."""
    seen = bool(asked["sees"])
    by_jdbc = sum((row["name"] or "").startswith(DRIVERS) and row["port"] not in pooled for row in sessions)
    used = sum(row["name"] != APPLICATION for row in sessions) if seen else int(asked["backends"])
    return values.Database(int(asked["most"]), int(asked["reserved"]), used, by_jdbc if seen else None)


def target_of(file: Path) -> tuple[str, ...]:
    """Why a crash loses rows of the table that a file of SQL would create. Raises TargetError if it cannot be read."""
    text = read_text(file, TargetError, if_missing="restore it")
    return ("the table is UNLOGGED",) if UNLOGGED.search(text) else ()


def refusal(endpoints: Endpoints, config: Mapping[str, str]) -> str | None:
    """Logs in as a connector's configuration says, where its URL leads to one of the stack's own servers: Debezium's
    connector hides PostgreSQL's answer. Returns the error in one line; None without one, or if it is not tried."""
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


CHECKUP = values.Checkup(look, target_of, "postgres/schema.sql")
