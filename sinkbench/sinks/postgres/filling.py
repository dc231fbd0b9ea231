"""Inserts rows before a trial: PostgreSQL copies documents itself, faster than COPY would read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import psycopg
from psycopg import sql

from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.postgres.audited import key_table
from sinkbench.sinks.postgres.session import Connection

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
