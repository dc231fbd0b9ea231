"""Plain clients of PostgreSQL, for its limit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import psycopg
from psycopg import sql

from sinkbench.services.failures import map_exceptions, maps_exceptions
from sinkbench.sinks.postgres.session import APPLICATION
from sinkbench.sinks.writing import Destination, Refused


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
