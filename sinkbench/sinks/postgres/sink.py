"""One PostgreSQL database and the PgBouncer before it, as trials use them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from loadgen.reading import read_text
from sinkbench.analysis.durability import database_promise
from sinkbench.analysis.pooler import POOL_QUERIES, POOL_TRANSACTIONS, POOL_WAIT_SECONDS, POOL_WAITING, POOL_WORST_WAIT
from sinkbench.analysis.query import Answer, Query
from sinkbench.analysis.rates import HIGH_SHARE, LOW_SHARE
from sinkbench.analysis.replication import ReplicationState
from sinkbench.analysis.samples import OTHER_CONNECTIONS, OTHER_POOL_CLIENTS
from sinkbench.analysis.settable import Given
from sinkbench.errors import StackError, TargetError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.arrivals import Arrivals, ArrivalWatch, clock_offset
from sinkbench.sinks.kind import ASK_SECONDS, FullDisk
from sinkbench.sinks.postgres import replication
from sinkbench.sinks.postgres.asking import ask
from sinkbench.sinks.postgres.audited import audited_in, columns_of, contents, documents, sequences
from sinkbench.sinks.postgres.configuring import (
    database_set,
    database_set_back,
    of_database,
    pooling,
    refusal_of_pooler,
    renew,
    set_pooler,
)
from sinkbench.sinks.postgres.filling import fill
from sinkbench.sinks.postgres.jdbc import own_commit
from sinkbench.sinks.postgres.refusing import NO_CONNECTION, Crowd, accept, refuse
from sinkbench.sinks.postgres.schema import MARK, SCHEMA_TABLE, FileError, make, remove, schema_comment, set_session
from sinkbench.sinks.postgres.smalldisk import on_small_disk
from sinkbench.sinks.reading import SinkBloat, SinkOthers, SinkPooling, SinkReading, SinkSettings
from sinkbench.stack import Endpoints
from sinkbench.stack.smalldisk import SmallDisk

__all__ = ["APPLICATION", "PostgresSink", "open_postgres"]

APPLICATION = "sinkbench"
"""The controller's own name, so that no probe counts its connections as a connector's."""
# What the server promises of a row that is committed, and what else its speed depends on.
DURABILITY = (
    *("fsync", "synchronous_commit", "full_page_writes", "wal_level"),
    *("synchronous_standby_names", "wal_writer_delay"),
)
UNSAFE_IF_OFF = ("fsync", "synchronous_commit", "full_page_writes")
# The table, or one of its partitions.
UNLOGGED = """
    SELECT coalesce(bool_or(relpersistence = 'u'), false) FROM pg_class WHERE oid = to_regclass(quote_ident(%s))
    OR oid IN (SELECT relid FROM pg_partition_tree(to_regclass(quote_ident(%s))))
"""
# As a connection has it that sets nothing itself.
SETTINGS = """
    SELECT name, CASE name WHEN 'synchronous_commit' THEN reset_val ELSE current_setting(name) END
    FROM pg_settings WHERE name = ANY(%s)
