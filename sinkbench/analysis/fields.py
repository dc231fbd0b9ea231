"""The fields of JSON records, from which an index or a table can be proposed."""

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

Path = tuple[str, ...]


class Kind(StrEnum):
    """The kind of all values of a member; null and missing values do not count."""

    WHOLE = "whole number"
    DECIMAL = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    WORD = "id or word"
    TEXT = "text"
    POINT_TEXT = "latitude,longitude"
    POINT = "GeoJSON point"
    SHAPE = "GeoJSON shape"
    UNLIKE = "a value in some records, an object in others"
    """A value in some records, an object in others: no index can store both."""


@dataclass(frozen=True)
class Field:
    """A member of the records: `records` have a value in it, `longest` is the length of its longest text in
    characters, `date_format` one of `DATE_FORMATS`, and `as_text` means a number written as text."""

    path: Path
    kind: Kind
    records: int
    in_list: bool = False
    longest: int = 0
    date_format: str | None = None
    as_text: bool = False

    @property
    def name(self) -> str:
        name = ".".join(self.path)
        return (name if name.isprintable() and name.strip() else repr(name))[:80]


@dataclass(frozen=True)
class Place:
    """Latitude and longitude in two members of one object."""

    latitude: Path
    longitude: Path


@dataclass(frozen=True)
class Survey:
    """N records' members, the most frequent first, pairs of numbers that are places, and all paths, also of nulls."""

    records: int
    fields: Sequence[Field]
    places: Sequence[Place]
    paths: Collection[Path]


DATE_FORMATS = {
    "yyyy-MM-dd": re.compile(r"\d{4}-\d\d-\d\d"),
    "yyyy-MM-dd HH:mm": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"),
    "yyyy-MM-dd HH:mm:ss": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
    "strict_date_optional_time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?"),
}
"""Recognized date formats by Elasticsearch's names. All sort as texts do."""

_DECIMAL_TEXT = re.compile(r"-?(0|[1-9]\d{0,14})\.\d{1,15}")
# Without a decimal point it could be a number with a thousands separator.
_POINT_TEXT = re.compile(r"(-?\d{1,2}\.\d+), ?(-?\d{1,3}\.\d+)")
_GEOMETRIES = {"LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon"}
_LATITUDES = ("lat", "latitude")
_LONGITUDES = ("lon", "lng", "long", "longitude")
_LARGEST_LONG = 2**63 - 1
# A text with more words, or longer, is searched by its words and not as a whole.
_MOST_WORDS, _LONGEST_WORD = 4, 256


@dataclass
class _Seen:
    kinds: Counter[str] = field(default_factory=Counter)
    records: int = 0
    last_record: int = -1
    in_list: bool = False
    longest: int = 0
    words: int = 0
    latitude: bool = True
    longitude: bool = True


def survey(records: Iterable[Mapping[str, Any]]) -> Survey:
    seen, paths = dict[Path, _Seen](), set[Path]()
    count = 0
    for number, record in enumerate(records):
        count = number + 1
        for path, value, in_list in _leaves(record, (), in_list=False):
            paths.add(path)
            if value is not None:
                _see(seen.setdefault(path, _Seen()), number, value, in_list)
    values = {path[:length] for path in paths for length in range(1, len(path))} & seen.keys()
    fields = [_field(path, each, values) for path, each in seen.items()]
    fields.sort(key=lambda each: -each.records)
    return Survey(count, fields, _places([each.path for each in fields], seen), paths)


def _leaves(value: Any, path: Path, *, in_list: bool) -> Iterator[tuple[Path, Any, bool]]:
    if isinstance(value, list):
        for each in value or [None]:
            yield from _leaves(each, path, in_list=True)
    elif isinstance(value, dict) and not _geometry(value):
        # An empty object is no value, either.
        for name, below in value.items() or [("", None)]:
            yield from _leaves(below, (*path, name), in_list=in_list)
    elif path:
        yield path, value, in_list


