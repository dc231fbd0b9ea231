"""What sinkbench itself writes to a table: as a plain client, and before a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import psycopg
from psycopg import sql

from sinkbench.services.failures import map_exceptions, maps_exceptions
from sinkbench.sinks.postgres.documents import key_table
from sinkbench.sinks.postgres.session import APPLICATION, Connection
from sinkbench.sinks.values import Destination, Refused

ROWS_AT_ONCE = 250_000
# A row for each number, with the documents in turn. Keys rise with the numbers, which is cheap for the index, and cover
# the range of the stations' ids, so that a trial's keys fall among them.
NO_KEY = (sql.SQL(""), sql.SQL(""))
KEY = "1000000 + number * 9000000 / {} || '-before-' || lpad(number::text, 10, '0')"
COPIES = """
    INSERT INTO {} ({}payload) SELECT {}document FROM generate_series(%s::bigint, %s::bigint) AS number
    JOIN unnest(%s::jsonb[]) WITH ORDINALITY AS kept (document, place) ON place = 1 + number %% %s
"""


@maps_exceptions(psycopg.Error)
class _Connection:
    def __init__(self, to: Destination) -> None:
        self._connection = psycopg.connect(
            to.endpoint.address, autocommit=True, application_name=APPLICATION, prepare_threshold=None
        )
        self._connection.execute("SET search_path TO public")
        self._table = sql.Identifier(to.target)

    def close(self) -> None:
        self._connection.close()


@maps_exceptions(psycopg.Error)
class Copy(_Connection):
    """One COPY per batch, whose data is encoded in advance."""

    def __init__(self, to: Destination) -> None:
        super().__init__(to)
        self._statement = sql.SQL("COPY {} (payload) FROM STDIN").format(self._table)

    def batch(self, records: Sequence[bytes]) -> bytes:
        return b"".join(_escaped(record) + b"\n" for record in records)

    def write(self, batch: bytes) -> None:
        with _refusals(), self._connection.cursor() as cursor, cursor.copy(self._statement) as copy:
            copy.write(batch)


def _refusals() -> AbstractContextManager[None]:
    """Raises PostgreSQL's errors about a record, not those about a connection, as Refused."""
    return map_exceptions(psycopg.DataError, psycopg.IntegrityError, to=Refused)


def _escaped(record: bytes) -> bytes:
    """A value in COPY's text format; a user's record may have several lines."""
    for sign, escape in ((b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t")):
        record = record.replace(sign, escape)
    return record


@maps_exceptions(psycopg.Error)
class Insert(_Connection):
    """One INSERT of many rows per batch, whose statement is made in advance."""

    def batch(self, records: Sequence[bytes]) -> bytes:
        begins = sql.SQL("INSERT INTO {} (payload) VALUES ").format(self._table).as_bytes(self._connection)
        return begins + b",".join(b"('" + record.replace(b"'", b"''") + b"')" for record in records)

    def write(self, batch: bytes) -> None:
        with _refusals():
            self._connection.execute(batch)


@maps_exceptions(psycopg.Error)
class Filling:
    def __init__(self, connection: Connection, rest: Callable[[], None]) -> None:
        """`rest` is called when all rows are inserted."""
        self._connection = connection
        self._rest = rest

    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        table = sql.Identifier(target)
        key = sql.SQL(KEY).format(sql.Literal(rows))
        columns, values = (sql.SQL("key, "), key + sql.SQL(", ")) if key_table(self._connection, target) else NO_KEY
        query = sql.SQL(COPIES).format(table, columns, values)
        texts = [document.decode() for document in documents]
        for first in range(0, rows, ROWS_AT_ONCE):
            end = min(first + ROWS_AT_ONCE, rows)
            self._connection.execute(query, [first, end - 1, texts, len(texts)])
            yield end
        # Otherwise autovacuum would run during the trial.
        self._connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))
        self._rest()