"""
TUNING = ("wal_compression", "max_wal_size", "shared_buffers")
CLOCK_QUESTIONS = 9
# A connector's connections to PgBouncer are closed within so long after its tasks are gone: a put may still go on.
CLOSING_SECONDS = 15.0

# What each backend does at this moment. WAL's waits have names of their own within LWLock and IO; a backend that waits
# for its client while no transaction is open has nothing to do.
ACTIVITY = {
    "backends": "count(*)",
    OTHER_CONNECTIONS: "count(*) FILTER (WHERE backend_start < %s::timestamptz)",
    "pg_busy": "count(*) FILTER (WHERE state <> 'idle')",
    "pg_wait_lock": "count(*) FILTER (WHERE wait_event_type = 'Lock')",
    "pg_wait_wal": "count(*) FILTER (WHERE wait_event_type IN ('LWLock', 'IO') AND wait_event ILIKE 'wal%%')",
    "pg_wait_lwlock": "count(*) FILTER (WHERE wait_event_type = 'LWLock' AND wait_event NOT ILIKE 'wal%%')",
    "pg_wait_io": "count(*) FILTER (WHERE wait_event_type = 'IO' AND wait_event NOT ILIKE 'wal%%')",
    "pg_wait_client": "count(*) FILTER (WHERE wait_event_type = 'Client' AND state <> 'idle')",
}
OF_CLIENTS = """
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND datname = current_database() AND application_name <> %s
"""
# The sequence counts an insertion that turns into an update, too, but no deletion; that is counted of the tables with a
# key, whose rows connectors may delete.
STORED = "coalesce(pg_sequence_last_value(%s), 0) + pg_stat_get_tuples_deleted(%s)"
READ = f"SELECT {STORED}, {', '.join(ACTIVITY.values())} {OF_CLIENTS}"
BACKENDS = f"SELECT count(*) {OF_CLIENTS}"
# Of another schema a table has its name before it, as a trial's own may.
WRITTEN = """
    SELECT CASE schemaname WHEN 'public' THEN relname ELSE schemaname || '.' || relname END,
        n_tup_ins + n_tup_upd + n_tup_del
    FROM pg_stat_user_tables
"""
# Whoever lacks this right sees of others' connections neither kind nor name.
SEES_BACKENDS = "SELECT pg_has_role('pg_read_all_stats', 'USAGE')"
# A partitioned table has no pages itself.
SIZE = """
    WITH RECURSIVE parts(oid) AS (
        SELECT to_regclass(quote_ident(%s))::oid UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = oid
    ) SELECT sum(pg_total_relation_size(oid)) FROM parts
"""
KEYED = """
    SELECT attrelid FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(%s)) AND attname = 'key'
        AND NOT attisdropped
"""
BLOAT = """
    SELECT pg_stat_get_dead_tuples(to_regclass(quote_ident(%s))), deadlocks, xact_rollback
    FROM pg_stat_database WHERE datname = current_database()
"""
ROWS_AT_ONCE = 50_000
# What PgBouncer has counted so far; a query costs it more than the count of its clients does.
STATS_SECONDS = 1.0
LEFTOVERS = """
    SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
        AND starts_with(relname, %s) AND obj_description(oid, 'pg_class') = %s
    UNION SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s) AND obj_description(oid, 'pg_namespace') = %s
