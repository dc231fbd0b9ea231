"""Rows that are there before a trial: PostgreSQL makes copies of documents itself, faster than COPY would read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

__all__ = ["fill"]

ROWS_AT_ONCE = 250_000
# A row for each number, with the documents in turn. Keys rise with the numbers, which spares the index, and lie all
# over the range of the stations' ids, so that those of a trial fall among them.
KEY = "1000000 + number * 9000000 / {} || '-before-' || lpad(number::text, 10, '0')"
COPIES = """
    INSERT INTO {} ({}payload) SELECT {}document FROM generate_series(%s::bigint, %s::bigint) AS number
    JOIN unnest(%s::jsonb[]) WITH ORDINALITY AS kept (document, place) ON place = 1 + number %% %s
"""


def fill(
    connection: psycopg.Connection[Any], target: str, rows: int, documents: Sequence[bytes], *, keyed: bool
) -> Iterator[int]:
    """Puts rows into the table `target`, and yields from time to time how many are there.

    Args:
        connection: commits by itself.
        rows: how many.
        documents: what the column `payload` gets, in turn.
        keyed: whether the column `key` gets a key of each row's own.
    """
    table = sql.Identifier(target)
    key = sql.SQL(KEY).format(sql.Literal(rows))
    columns, values = (sql.SQL("key, "), key + sql.SQL(", ")) if keyed else (sql.SQL(""), sql.SQL(""))
    query = sql.SQL(COPIES).format(table, columns, values)
    texts = [document.decode() for document in documents]
    for first in range(0, rows, ROWS_AT_ONCE):
        end = min(first + ROWS_AT_ONCE, rows)
        connection.execute(query, [first, end - 1, texts, len(texts)])
        yield end
    # Else autovacuum would come in the middle of the trial.
    connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))
