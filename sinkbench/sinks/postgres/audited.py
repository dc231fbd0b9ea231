"""What the audit reads of a trial's table: of the document in each row, or of columns that hold its members."""

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
from sinkbench.errors import StackError

__all__ = ["DOCUMENT", "ROW", "Audited", "audited_in", "columns_of", "contents", "documents", "sequences"]

Connection = psycopg.Connection[Any]

COLUMNS = """
    SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = %s AND relname = %s AND attnum > 0 AND NOT attisdropped
"""
# COPY's binary format: a header of 19 bytes, then for each row of one bigint: number of fields, length, value.
COPY_HEADER_BYTES = 19
COPY_ROW = np.dtype([("fields", ">i2"), ("length", ">i4"), ("value", ">i8")])
COPY_TRAILER = b"\xff\xff"


@dataclass(frozen=True)
class Audited:
    """SQL for what is audited of a row, each as text, and for all of it as JSON; the table is called `held`."""

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
"""Of a table that keeps records as documents, in the column `payload`."""
ROW = Audited(
    sql.SQL("bench_run"), sql.SQL("bench_seq::text"), sql.SQL("bench_due_us::text"), sql.SQL("to_jsonb(held)")
)
"""Of a table with a column for each member of a record, as `loadgen.forms` names them."""


def columns_of(connection: Connection, table: str, schema: str = "public") -> frozenset[str]:
    """The names of a table's columns; none if there is no such table."""
    return frozenset(str(name) for (name,) in connection.execute(COLUMNS, [schema, table]).fetchall())


def audited_in(connection: Connection, table: str, schema: str = "public") -> Audited:
    """What is to be read of a table; of one that has neither, its document."""
    columns = columns_of(connection, table, schema)
    return ROW if "payload" not in columns and {"bench_run", "bench_seq"} <= columns else DOCUMENT


def sequences(connection: Connection, table: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
    """`bench.seq` of every row whose `bench.run` is `run`, in chunks, in any order.

    Raises StackError if what PostgreSQL sends breaks off.
    """
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


def documents(connection: Connection, table: str, run: str, seqs: Sequence[int]) -> dict[int, Any]:
    """What the table holds of the records whose `bench.run` is `run` and whose `bench.seq` is in `seqs`, by that."""
    of = audited_in(connection, table)
    query = sql.SQL("SELECT {seq}, {document} FROM {table} AS held WHERE {run} = %s AND {seq} = ANY(%s)").format(
        seq=of.seq, document=of.document, table=sql.Identifier(table), run=of.run
    )
    rows = connection.execute(query, [run, [str(seq) for seq in seqs]]).fetchall()
    return {int(seq): document for seq, document in rows}


def contents(connection: Connection, table: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
    """The documents of one in `one_in` rows whose `bench.run` is `run`, so many at once; none of a table of columns."""
    of = audited_in(connection, table)
    if of is ROW:
        return
    chosen = sql.SQL("AND ({})::bigint % {} = 0").format(of.seq, sql.Literal(one_in)) if one_in > 1 else sql.SQL("")
    query = sql.SQL(
        "COPY (SELECT {document}::text FROM {table} WHERE {run} = {name} {chosen}) TO STDOUT (FORMAT binary)"
    ).format(document=of.document, table=sql.Identifier(table), run=of.run, name=sql.Literal(run), chosen=chosen)
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        copy.set_types(["text"])
        rows = copy.rows()
        while chunk := list(islice(rows, at_once)):
            yield [_parsed(text) for (text,) in chunk]


def _parsed(text: str) -> Any:
    """The value of what PostgreSQL holds as JSON; None if its numbers or depths are beyond what Python reads."""
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return None


def _joined(blocks: Iterator[Any] | psycopg.Copy, least_bytes: int) -> Iterator[bytes]:
    """The same bytes in pieces of at least `least_bytes`: COPY hands out a few rows at a time."""
    gathered: list[bytes] = []
    size = 0
    for block in blocks:
        gathered.append(bytes(block))
        size += len(block)
        if size >= least_bytes:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)
