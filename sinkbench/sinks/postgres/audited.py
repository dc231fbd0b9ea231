"""What the audit reads of a trial's table: the document in each row, or the columns with its members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from loadgen.checksum import parse
from sinkbench.errors import StackError, TargetError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.reading import SinkBloat

Connection = psycopg.Connection[Any]

COLUMNS = """
    SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = %s AND relname = %s AND attnum > 0 AND NOT attisdropped
"""
KEYED = """
    SELECT attrelid FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(%s)) AND attname = 'key'
        AND NOT attisdropped
"""
# A partitioned table itself has no pages.
SIZE = """
    WITH RECURSIVE parts(oid) AS (
        SELECT to_regclass(quote_ident(%s))::oid UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = oid
    ) SELECT sum(pg_total_relation_size(oid)) FROM parts
"""
BLOAT = """
    SELECT pg_stat_get_dead_tuples(to_regclass(quote_ident(%s))), deadlocks, xact_rollback
    FROM pg_stat_database WHERE datname = current_database()
"""
VERSIONS_AT_ONCE = 50_000
# COPY's binary format: a header of 19 bytes, then for each row of one bigint: number of fields, length, value.
COPY_HEADER_BYTES = 19
COPY_ROW = np.dtype([("fields", ">i2"), ("length", ">i4"), ("value", ">i8")])
COPY_TRAILER = b"\xff\xff"


@dataclass(frozen=True)
class Audited:
    """SQL for what is audited of a row, each as text, and for the record as JSON; the table's alias is `held`."""

    run: sql.SQL
    seq: sql.SQL
    due_us: sql.SQL
    document: sql.SQL


DOCUMENT = Audited(
    sql.SQL("payload #>> '{bench,run}'"),
    sql.SQL("payload #>> '{bench,seq}'"),
    sql.SQL("payload #>> '{bench,due_us}'"),
    sql.SQL("payload"),
)
"""For a table that keeps records as documents, in the column `payload`."""
ROW = Audited(
    sql.SQL("bench_run"), sql.SQL("bench_seq::text"), sql.SQL("bench_due_us::text"), sql.SQL("to_jsonb(held)")
)
"""For a table with a column for each member of a record, as `loadgen.forms` names them."""


def columns_of(connection: Connection, table: str, schema: str = "public") -> frozenset[str]:
    """The names of a table's columns; empty if there is no such table."""
    return frozenset(str(name) for (name,) in connection.execute(COLUMNS, [schema, table]).fetchall())


def audited_in(connection: Connection, table: str, schema: str = "public") -> Audited:
    """How to read a table; one that has neither form is read as documents."""
    columns = columns_of(connection, table, schema)
    return ROW if "payload" not in columns and {"bench_run", "bench_seq"} <= columns else DOCUMENT


def sequences(connection: Connection, table: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
    """`bench.seq` of every row of `run`, in chunks, in any order. Raises StackError if PostgreSQL's data breaks off."""
    of = audited_in(connection, table)
    query = sql.SQL(
        "COPY (SELECT ({seq})::bigint FROM {table} WHERE {run} = {name} AND {seq} IS NOT NULL) "
        "TO STDOUT (FORMAT binary)"
    ).format(seq=of.seq, table=sql.Identifier(table), run=of.run, name=sql.Literal(run))
    rest, header = b"", COPY_HEADER_BYTES
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for block in _joined(copy, 1 << 20):
            rest, header = (rest + block)[header:], 0
            whole = len(rest) // COPY_ROW.itemsize
            rows = np.frombuffer(rest, dtype=COPY_ROW, count=whole)
            rest = rest[whole * COPY_ROW.itemsize :]
            yield rows["value"].astype(np.int64)
    if rest != COPY_TRAILER:
        raise StackError(f"PostgreSQL's copy of {table} for the audit ended in the middle of a row")


def key_table(connection: Connection, table: str) -> int:
    """The OID of a table that has a column `key`; 0 if it has none or does not exist."""
    return next((int(found) for (found,) in connection.execute(KEYED, [table])), 0)


def disk_bytes(connection: Connection, table: str) -> int | None:
    """Bytes of a table's files, which include all of its pages, also those that are not written yet."""
    ((size,),) = connection.execute(SIZE, [table]).fetchall()
    return None if size is None else int(size)


@maps_exceptions(psycopg.Error)
class Documents:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def some(self, target: str, run: str, seqs: Sequence[int]) -> dict[int, Any]:
        of = audited_in(self._connection, target)
        query = sql.SQL("SELECT {seq}, {document} FROM {table} AS held WHERE {run} = %s AND {seq} = ANY(%s)").format(
            seq=of.seq, document=of.document, table=sql.Identifier(target), run=of.run
        )
        rows = self._connection.execute(query, [run, [str(seq) for seq in seqs]]).fetchall()
        return {int(seq): document for seq, document in rows}

    def all(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        of = audited_in(self._connection, target)
        if of is ROW:
            return
        chosen = sql.SQL("AND ({})::bigint % {} = 0").format(of.seq, sql.Literal(one_in)) if one_in > 1 else sql.SQL("")
        query = sql.SQL(
            "COPY (SELECT {document}::text FROM {table} WHERE {run} = {name} {chosen}) TO STDOUT (FORMAT binary)"
        ).format(document=of.document, table=sql.Identifier(target), run=of.run, name=sql.Literal(run), chosen=chosen)
        with self._connection.cursor() as cursor, cursor.copy(query) as copy:
            copy.set_types(["text"])
            rows = copy.rows()
            while chunk := list(islice(rows, at_once)):
                yield [_parsed(text) for (text,) in chunk]


@maps_exceptions(psycopg.Error)
class Changes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        query = sql.SQL(
            "COPY (SELECT key::text, (payload #>> '{{bench,seq}}')::bigint FROM {} "
            "WHERE payload #>> '{{bench,run}}' = {} AND payload #> '{{bench,seq}}' IS NOT NULL) TO STDOUT"
        ).format(sql.Identifier(target), sql.Literal(run))
        try:
            with self._connection.cursor() as cursor, cursor.copy(query) as copy:
                copy.set_types(["text", "int8"])
                rows = copy.rows()
                while chunk := list(islice(rows, VERSIONS_AT_ONCE)):
                    keys, seqs = zip(*chunk, strict=True)
                    yield list(keys), np.array(seqs, dtype=np.int64)
        except psycopg.errors.UndefinedColumn:
            raise TargetError(
                'the table has no column "key", by which changes are audited; give the pipeline such a table, as by'
                " target: postgres/keyed.sql"
            ) from None

    def bloat(self, target: str) -> SinkBloat:
        ((dead, deadlocks, rollbacks),) = self._connection.execute(BLOAT, [target]).fetchall()
        return SinkBloat(int(dead), int(deadlocks), int(rollbacks), disk_bytes(self._connection, target))


def _parsed(text: str) -> Any:
    """The value of PostgreSQL's JSON; None if its numbers or depth are beyond what Python reads."""
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return None


def _joined(blocks: Iterator[Any] | psycopg.Copy, least_bytes: int) -> Iterator[bytes]:
    """The same bytes in pieces of at least `least_bytes`: COPY returns a few rows at a time."""
    gathered: list[bytes] = []
    size = 0
    for block in blocks:
        gathered.append(bytes(block))
        size += len(block)
        if size >= least_bytes:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)
