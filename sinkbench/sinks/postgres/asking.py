"""Queries in PostgreSQL, and whether an index can answer them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from sinkbench.analysis.query import Answer, Query
from sinkbench.analysis.sql import Dialect, answer_of, select
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.kind import ASK_SECONDS

VIEW = "readings"
"""The view in a trial's schema that maps members to columns; its columns are named by the members' paths."""
HAS_VIEW = (
    "SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %s AND relname = %s"
)

Connection = psycopg.Connection[Any]


class _Dialect:
    placeholder = "%s"

    def text(self, field: str) -> str:
        raise NotImplementedError

    def has_words(self, field: str, words: str) -> tuple[str, list[Any]]:
        return f"to_tsvector('simple', {self.text(field)}) @@ plainto_tsquery('simple', %s)", [words]

    def contains(self, part: dict[str, Any]) -> tuple[str, list[Any]]:
        return "payload @> %s::jsonb", [json.dumps(part)]

    def place(self, field: str) -> str:
        raise NotImplementedError

    def lat_lon(self, field: str) -> tuple[str, str]:
        return f"({self.place(field)})[1]", f"({self.place(field)})[0]"

    def within(self, field: str, south: float, west: float, north: float, east: float) -> tuple[str, list[Any]]:
        corners = "box(point(%s::float8, %s::float8), point(%s::float8, %s::float8))"
        return f"{self.place(field)} <@ {corners}", [west, south, east, north]


class Document(_Dialect):
    """A table of documents. An index helps only if it is on exactly these expressions."""

    def _at(self, field: str) -> str:
        path = "{" + ",".join(json.dumps(part, ensure_ascii=False) for part in field.split(".")) + "}"
        return f"payload #>> {_literal(path)}"

    def text(self, field: str) -> str:
        return f"({self._at(field)})"

    def number(self, field: str) -> str:
        return f"({self._at(field)})::float8"

    def seq(self) -> str:
        return f"({self._at('bench.seq')})::bigint"

    def place(self, field: str) -> str:
        lat, lon = (f"split_part({self._at(field)}, ',', {part})::float8" for part in (1, 2))
        return f"point({lon}, {lat})"


class Columns(_Dialect):
    """The view of a table with members in columns; a place is a `point` of longitude and latitude."""

    def text(self, field: str) -> str:
        return '"' + field.replace('"', '""').replace("%", "%%") + '"'

    def number(self, field: str) -> str:
        return self.text(field)

    def seq(self) -> str:
        return self.text("bench.seq")

    def place(self, field: str) -> str:
        return self.text(field)


@maps_exceptions(psycopg.Error)
class Queries:
    """Queries a table, or its view `readings` if it has one. An index can find the records if PostgreSQL's plan, with
    sequential scans disabled, has an index condition.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        dialect: Dialect = Document()
        source = sql.SQL("public.{}").format(sql.Identifier(target)).as_string(self._connection)
        if self._connection.execute(HAS_VIEW, [target, VIEW]).fetchall():
            dialect, source = Columns(), sql.Identifier(target, VIEW).as_string(self._connection)
        statement, values = select(query, source, dialect)
        # EXPLAIN takes no server-side parameters.
        with self._connection.transaction(), psycopg.ClientCursor(self._connection) as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(round(ASK_SECONDS * 1000))])
            rows = cursor.execute(statement.encode(), values).fetchall()
            if not explain:
                return answer_of(query, rows)
            cursor.execute("SET LOCAL enable_seqscan = off")
            # The newest may be found by a backward scan of an index of times, which says nothing about the conditions.
            counted, _ = select(query.model_copy(update={"newest": None}), source, dialect)
            ((explained,),) = cursor.execute(b"EXPLAIN (FORMAT JSON) " + counted.encode(), values).fetchall()
            return answer_of(query, rows, any("Index Cond" in node for node in _nodes(explained[0]["Plan"])))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from _nodes(below)


def _literal(text: str) -> str:
    # A backslash escapes within the array, not within the string.
    return "'" + text.replace("'", "''").replace("%", "%%") + "'"