def _geometry(value: Mapping[str, Any]) -> Kind | None:
    coordinates = value.get("coordinates")
    if not isinstance(coordinates, list) or not coordinates:
        return None
    if value.get("type") == "Point":
        numbers = all(isinstance(each, int | float) for each in coordinates[:2]) and len(coordinates) in (2, 3)
        return Kind.POINT if numbers and _on_earth(coordinates[1], coordinates[0]) else None
    return Kind.SHAPE if value.get("type") in _GEOMETRIES else None


def _on_earth(latitude: float, longitude: float) -> bool:
    return -90 <= latitude <= 90 and -180 <= longitude <= 180


def _see(seen: _Seen, record: int, value: Any, in_list: bool) -> None:
    seen.records += seen.last_record != record
    seen.last_record = record
    seen.in_list |= in_list
    kind = _kind(value)
    seen.kinds[kind] += 1
    if isinstance(value, str) or kind == "text":
        seen.longest = max(seen.longest, len(str(value)))
        seen.words += len(str(value).split())
    number = float(value) if kind in (Kind.WHOLE, Kind.DECIMAL, "decimal text") else 1_000.0
    seen.latitude &= -90 <= number <= 90
    seen.longitude &= -180 <= number <= 180


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, int | float):
        # No sink has a number for it.
        if abs(value) > sys.float_info.max:
            return "text"
        return Kind.WHOLE if isinstance(value, int) and abs(value) <= _LARGEST_LONG else Kind.DECIMAL
    if isinstance(value, dict):
        return str(_geometry(value))
    for name, pattern in DATE_FORMATS.items():
        # A day that no month has is a text.
        with suppress(ValueError):
            if pattern.fullmatch(value) and datetime.fromisoformat(value):
                return name
    if _DECIMAL_TEXT.fullmatch(value):
        return "decimal text"
    if (point := _POINT_TEXT.fullmatch(value)) and _on_earth(float(point[1]), float(point[2])):
        return str(Kind.POINT_TEXT)
    return "text"


def _field(path: Path, seen: _Seen, values: Collection[Path]) -> Field:
    """`values` are the paths that have a value in some records and an object in others."""
    kinds = set(seen.kinds)
    only = next(iter(kinds)) if len(kinds) == 1 else ""
    geometries = kinds & {Kind.POINT, Kind.SHAPE}
    date_format = only if only in DATE_FORMATS else None
    as_text = only == "decimal text"
    unlike = any(path[:length] in values for length in range(1, len(path) + 1))
    if unlike or (geometries and geometries != kinds):
        kind = Kind.UNLIKE
    elif geometries:
        kind = Kind.POINT if only == Kind.POINT else Kind.SHAPE
    elif only in (Kind.WHOLE, Kind.BOOLEAN, Kind.POINT_TEXT):
        kind = Kind(only)
    elif kinds <= {Kind.WHOLE, Kind.DECIMAL} or as_text:
        kind = Kind.DECIMAL
    elif date_format is not None:
        kind = Kind.DATE
    else:
        wordy = seen.words > _MOST_WORDS * sum(seen.kinds.values()) or seen.longest > _LONGEST_WORD
        kind = Kind.TEXT if wordy else Kind.WORD
    return Field(path, kind, seen.records, seen.in_list, seen.longest, date_format, as_text)


def _places(paths: Sequence[Path], seen: Mapping[Path, _Seen]) -> list[Place]:
    """Members of one object whose names and values are those of latitude and longitude."""
    found = []
    for path in paths:
        if path[-1].lower() not in _LATITUDES or not seen[path].latitude or seen[path].in_list:
            continue
        nearby = (each for each in paths if each[:-1] == path[:-1] and each[-1].lower() in _LONGITUDES)
        if longitude := next((each for each in nearby if seen[each].longitude), None):
            found.append(Place(path, longitude))
    return found
