"""A query for all sinks, whether two answers to it are equal, and SQL for any engine, by a dialect."""
# ruff: noqa: S608 - values go by placeholders, and dialects quote the names of fields

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, Self

from pydantic import ConfigDict, Field, model_validator

from sinkbench.yamlfile import Section, mistake

Value = str | int | float
Row = Sequence[Value | None]
# For a mean: sinks add in different orders.
TOLERANCE = 1e-9
_ONE_OF = ("is", "from", "before", "near", "words")


class _Part(Section):
    # `is` and `from` are Python keywords.
    model_config = ConfigDict(populate_by_name=True)


class Near(_Part):
    """A circle on the earth."""

    lat: Annotated[float, Field(ge=-90, le=90, strict=False)] = Field(description="latitude in degrees")
    lon: Annotated[float, Field(ge=-180, le=180, strict=False)] = Field(description="longitude in degrees")
    km: Annotated[float, Field(gt=0, le=5_000, strict=False)] = Field(description="maximum distance in kilometres")


class Condition(_Part):
    """A condition on a field: one value, a range, near a place, or a text that contains all of some words."""

    field: str = Field(min_length=1, description="path of a member; numbers are list positions: data.0.t")
    equals: Value | None = Field(default=None, alias="is", description="its value")
    start: Value | None = Field(default=None, alias="from", description="minimum; text is compared as text")
    before: Value | None = Field(default=None, description="exclusive maximum")
    near: Near | None = Field(default=None, description='the field is a place "LAT,LON" within this distance')
    words: str | None = Field(default=None, min_length=1, description="words that the text contains, in any order")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        ranged = self.start is not None or self.before is not None
        if sum([self.equals is not None, ranged, self.near is not None, self.words is not None]) != 1:
            raise mistake(
                f"the condition on '{self.field}' must say one of {', '.join(_ONE_OF[:2])} and/or before, near, words"
            )
        if isinstance(self.start, str) != isinstance(self.before, str) and None not in (self.start, self.before):
            raise mistake(f"the range of '{self.field}' goes from text to a number; make both alike")
        return self

    @property
    def numeric(self) -> bool:
        return any(isinstance(each, int | float) for each in (self.equals, self.start, self.before))


class Newest(_Part):
    """Which of the matching records are returned."""

    by: str = Field(min_length=1, description="field that orders records by age, compared as text")
    most: Annotated[int, Field(gt=0, le=1_000)] = Field(default=20, description="maximum number of returned records")


class Groups(_Part):
    """What is counted and averaged over matching records: a row for each key and hour."""

    by: str = Field(min_length=1, description="field whose values are keys")
    hour: str = Field(min_length=1, description='field with a time, "YYYY-MM-DD HH:MM"')
    measure: str = Field(min_length=1, description="number whose minimum, maximum and mean are returned")


class Query(_Part):
    """A question that both sinks must answer alike. Without `newest` and `groups` matching records are only counted."""

    name: str = Field(description="its name, which is that of its file")
    asks: str = Field(min_length=1, description="the question, in words")
    where: tuple[Condition, ...] = Field(default=(), strict=False, description="conditions; all must hold")
    member: dict[str, Any] | None = Field(default=None, description="a part that the document contains")
    newest: Newest | None = Field(default=None, description="return the newest records")
    groups: Groups | None = Field(default=None, description="return groups instead of records")

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not self.where and not self.member:
            raise mistake("a query needs a condition: 'where', 'member' or both")
        if self.newest is not None and self.groups is not None:
            raise mistake("a query returns the newest records or groups, not both", "groups")
        return self


@dataclass(frozen=True)
class Answer:
    """A sink's answer; `by_index` is None if unknown. `rows` have the `bench.seq` of each returned record, newest
    first, or each group (key, hour, records, minimum, maximum, mean), by key and hour."""

    found: int
    rows: Sequence[Row] = ()
    by_index: bool | None = None


def same_answer(one: Answer, other: Answer) -> bool:
    """Whether two answers are equal, except for the last digits of a mean and how they were found."""
    if one.found != other.found or len(one.rows) != len(other.rows):
        return False
    pairs = zip(one.rows, other.rows, strict=True)
    return all(len(row) == len(there) and all(map(_same, row, there)) for row, there in pairs)


