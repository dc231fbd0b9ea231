"""A query as SQL for any engine; a dialect covers the differences."""
# ruff: noqa: S608 - values go by placeholders, and dialects quote the names of fields

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from sinkbench.analysis.query import Answer, Condition, Near, Query

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
        return Answer(sum(int(row[2]) for row in rows), sorted((tuple(row) for row in rows), key=_key), by_index)
    if query.newest is not None:
        return Answer(int(rows[0][0]) if rows else 0, [(int(row[1]),) for row in rows], by_index)
    return Answer(int(rows[0][0]), (), by_index)


def _key(row: Sequence[Any]) -> tuple[str, str]:
    # Engines have different collations.
    return str(row[0]), str(row[1])


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
    haversine = (
        f"power(sin({half_lat}), 2) + cos(radians({near.lat!r})) * cos(radians({lat})) * power(sin({half_lon}), 2)"
    )
    return f"{box} AND 2 * {EARTH_METRES!r} * asin(sqrt({haversine})) <= {near.km * 1000!r}", values
