"""A table for your own records, with indexes on the members that queries are likely to use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

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
    members: list[Field | Place] = [*found.places, *_distinct(found.fields)]
    lines = [line for each in members for line in _index(each)]
    made = [line for line in lines if not line.startswith("--")]
    more = set(made[MOST_INDEXES:])
    text = "\n".join(f"-- {line}" if line in more else line for line in lines)
    head = HEAD.format(source=" ".join(source.split()), records=found.records)
    notes = (f"{len(more)} further indexes of PostgreSQL's table are comments",) if more else ()
    return Proposal(".sql", f"{table.rstrip()}\n{head}\n{text}\n", notes)


def _distinct(fields: Sequence[Field]) -> Iterator[Field]:
    """The members, with only the first of each list: one index covers the whole list."""
    lists: set[str] = set()
    for each in fields:
        if not each.in_list:
            yield each
        elif each.path[0] not in lists:
            lists.add(each.path[0])
            yield each


def _index(each: Field | Place) -> list[str]:
    if isinstance(each, Place):
        latitude, longitude = (f"({_text(path)})::float8" for path in (each.latitude, each.longitude))
        return [_made(f"USING gist (point({longitude}, {latitude}))")]
    text = _text(each.path)
    if each.in_list:
        # For any content: WHERE payload -> 'list' @> '[...]'.
        return [_made(f"USING gin ((payload -> {_quoted(each.path[0])}) jsonb_path_ops)")]
    match each.kind:
        case Kind.WHOLE | Kind.DECIMAL:
            return [_made(f"((({text})::numeric))")]
        case Kind.DATE:
            return [f"-- {_shown(each)} is a date, written so that it sorts as a text does:", _made(f"(({text}))")]
        case Kind.WORD if each.longest <= LONGEST_ORDERED:
            return [_made(f"(({text}))")]
        case Kind.TEXT | Kind.WORD if each.longest <= LONGEST_SEARCHED:
            return [_made(f"USING gin (to_tsvector('simple', {text}))")]
        case Kind.POINT_TEXT:
            latitude, longitude = (f"split_part({text}, ',', {part})::float8" for part in (1, 2))
            return [_made(f"USING gist (point({longitude}, {latitude}))")]
        case Kind.POINT:
            coordinates = f"payload -> {' -> '.join(map(_quoted, (*each.path, 'coordinates')))}"
            longitude, latitude = (f"({coordinates} ->> {part})::float8" for part in (0, 1))
            return [_made(f"USING gist (point({longitude}, {latitude}))")]
        case Kind.SHAPE:
            return [f"-- no index for {_shown(each)}: shapes need an extension, PostGIS"]
        case Kind.BOOLEAN:
            return [f"-- no index for {_shown(each)}: it has two values"]
        case Kind.UNLIKE:
            return [f"-- no index for {_shown(each)}: it is a value in some records and an object in others"]
        case _:
            return [f"-- no index for {_shown(each)}: its longest text has {each.longest:,} characters"]


def _made(what: str) -> str:
    return f"CREATE INDEX ON {SCHEMA_TABLE} {what};"


def _text(path: tuple[str, ...]) -> str:
    steps = [_quoted(step) for step in path]
    if len(steps) == 1:
        return f"payload ->> {steps[0]}"
    # Arrows instead of a path in braces, whose names would need other quotes.
    return f"payload -> {' -> '.join(steps[:-1])} ->> {steps[-1]}"


def _quoted(step: str) -> str:
    if "\\" in step:
        escaped = step.replace("\\", "\\\\").replace("'", "''")
        return f"E'{escaped}'"
    return "'" + step.replace("'", "''") + "'"


def _shown(each: Field) -> str:
    """A member's name on one line, for a comment."""
    return " ".join(each.name.split())
