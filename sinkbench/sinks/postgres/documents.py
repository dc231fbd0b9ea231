"""What the audit reads of a trial's table: records as documents or in columns, and when they arrived."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from loadgen.checksum import parse
from sinkbench.analysis.query import Answer, Query
from sinkbench.analysis.rates import HIGH_SHARE, LOW_SHARE
from sinkbench.errors import StackError, TargetError
from sinkbench.services.clocks import clock_offset
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.postgres.asking import ask
from sinkbench.sinks.postgres.session import APPLICATION, Connection, connect, read_sql, set_session
from sinkbench.sinks.values import Arrivals, ArrivalWatch, SinkBloat
from sinkbench.stack import Endpoints
from sinkbench.suggest import did_you_mean

# All digits of numbers, whatever the role is set to.
READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL extra_float_digits = 1"
ROWS_AT_ONCE = 50_000
CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# COPY's binary format: a header of 19 bytes, then for each row of one bigint: number of fields, length, value.
COPY_HEADER_BYTES = 19
COPY_ROW = np.dtype([("fields", ">i2"), ("length", ">i4"), ("value", ">i8")])
COPY_TRAILER = b"\xff\xff"


@dataclass(frozen=True)
class Audited:
    """SQL for what is audited of a row, as text, and for the record as JSON; the table's alias is `held`."""

    run: sql.SQL
    seq: sql.SQL
    due_us: sql.SQL
    document: sql.SQL

    def statement(self, which: str, table: str, **values: object) -> sql.Composed:
        """The statement of that name for such a table."""
        return read_sql(which).format(**vars(self), table=sql.Identifier(table), **values)


# For a table that keeps records as documents, and one with a column for each member, as `loadgen.forms` names them.
PATHS = ("payload #>> '{bench,run}'", "payload #>> '{bench,seq}'", "payload #>> '{bench,due_us}'", "payload")
DOCUMENT = Audited(*map(sql.SQL, PATHS))
ROW = Audited(*map(sql.SQL, ("bench_run", "bench_seq::text", "bench_due_us::text", "to_jsonb(held)")))


def columns_of(connection: Connection, table: str, schema: str = "public") -> frozenset[str]:
    """The names of a table's columns; empty if there is no such table."""
    return frozenset(str(name) for (name,) in connection.execute(read_sql("columns"), [schema, table]).fetchall())


def audited_in(connection: Connection, table: str, schema: str = "public") -> Audited:
    """How to read a table; one that has neither form is read as documents."""
    columns = columns_of(connection, table, schema)
    return ROW if "payload" not in columns and {"bench_run", "bench_seq"} <= columns else DOCUMENT


def key_table(connection: Connection, table: str) -> int:
    """The OID of a table that has a column `key`; 0 if it has none or does not exist."""
    return next((int(found) for (found,) in connection.execute(read_sql("keyed"), [table])), 0)