def members(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Value]]:
    """Each value in a part of a document, by its dotted path without list positions."""
    for name, value in document.items():
        path = f"{above}.{name}" if above else str(name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield from members(each, path)
            else:
                yield path, each


def _same(one: Value | None, other: Value | None) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return one == other


EARTH_METRES = 6_371_008.7714
"""The mean radius of the earth (IUGG), also used by Elasticsearch."""


class Dialect(Protocol):
    """How an engine writes what SQL leaves open. Each expression is valid in WHERE, SELECT and ORDER BY."""

    placeholder: str

    def text(self, field: str) -> str:
        """The field as text."""

    def number(self, field: str) -> str:
        """The field as a double."""

    def seq(self) -> str:
        """`bench.seq` as a whole number."""

    def lat_lon(self, field: str) -> tuple[str, str]:
        """Latitude and longitude of the field, in degrees."""

    def within(self, field: str, south: float, west: float, north: float, east: float) -> tuple[str, list[Any]]:
        """A condition that an index supports: the place lies between these degrees; and its values."""

    def has_words(self, field: str, words: str) -> tuple[str, list[Any]]:
        """A condition: the text contains all of these words; and its values."""

    def contains(self, part: dict[str, Any]) -> tuple[str, list[Any]]:
        """A condition: the document contains this part; and its values."""


def select(query: Query, source: str, dialect: Dialect) -> tuple[str, list[Any]]:
    """The statement that answers a query from a table or view, and its parameter values; `answer_of` reads its rows."""
    conditions = [_condition(each, dialect) for each in query.where]
    if query.member:
        conditions.append(dialect.contains(query.member))
    where = " AND ".join(text for text, _ in conditions)
    values = [value for _, each in conditions for value in each]
    if query.groups is not None:
        key, measure = dialect.text(query.groups.by), dialect.number(query.groups.measure)
        hour = f"left({dialect.text(query.groups.hour)}, 13)"
        figures = f"count(*), min({measure}), max({measure}), avg({measure})"
        return f"SELECT {key}, {hour}, {figures} FROM {source} WHERE {where} GROUP BY 1, 2 ORDER BY 1, 2", values
    if query.newest is not None:
        newest = f"{dialect.text(query.newest.by)} DESC, {dialect.seq()} DESC LIMIT {query.newest.most}"
        return f"SELECT count(*) OVER (), {dialect.seq()} FROM {source} WHERE {where} ORDER BY {newest}", values
    return f"SELECT count(*) FROM {source} WHERE {where}", values


def answer_of(query: Query, rows: Sequence[Sequence[Any]], by_index: bool | None = None) -> Answer:
    if query.groups is not None:
        groups = sorted((tuple(row) for row in rows), key=lambda row: (str(row[0]), str(row[1])))
        return Answer(sum(int(row[2]) for row in rows), groups, by_index)
    if query.newest is not None:
        return Answer(int(rows[0][0]) if rows else 0, [(int(row[1]),) for row in rows], by_index)
    return Answer(int(rows[0][0]), (), by_index)


def _condition(asked: Condition, dialect: Dialect) -> tuple[str, list[Any]]:
    if asked.near is not None:
        return _near(asked.field, asked.near, dialect)
    if asked.words is not None:
        return dialect.has_words(asked.field, asked.words)
    field = dialect.number(asked.field) if asked.numeric else dialect.text(asked.field)
    compared = {"=": asked.equals, ">=": asked.start, "<": asked.before}
    said = [(sign, value) for sign, value in compared.items() if value is not None]
    return " AND ".join(f"{field} {sign} {dialect.placeholder}" for sign, _ in said), [value for _, value in said]


def _near(field: str, near: Near, dialect: Dialect) -> tuple[str, list[Any]]:
    """Within N kilometres on a sphere: a box for the index, then the haversine formula."""
    degrees = math.degrees(near.km * 1000 / EARTH_METRES)
    # Circles of longitude are smaller near a pole.
    widest = math.cos(math.radians(min(abs(near.lat) + degrees, 90.0)))
    wide = min(degrees / widest, 180.0) if widest > 1e-6 else 180.0
    box, values = dialect.within(field, near.lat - degrees, near.lon - wide, near.lat + degrees, near.lon + wide)
    lat, lon = dialect.lat_lon(field)
    half_lat, half_lon = f"radians({lat} - {near.lat!r}) / 2", f"radians({lon} - {near.lon!r}) / 2"
    square = f"power(sin({half_lat}), 2) + cos(radians({near.lat!r})) * cos(radians({lat})) * power(sin({half_lon}), 2)"
    return f"{box} AND 2 * {EARTH_METRES!r} * asin(sqrt({square})) <= {near.km * 1000!r}", values
