"""A query, written once for all sinks, and whether two answers to it are equal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

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
        said = [self.equals is not None, ranged, self.near is not None, self.words is not None]
        if sum(said) != 1:
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
    return all(_same_row(*rows) for rows in zip(one.rows, other.rows, strict=True))


def members(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Value]]:
    """Each value in a part of a document, by its dotted path without list positions."""
    for name, value in document.items():
        path = f"{above}.{name}" if above else str(name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield from members(each, path)
            else:
                yield path, each


def _same_row(one: Row, other: Row) -> bool:
    return len(one) == len(other) and all(_same(*pair) for pair in zip(one, other, strict=True))


def _same(one: Value | None, other: Value | None) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return one == other
