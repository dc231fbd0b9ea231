"""Members of records in SQL: queries, whether an index can answer them, and a table proposed for your own records."""

import json
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from loadgen.reading import read_text
from sinkbench.analysis.fields import Field, Kind, Survey
from sinkbench.analysis.query import Answer, Dialect, Query, answer_of, select
from sinkbench.errors import TargetError
from sinkbench.sinks.kind import ASK_SECONDS
from sinkbench.sinks.postgres.session import SCHEMA_TABLE
from sinkbench.sinks.values import Proposal

# The view in a trial's schema that maps members to columns; its columns are named by the members' paths.
VIEW = "readings"
HAS_VIEW = "SELECT to_regclass(format('%%I.%%I', %s::text, %s::text))"

# "latitude,longitude", without an exponent.
PLACE = "'^-?[0-9]+[.]?[0-9]*, ?-?[0-9]+[.]?[0-9]*$'"

# Each index slows every insert; those of rarer members are proposed as comments.
MOST_INDEXES = 20
# A tsvector must have less than a megabyte.
LONGEST_SEARCHED = 200_000
# Half of the limit of a B-tree's row, in characters of several bytes each.
LONGEST_ORDERED = 600
HEAD = """
-- Proposed by `sinkbench propose` for {source}, from {records:,} records. Every index costs each insert, and a record
-- that does not fit into one, such as a text where all others have a number, is refused. Change it as you like.
"""


class Table(Dialect):
    """A table of documents, where an index helps only if it is on exactly these expressions; or `in_columns`, the view
    of a table with members in columns, where a place is a `point` of longitude and latitude."""

    placeholder = "%s"

    def __init__(self, *, in_columns: bool) -> None:
        self._in_columns = in_columns

    def text(self, field: str) -> str:
        if self._in_columns:
            return sql.Identifier(field).as_string(None).replace("%", "%%")
        path = ",".join(json.dumps(part, ensure_ascii=False) for part in field.split("."))
        literal = _quoted(f"{{{path}}}").replace("%", "%%")
        return f"(payload #>> {literal})"

    def number(self, field: str) -> str:
        if self._in_columns:
            return self.text(field)
        # What is no number is null.
        steps = (f"[{key}]" if key.isdigit() else f".{json.dumps(key, ensure_ascii=False)}" for key in field.split("."))
        path = _quoted(f"${''.join(steps)}.double()").replace("%", "%%")
        return f"jsonb_path_query_first(payload, {path}, '{{}}', true)::float8"

    def seq(self) -> str:
        return self.text("bench.seq") if self._in_columns else f"{self.text('bench.seq')}::bigint"

    def has_words(self, field: str, words: str) -> tuple[str, list[Any]]:
        return f"to_tsvector('simple', {self.text(field)}) @@ plainto_tsquery('simple', %s)", [words]

    def contains(self, part: dict[str, Any]) -> tuple[str, list[Any]]:
        return "payload @> %s::jsonb", [json.dumps(part)]

    def lat_lon(self, field: str) -> tuple[str, str]:
        return f"({self._place(field)})[1]", f"({self._place(field)})[0]"

    def within(self, field: str, south: float, west: float, north: float, east: float) -> tuple[str, list[Any]]:
        corners = "box(point(%s::float8, %s::float8), point(%s::float8, %s::float8))"
        return f"{self._place(field)} <@ {corners}", [west, south, east, north]

    def _place(self, field: str) -> str:
        text = self.text(field)
        lat, lon = (f"split_part({text}, ',', {part})::float8" for part in (1, 2))
        return text if self._in_columns else f"(CASE WHEN {text} ~ {PLACE} THEN point({lon}, {lat}) END)"


def _quoted(text: str) -> str:
    # No record with this character in a name can be stored.
    return sql.Literal(text.replace("\0", "")).as_string(None).strip()