@maps_exceptions(psycopg.Error)
class Stored:
    """The rows of a table: their documents, versions of keys, and times."""

    def __init__(self, connection: Connection, dsn: str) -> None:
        self._connection = connection
        self._dsn = dsn

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        """As in `Sink`. Raises StackError if PostgreSQL's data breaks off."""
        query = audited_in(self._connection, target).statement("sequences", target, name=run)
        rest, header = b"", COPY_HEADER_BYTES
        with self._connection.cursor().copy(query) as copy:
            blocks = iter(copy)
            while some := list(islice(blocks, ROWS_AT_ONCE)):
                rest, header = (rest + b"".join(some))[header:], 0
                whole = len(rest) // COPY_ROW.itemsize
                rows = np.frombuffer(rest, dtype=COPY_ROW, count=whole)
                rest = rest[whole * COPY_ROW.itemsize :]
                yield rows["value"].astype(np.int64)
        if rest != COPY_TRAILER:
            raise StackError(f"PostgreSQL's copy of {target} for the audit ended in the middle of a row")

    def some(self, target: str, run: str, seqs: Sequence[int]) -> dict[int, Any]:
        query = audited_in(self._connection, target).statement("some", target)
        rows = self._connection.execute(query, [run, [str(seq) for seq in seqs]]).fetchall()
        return {int(seq): found for seq, text in rows if (found := _parsed(text)) is not None}

    def all(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        of = audited_in(self._connection, target)
        if of is ROW:
            return
        chosen = sql.SQL("AND ({})::bigint % {} = 0").format(of.seq, sql.Literal(one_in)) if one_in > 1 else sql.SQL("")
        query = of.statement("all", target, name=run, chosen=chosen)
        with self._connection.cursor().copy(query) as copy:
            copy.set_types(["text"])
            rows = copy.rows()
            while chunk := list(islice(rows, at_once)):
                yield [_parsed(text) for (text,) in chunk]

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        query = DOCUMENT.statement("versions", target, name=run)
        try:
            with self._connection.cursor().copy(query) as copy:
                copy.set_types(["text", "int8"])
                rows = copy.rows()
                while chunk := list(islice(rows, ROWS_AT_ONCE)):
                    keys, seqs = zip(*chunk, strict=True)
                    yield list(keys), np.array(seqs, dtype=np.int64)
        except psycopg.errors.UndefinedColumn:
            why = 'the table has no column "key", by which changes are audited; give the pipeline such a table'
            raise TargetError(f"{why}, as by target: postgres/keyed.sql") from None

    def disk_bytes(self, target: str) -> int | None:
        """Bytes of a table's files, which include all of its pages, also those that are not written yet."""
        ((size,),) = self._connection.execute(read_sql("size"), [target]).fetchall()
        return None if size is None else int(size)

    def bloat(self, target: str) -> SinkBloat:
        ((dead, deadlocks, rollbacks),) = self._connection.execute(read_sql("bloat"), [target]).fetchall()
        return SinkBloat(int(dead), int(deadlocks), int(rollbacks), self.disk_bytes(target))

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        return ask(self._connection, target, query, explain)

    def watch(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        # It connects when it is read: this connection may be lost until then, but a restarted server has the times.
        return nullcontext(_Stamps(self._dsn, target))

    def rate(self, target: str, records: int) -> float | None:
        if key_table(self._connection, target):
            # An update keeps the time of the row's insertion.
            return None
        # Rows are numbered as they are inserted, so two of them suffice, whatever the size of the table.
        first, last = max(1, round(LOW_SHARE * records)), round(HIGH_SHARE * records)
        query = sql.SQL("SELECT extract(epoch FROM stored)::float8 FROM {} WHERE id IN (%s, %s) ORDER BY id")
        try:
            rows = self._connection.execute(query.format(sql.Identifier(target)), [first, last]).fetchall()
        except psycopg.errors.UndefinedColumn:
            return None
        seconds = float(rows[1][0] - rows[0][0]) if len(rows) == 2 else 0.0
        return (last - first) / seconds if seconds > 0 else None


@maps_exceptions(psycopg.Error)
class ExistingTable:
    """A table or view of any form, named with or without its schema."""

    def __init__(self, endpoints: Endpoints, target: str) -> None:
        # PgBouncer may have no prepared statements.
        self._connection = connect(endpoints.sinks["postgres"].address, prepare_threshold=None)
        found: dict[str, tuple[int, str, str]] = {}
        for oid, schema, name, is_visible in self._connection.execute(read_sql("tables")):
            found |= dict.fromkeys([f"{schema}.{name}", *([name] if is_visible else [])], (oid, schema, name))
        if target not in found:
            raise StackError(f"postgres:{target}: there is no such table{did_you_mean(target, found)}")
        oid, *self._names = found[target]
        self.columns = {str(name): str(kind) for name, kind in self._connection.execute(read_sql("kinds"), [oid])}
        self.close = self._connection.close

    def rows(self, columns: Sequence[str], at_once: int) -> Iterator[list[dict[str, Any]]]:
        query = sql.SQL("SELECT row_to_json(held)::text FROM (SELECT {} FROM {}) AS held").format(
            sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(*self._names)
        )
        with self._connection.transaction():
            self._connection.execute(READ_ONLY)
            with self._connection.cursor(name=APPLICATION) as cursor:
                cursor.execute(query)
                while chunk := cursor.fetchmany(at_once):
                    yield [_parsed(text) or dict.fromkeys(columns) for (text,) in chunk]


def _parsed(text: str) -> Any:
    """The value of PostgreSQL's JSON; None if it is nested too deeply for Python."""
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return None


@maps_exceptions(psycopg.Error)
@dataclass(frozen=True)
class _Stamps(AbstractContextManager["_Stamps"]):
    """An `ArrivalWatch` of one table."""

    dsn: str
    target: str

    def __exit__(self, *ended: object) -> None:
        return

    def read(self, run: str, one_in: int) -> Arrivals:
        """Raises StackError if the table has no column "stored" with the time of insertion."""
        with closing(connect(self.dsn)) as connection:
            set_session(connection)
            query = audited_in(connection, self.target).statement("arrivals", self.target)
            try:
                rows = np.array(connection.execute(query, [run, one_in]).fetchall(), dtype=np.float64).reshape(-1, 2)
            except psycopg.errors.UndefinedColumn as error:
                lacks = str(error).strip().splitlines()[0]
                why = 'the latency needs a column "stored" with the insertion time, and when a record was due'
                raise StackError(f"{why}: {lacks}") from None
            offset_us, resolution_us = clock_offset(lambda: float(connection.execute(CLOCK).fetchall()[0][0]))
        return Arrivals(rows[:, 0], rows[:, 1] - offset_us, resolution_us)