"""
COMMENT = "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE oid = to_regclass(quote_ident(%s))"


@maps_exceptions(psycopg.Error)
class PostgresSink:
    """One PostgreSQL database, and the PgBouncer before it."""

    name = "postgres"

    def __init__(self, dsn: str, pgbouncer_admin: str | None, schema_file: Path, *, shared: bool = False) -> None:
        """
        Args:
            dsn: connection string, straight to PostgreSQL.
            pgbouncer_admin: connection string of PgBouncer's console; None where there is no PgBouncer.
            schema_file: SQL that makes the table `tides`, and what that needs.
            shared: whether others use this server, on whom no checkpoint is to be forced.

        Raises:
            StackError: PostgreSQL or PgBouncer does not answer.
        """
        self._schema_file = schema_file
        self._shared = shared
        self._sequences: dict[str, int] = {}
        self._keyed: dict[str, int] = {}
        self._pooler: psycopg.Connection[DictRow] | None = None
        self._since = datetime.min.replace(tzinfo=UTC)
        self._pool_others: set[tuple[str, str]] = set()
        try:
            self._connection = self._connect(dsn)
            set_session(self._connection)
            self._sees_backends = bool(self._query(sql.SQL(SEES_BACKENDS))[0][0])
            # PgBouncer's console knows no prepared statements, which psycopg makes of what it is asked often.
            if pgbouncer_admin:
                self._pooler = psycopg.connect(
                    pgbouncer_admin, autocommit=True, prepare_threshold=None, row_factory=dict_row
                )
        except psycopg.Error as error:
            raise StackError(f"PostgreSQL does not answer: {str(error).strip().splitlines()[0]}") from None
        self._database = self._connection.info.dbname
        self._dsn = dsn
        self._crowd: Crowd | None = None
        self._given: Given = {}
        self._stats_at = -math.inf

    @staticmethod
    def _connect(dsn: str) -> psycopg.Connection[Any]:
        return psycopg.connect(dsn, autocommit=True, application_name=APPLICATION)

    def _query(self, query: sql.SQL | sql.Composed, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values or None).fetchall()

    def refuses_settings(self, given: Given) -> str | None:
        wanted = given.get("pgbouncer", {})
        if self._pooler is not None:
            return refusal_of_pooler(self._pooler, wanted)
        return "this stack has no PgBouncer; leave 'pgbouncer' out of the settings" if wanted else None

    def apply(self, given: Given) -> None:
        self._given = given
        database_set(self._connection, given.get("postgres", {}))
        if self._pooler is not None:
            set_pooler(self._pooler, given.get("pgbouncer", {}))
            renew(self._pooler)

    def revert(self) -> list[str]:
        self._given = {}
        found = [f"the setting {name} of postgres" for name in database_set_back(self._connection)]
        if self._pooler is not None:
            found += [f"the setting {name} of pgbouncer" for name in renew(self._pooler, read_file=True)]
        return found

    def create(self, target: str, file: Path | None = None) -> None:
        file = file or self._schema_file
        try:
            make(self._connection, read_text(file, TargetError), target)
            self._checkpoint()
        except FileNotFoundError:
            raise TargetError(f"{file}: there is no such file; restore it") from None
        except FileError as error:
            # What a file has committed itself is there.
            if schema_comment(self._connection, target) == MARK:
                self.drop(target)
            raise TargetError(f"PostgreSQL did not make the table {target} of {file}: {error}") from None
        except psycopg.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise StackError(f"PostgreSQL did not make the table {target} of {file}: {reason}") from None

    def _checkpoint(self) -> None:
        """What was written before would otherwise be paid for by the trial."""
        if not self._shared:
            with suppress(psycopg.errors.InsufficientPrivilege):
                self._connection.execute("CHECKPOINT")

    def notes(self, target: str) -> list[str]:
        # What the file does not get is refused, and nobody adds anything.
        # Sessions that begin now are set otherwise than this one.
        durability = {**self.settings(target).durability, **self._given.get("postgres", {})}
        unsafe = [f"{name} is off" for name in UNSAFE_IF_OFF if durability[name] == "off"]
        if self._query(sql.SQL(UNLOGGED), target, target)[0][0]:
            unsafe.insert(0, "the table is UNLOGGED")
        return [f"what PostgreSQL has stored may be gone after a crash: {', '.join(unsafe)}"] if unsafe else []

    def columns(self, target: str) -> frozenset[str]:
        return frozenset(name.lower() for name in columns_of(self._connection, target))

    def drop(self, target: str) -> None:
        self._sequences.pop(target, None)
        self._keyed.pop(target, None)
        rows = self._query(sql.SQL(COMMENT), target)
        if rows and rows[0][0] != MARK:
            raise StackError(f"PostgreSQL: sinkbench has not made the table {target}, and does not drop it")
        if schema_comment(self._connection, target) not in (None, MARK):
            raise StackError(f"PostgreSQL: sinkbench has not made the schema {target}, and does not drop it")
        remove(self._connection, target)

    def _sequence(self, target: str) -> int:
        """The sequence behind the table's identity column, which counts its insertions."""
        if target not in self._sequences:
            rows = self._query(
                sql.SQL(
                    "SELECT pg_get_serial_sequence(quote_ident(%s), attname)::regclass::oid FROM pg_attribute "
                    "WHERE attrelid = to_regclass(quote_ident(%s)) AND attidentity <> ''"
                ),
                target,
                target,
            )
            if not rows:
                raise StackError(f"PostgreSQL: there is no table {target} with an identity column")
            self._sequences[target] = rows[0][0]
            # Of no table nothing was deleted.
            self._keyed[target] = next((int(table) for (table,) in self._query(sql.SQL(KEYED), target)), 0)
        return self._sequences[target]

    def read(self, target: str) -> SinkReading:
        sequence = self._sequence(target)
        ((stored, *seen),) = self._query(sql.SQL(READ), sequence, self._keyed[target], self._since, APPLICATION)
        signs: dict[str, float] = dict(zip(ACTIVITY, seen, strict=True)) if self._sees_backends else {}
        backends = None if (counted := signs.pop("backends", None)) is None else int(counted)
        if self._pooler is None:
            return SinkReading(stored=stored, backends=backends, signs=signs)
        pools = [pool for pool in self._pooler.execute("SHOW POOLS") if pool["database"] == self._database]

        def added(*columns: str) -> int:
            return sum(int(pool[column]) for pool in pools for column in columns)

        if self._pool_others:
            signs[OTHER_POOL_CLIENTS] = len(self._pool_others & self._pool_clients())
        waits = (int(pool["maxwait"]) + int(pool["maxwait_us"]) / 1e6 for pool in pools)
        signs |= {POOL_WAITING: added("cl_waiting"), POOL_WORST_WAIT: max(waits, default=0.0), **self._pool_stats()}
        servers = added("sv_active", "sv_idle", "sv_used", "sv_tested", "sv_login")
        return SinkReading(stored, backends, added("cl_active", "cl_waiting"), servers, signs)

    def _pool_stats(self) -> dict[str, float]:
        """What PgBouncer has counted of this database so far; empty if it was asked less than a second ago."""
        if self._pooler is None or time.monotonic() - self._stats_at < STATS_SECONDS:
            return {}
        self._stats_at = time.monotonic()
        rows = [row for row in self._pooler.execute("SHOW STATS") if row["database"] == self._database]
        return {
            sign: sum(int(row[column]) for row in rows) * factor
            for sign, column, factor in (
                (POOL_WAIT_SECONDS, "total_wait_time", 1e-6),
                (POOL_QUERIES, "total_query_count", 1.0),
                (POOL_TRANSACTIONS, "total_xact_count", 1.0),
            )
        }

    def pooling(self) -> SinkPooling | None:
        return None if self._pooler is None else pooling(self._pooler, self._database)

    def _pool_clients(self) -> set[tuple[str, str]]:
        """The clients of this database in PgBouncer, each by its address in PgBouncer's memory and its beginning."""
        rows = [] if self._pooler is None else self._pooler.execute("SHOW CLIENTS").fetchall()
        return {(str(row["ptr"]), str(row["connect_time"])) for row in rows if row["database"] == self._database}

    def exclude_existing(self) -> None:
        # Those of the trial before may not be closed yet: they are nobody's, and hide no figure of this one.
        deadline = time.monotonic() + CLOSING_SECONDS
        # Whoever was there at the last look stays.
        while self._pool_clients() - self._pool_others and time.monotonic() < deadline:
            time.sleep(0.1)
        self._since = self._query(sql.SQL("SELECT clock_timestamp()"))[0][0]
        self._pool_others = self._pool_clients()

    def others(self) -> SinkOthers:
        written = {str(table): int(rows) for table, rows in self._query(sql.SQL(WRITTEN))}
        if not self._sees_backends:
            return SinkOthers(None, written)
        ((backends,),) = self._query(sql.SQL(BACKENDS), APPLICATION)
        pooled = [] if self._pooler is None else self._pooler.execute("SHOW SERVERS").fetchall()
        servers = sum(row["database"] == self._database for row in pooled)
        return SinkOthers(max(int(backends) - servers, 0) + len(self._pool_clients()), written)

    def arrivals(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        """The table keeps the time of every insertion itself, by the server's clock."""
        # This connection may be lost until then: a server that is killed and started again still has the times.
        another = partial(PostgresSink, self._dsn, None, self._schema_file, shared=self._shared)
        return nullcontext(_Stamps(another, target))

    def stamps(self, target: str, run: str, one_in: int) -> Arrivals:
        """When the records of `run` whose seq is a multiple of `one_in` were due and inserted.

        Raises:
            StackError: the table has no column "stored" with the time of insertion.
        """
        of = audited_in(self._connection, target)
        query = sql.SQL(
            "SELECT ({due})::bigint, (extract(epoch FROM stored) * 1000000)::bigint FROM {table} "
            "WHERE {run} = %s AND ({seq})::bigint %% %s = 0"
        ).format(due=of.due_us, table=sql.Identifier(target), run=of.run, seq=of.seq)
        try:
            rows = np.array(self._query(query, run, one_in), dtype=np.float64).reshape(-1, 2)
        except psycopg.errors.UndefinedColumn as error:
            lacks = str(error).strip().splitlines()[0]
            raise StackError(
                f'the latency needs a column "stored" with the insertion time, and when a record was due: {lacks}'
            ) from None
        offset_us, resolution_us = clock_offset([self._ask_clock() for _ in range(CLOCK_QUESTIONS)])
        return Arrivals(rows[:, 0], rows[:, 1] - offset_us, resolution_us)

    def _ask_clock(self) -> tuple[float, float, float]:
        """Microseconds since the epoch: by this machine's clock, by the server's, and by this machine's again."""
        before = time.time_ns() / 1000
        ((theirs,),) = self._query(sql.SQL("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
        return before, float(theirs), time.time_ns() / 1000

    def diverted(self, target: str) -> str | None:
        # The connectors name the table itself.
        return None

    def stamped_rate(self, target: str, records: int) -> float | None:
        if self._keyed.get(target):
            # What changes a row keeps the time at which it was inserted.
            return None
        # The rows are numbered as they are inserted, so two of them tell, whatever the size of the table.
        first, last = max(1, round(LOW_SHARE * records)), round(HIGH_SHARE * records)
        query = sql.SQL("SELECT extract(epoch FROM stored)::float8 FROM {} WHERE id IN (%s, %s) ORDER BY id")
        try:
            found = [float(stored) for (stored,) in self._query(query.format(sql.Identifier(target)), first, last)]
        except psycopg.errors.UndefinedColumn:
            return None
        if len(found) < 2 or found[1] <= found[0]:
            return None
        return (last - first) / (found[1] - found[0])

    def settle(self, target: str) -> None:
        """Nothing to do: what is committed is visible."""

    def writes(self, target: str) -> int | None:
        # Only a transaction that writes gets an id, so the ids count commits of records and not the look-ups of the
        # schema that a connector makes before every batch, which are transactions too.
        return int(self._query(sql.SQL("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"))[0][0])

    def connection_limit(self) -> int | None:
        return int(self._query(sql.SQL("SHOW max_connections"))[0][0])

    def settings(self, target: str) -> SinkSettings:
        return self.settings_of(target, {})

    def settings_of(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        wanted = [*DURABILITY, *TUNING]
        found: dict[str, str] = {}
        with suppress(psycopg.Error):
            # No names are a setting, too.
            found = {str(name): str(value) or "none" for name, value in self._query(sql.SQL(SETTINGS), wanted)}
            # What was set for the database since this connection began holds for those of connectors.
            found |= {name: value for name, value in of_database(self._connection).items() if name in wanted}
            if (commit := own_commit(config)) is not None:
                found["synchronous_commit"] = commit
        durability, tuning = ({name: found.get(name) for name in names} for names in (DURABILITY, TUNING))
        unlogged = bool(self._query(sql.SQL(UNLOGGED), target, target)[0][0])
        return SinkSettings(durability, tuning, database_promise(durability, unlogged=unlogged))

    def replication(self, target: str) -> ReplicationState:
        return self.replication_of(target, {})

    def replication_of(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        how = {str(name): value for name, value in self._query(sql.SQL(SETTINGS), ["synchronous_commit"])}
        # What was set for the database since this connection began holds for those of connectors.
        how |= of_database(self._connection)
        commit = own_commit(config) or how.get("synchronous_commit")
        return replication.look(self._connection, applied=commit == "remote_apply")

    def count(self, target: str) -> int:
        return int(self._query(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(target)))[0][0])

    def disk_bytes(self, target: str) -> int | None:
        # A table's files have the size of all of its pages, also of those that are not written yet.
        ((size,),) = self._query(sql.SQL(SIZE), target)
        return None if size is None else int(size)

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        # A generator, so that what the client raises while it runs is mapped.
        yield from sequences(self._connection, target, run)

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        query = sql.SQL(
            "COPY (SELECT key::text, (payload #>> '{{bench,seq}}')::bigint FROM {} "
            "WHERE payload #>> '{{bench,run}}' = {} AND payload #> '{{bench,seq}}' IS NOT NULL) TO STDOUT"
        ).format(sql.Identifier(target), sql.Literal(run))
        try:
            with self._connection.cursor() as cursor, cursor.copy(query) as copy:
                copy.set_types(["text", "int8"])
                rows = copy.rows()
                while chunk := list(islice(rows, ROWS_AT_ONCE)):
                    keys, seqs = zip(*chunk, strict=True)
                    yield list(keys), np.array(seqs, dtype=np.int64)
        except psycopg.errors.UndefinedColumn:
            raise TargetError(
                'the table has no column "key", by which changes are audited; give the pipeline such a table, as by'
                " target: postgres/keyed.sql"
            ) from None

    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        keyed = bool(self._query(sql.SQL(KEYED), target))
        yield from fill(self._connection, target, rows, documents, keyed=keyed)
        self._checkpoint()

    def bloat(self, target: str) -> SinkBloat:
        ((dead, deadlocks, rollbacks),) = self._query(sql.SQL(BLOAT), target)
        return SinkBloat(int(dead), int(deadlocks), int(rollbacks), self.disk_bytes(target))

    def documents(self, target: str, run: str, seqs: Sequence[int]) -> dict[int, Any]:
        return documents(self._connection, target, run, seqs)

    def contents(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        yield from contents(self._connection, target, run, one_in, at_once)

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        return ask(self._connection, target, query, ASK_SECONDS, explain=explain)

    def refuse(self, target: str, why: str) -> None:
        if why == NO_CONNECTION:
            if self._crowd is None:
                self._crowd = Crowd(self._connection, partial(self._connect, self._dsn))
            self._crowd.come()
        else:
            refuse(self._connection, target, why)

    def accept(self, target: str) -> None:
        accept(self._connection, target)
        if self._crowd is not None:
            self._crowd.go()
            self._crowd = None

    def disk_to_fill(
        self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]
    ) -> AbstractContextManager[FullDisk]:
        return on_small_disk(self._connection, target, small_disk)

    def leftovers(self, prefix: str) -> list[str]:
        rows = self._query(sql.SQL(LEFTOVERS), prefix, MARK, prefix, MARK)
        return sorted(str(name) for (name,) in rows)

    def offer_by_hand(self) -> None:
        if not self._query(sql.SQL(COMMENT), SCHEMA_TABLE):
            self.create(SCHEMA_TABLE)

    def close(self) -> None:
        if self._crowd is not None:
            self._crowd.go()
        self._connection.close()
        if self._pooler is not None:
            self._pooler.close()


def open_postgres(endpoints: Endpoints, checkout: Path) -> PostgresSink:
    """The sink of a stack that has it."""
    console = endpoints.sinks.get("pgbouncer")
    return PostgresSink(
        endpoints.sinks["postgres"].address,
        None if console is None else console.address,
        checkout / "postgres" / "schema.sql",
        shared=endpoints.shared,
    )


@dataclass(frozen=True)
class _Stamps(AbstractContextManager["_Stamps"]):
    """The times that the table itself keeps, as an `ArrivalWatch`."""

    connect: Callable[[], PostgresSink]
    target: str

    def __exit__(self, *ended: object) -> None:
        return

    def read(self, run: str, one_in: int) -> Arrivals:
        with closing(self.connect()) as sink:
            return sink.stamps(self.target, run, one_in)
