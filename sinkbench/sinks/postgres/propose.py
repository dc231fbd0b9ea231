"""A table for your own records, with indexes on the members that queries are likely to use."""

from __future__ import annotations

from pathlib import Path

from psycopg import sql

from loadgen.reading import read_text
from sinkbench.analysis.fields import Field, Kind, Place, Survey
from sinkbench.errors import TargetError
from sinkbench.sinks.postgres.schema import SCHEMA_TABLE
from sinkbench.sinks.values import Proposal

# Each index slows every insert; those of rarer members are proposed as comments.
MOST_INDEXES = 20
# A tsvector must have less than a megabyte.
LONGEST_SEARCHED = 200_000
# Half of the limit of a B-tree's row, in characters of several bytes each.
LONGEST_ORDERED = 600
WITHOUT = {
    Kind.SHAPE: "shapes need an extension, PostGIS",
    Kind.BOOLEAN: "it has two values",
    Kind.UNLIKE: "it is a value in some records and an object in others",
}
HEAD = """
-- Proposed by `sinkbench propose` for {source}, of which {records:,} records were looked at. Change it as you like:
-- every index costs each insert. A record that does not fit into an index, such as a text where all others have a
-- number, is refused by PostgreSQL.
"""


def propose_table(found: Survey, checkout: Path, source: str) -> Proposal:
    """Proposes postgres/schema.sql with indexes for such records. Raises TargetError if that file cannot be read."""
    usual = checkout / "postgres" / "schema.sql"
    try:
        table = read_text(usual, TargetError)
    except FileNotFoundError as error:
        raise TargetError(f"{usual}: cannot be used as a table: {error}") from None
    # One index covers a whole list.
    lines = dict.fromkeys([*map(_at_place, found.places), *map(_index, found.fields)])
    more = set([line for line in lines if not line.startswith("--")][MOST_INDEXES:])
    text = "\n".join(f"-- {line}" if line in more else line for line in lines)
    head = HEAD.format(source=" ".join(source.split()), records=found.records)
    notes = (f"{len(more)} further indexes of PostgreSQL's table are comments",) if more else ()
    return Proposal(".sql", f"{table.rstrip()}\n{head}\n{text}\n", notes)


def _at_place(each: Place) -> str:
    return _point(*(f"({_text(path)})::float8" for path in (each.latitude, each.longitude)))


def _index(each: Field) -> str:
    text, ends = _text(each.path), {Kind.WORD: LONGEST_ORDERED, Kind.TEXT: -1}
    if each.in_list:
        # For any content: WHERE payload -> 'list' @> '[...]'.
        return _made(f"USING gin ((payload -> {_quoted(each.path[0])}) jsonb_path_ops)")
    if each.kind in (Kind.WHOLE, Kind.DECIMAL):
        return _made(f"((({text})::numeric))")
    # A date is written so that it sorts as a text does.
    if each.kind is Kind.DATE or each.longest <= ends.get(each.kind, -1):
        return _made(f"(({text}))")
    if each.kind in ends and each.longest <= LONGEST_SEARCHED:
        return _made(f"USING gin (to_tsvector('simple', {text}))")
    if each.kind is Kind.POINT_TEXT:
        return _point(*(f"split_part({text}, ',', {part})::float8" for part in (1, 2)))
    if each.kind is Kind.POINT:
        coordinates = f"payload -> {' -> '.join(map(_quoted, (*each.path, 'coordinates')))}"
        return _point(*(f"({coordinates} ->> {part})::float8" for part in (1, 0)))
    why = WITHOUT.get(each.kind, f"its longest text has {each.longest:,} characters")
    return f"-- no index for {' '.join(each.name.split())}: {why}"


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


def _quoted(step: str) -> str:
    return sql.Literal(step).as_string(None).strip()
