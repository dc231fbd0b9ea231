"""What the members of records are is told from all of their values."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.fields import Kind, Place, survey

POINT = {"type": "Point", "coordinates": [8.5, 47.4]}


def kinds(*records: dict[str, Any]) -> dict[str, Kind]:
    return {each.name: each.kind for each in survey(records).fields}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], Kind.WHOLE),
        ([1, 2.5], Kind.DECIMAL),
        ([10**20], Kind.DECIMAL),
        (["1.25", "-0.5"], Kind.DECIMAL),
        (["007", "94110"], Kind.WORD),
        ([True, False], Kind.BOOLEAN),
        ([True, 1], Kind.WORD),
        (["2026-01-31", "2026-02-01"], Kind.DATE),
        (["2026-01-31T17:06:00.123Z"], Kind.DATE),
        (["2026-13-31"], Kind.WORD),
        (["2026-01-31", "2026-01-31 17:06"], Kind.WORD),
        (["San Francisco"], Kind.WORD),
        (["a long sentence that is looked for by its words"], Kind.TEXT),
        (["x" * 300], Kind.TEXT),
        (["37.8063,-122.4659"], Kind.POINT_TEXT),
        (["97.8063,-122.4659"], Kind.WORD),
        (["12,100", "50,120"], Kind.WORD),
        ([POINT], Kind.POINT),
        ([{"type": "Polygon", "coordinates": [[[0, 0]]]}, POINT], Kind.SHAPE),
        ([["a", "b"], ["c"]], Kind.WORD),
    ],
)
def test_the_kind_is_that_of_all_values(values: list[Any], kind: Kind) -> None:
    assert kinds(*({"a": value} for value in values)) == {"a": kind}


def test_a_member_that_is_a_value_here_and_an_object_there_is_unlike_and_so_is_all_below() -> None:
    found = kinds({"a": {"b": {"c": 1}}, "z": 1}, {"a": {"b": 2}})
    assert found == {"a.b.c": Kind.UNLIKE, "a.b": Kind.UNLIKE, "z": Kind.WHOLE}


def test_latitude_and_longitude_in_one_object_are_a_place() -> None:
    where = {"Latitude": "37.8", "lng": -122.5}
    assert survey([{"at": where, "lat": 3}]).places == [Place(("at", "Latitude"), ("at", "lng"))]
    assert survey([{"lat": 137.8, "lon": 1.0}]).places == []
    assert survey([{"stops": [{"lat": 37.8, "lon": 1.0}]}]).places == []


def test_the_most_frequent_members_come_first() -> None:
    found = survey([{"a": 1}, {"a": 1, "b": [1, 2, 3]}, {"a": None, "b": [4]}, {"b": []}]).fields
    assert [(each.name, each.records, each.in_list) for each in found] == [("a", 2, False), ("b", 2, True)]


@given(st.lists(st.dictionaries(st.text(), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3), max_leaves=8,
), max_size=4), max_size=4))  # fmt: skip
def test_any_records_can_be_surveyed(records: list[dict[str, Any]]) -> None:
    found = survey(json.loads(json.dumps(record)) for record in records)
    assert all(0 < each.records <= found.records for each in found.fields)