def ask(connection: psycopg.Connection[Any], target: str, query: Query, explain: bool) -> Answer:
    """The answer from a table, or from its view `readings` if it has one. An index can find the records if PostgreSQL's
    plan, with sequential scans disabled, has an index condition."""
    ((view,),) = connection.execute(HAS_VIEW, [target, VIEW]).fetchall()
    dialect = Table(in_columns=view is not None)
    source = sql.Identifier(*((target, VIEW) if view is not None else ("public", target))).as_string(connection)
    statement, values = select(query, source, dialect)
    # EXPLAIN takes no server-side parameters.
    with connection.transaction(), psycopg.ClientCursor(connection) as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(round(ASK_SECONDS * 1000))])
        rows = cursor.execute(statement.encode(), values).fetchall()
        if not explain:
            return answer_of(query, rows)
        cursor.execute("SET LOCAL enable_seqscan = off")
        # The newest may be found by a backward scan of an index of times, which says nothing about the conditions.
        counted, _ = select(query.model_copy(update={"newest": None}), source, dialect)
        ((explained,),) = cursor.execute(b"EXPLAIN (FORMAT JSON) " + counted.encode(), values).fetchall()
        return answer_of(query, rows, '"Index Cond"' in json.dumps(explained))


def propose_table(found: Survey, checkout: Path, source: str) -> Proposal:
    """Proposes postgres/schema.sql with indexes for such records. Raises TargetError if that file cannot be read."""
    usual = checkout / "postgres" / "schema.sql"
    try:
        table = read_text(usual, TargetError)
    except FileNotFoundError as error:
        raise TargetError(f"{usual}: cannot be used as a table: {error}") from None
    # One index covers a whole list.
    places = [_point(*(f"({_text(path)})::float8" for path in (at.latitude, at.longitude))) for at in found.places]
    lines = dict.fromkeys([*places, *map(_index, found.fields)])
    more = set([line for line in lines if not line.startswith("--")][MOST_INDEXES:])
    text = "\n".join(f"-- {line}" if line in more else line for line in lines)
    head = HEAD.format(source=" ".join(source.split()), records=found.records)
    left_out = {each.name: why for each in found.fields if (why := refusal(each)) is not None}
    notes = (f"{len(more)} further indexes of PostgreSQL's table are comments",) if more else ()
    return Proposal(".sql", f"{table.rstrip()}\n{head}\n{text}\n", left_out, notes)


def refusal(each: Field) -> str | None:
    """Why PostgreSQL has no index for a member; None if it has one. An expression can have any name."""
    if each.in_list:
        return None
    if each.kind in (Kind.TEXT, Kind.WORD) and each.longest > LONGEST_SEARCHED:
        return f"texts of more than {LONGEST_SEARCHED:,} characters"
    return str(each.kind) if each.kind in (Kind.UNLIKE, Kind.SHAPE, Kind.BOOLEAN) else None


def _index(each: Field) -> str:
    if (why := refusal(each)) is not None:
        return f"-- no index for {each.name}: {why}"
    text = _text(each.path)
    if each.in_list:
        # For any content: WHERE payload -> 'list' @> '[...]'.
        return _made(f"USING gin ((payload -> {_quoted(each.path[0])}) jsonb_path_ops)")
    if each.kind in (Kind.WHOLE, Kind.DECIMAL):
        return _made(f"((({text})::numeric))")
    # A date is written so that it sorts as a text does.
    if each.kind is Kind.DATE or (each.kind is Kind.WORD and each.longest <= LONGEST_ORDERED):
        return _made(f"(({text}))")
    if each.kind is Kind.POINT_TEXT:
        return _point(*(f"split_part({text}, ',', {part})::float8" for part in (1, 2)))
    if each.kind is Kind.POINT:
        coordinates = f"payload -> {' -> '.join(map(_quoted, (*each.path, 'coordinates')))}"
        return _point(*(f"({coordinates} ->> {part})::float8" for part in (1, 0)))
    return _made(f"USING gin (to_tsvector('simple', {text}))")


def _point(latitude: str, longitude: str) -> str:
    return _made(f"USING gist (point({longitude}, {latitude}))")


def _made(what: str) -> str:
    return f"CREATE INDEX ON {SCHEMA_TABLE} {what};"


def _text(path: tuple[str, ...]) -> str:
    steps = [_quoted(step) for step in path]
    if len(steps) == 1:
        return f"payload ->> {steps[0]}"
    # Arrows instead of a path in braces, whose names would need other quotes.
    return f"payload -> {' -> '.join(steps[:-1])} ->> {steps[-1]}"
