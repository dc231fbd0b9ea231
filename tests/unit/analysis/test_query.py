"""Queries: what may be written in one, and when two answers are the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sinkbench.analysis.query import Answer, Query, members, same_answer

NEAR = {"lat": 1, "lon": 2, "km": 3}
BOTH_KINDS = {"newest": {"by": "t"}, "groups": {"by": "a", "hour": "t", "measure": "v"}}


def query(**keys: Any) -> Query:
    return Query.model_validate({"name": "x", "asks": "What?", **keys})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "needs a condition"),
        ({"where": [{"field": "a"}]}, "the condition on 'a' must say one of"),
        ({"where": [{"field": "a", "is": "1", "words": "b"}]}, "the condition on 'a' must say one of"),
        ({"where": [{"field": "a", "from": 1, "before": "b"}]}, "goes from text to a number"),
        ({"where": [{"field": "a", "near": {**NEAR, "lat": 91}}]}, "less than or equal to 90"),
        ({**BOTH_KINDS, "where": [{"field": "a", "is": 1}]}, "not both"),
    ],
)
def test_what_makes_no_query(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        query(**keys)


@pytest.mark.parametrize(
    "condition", [{"is": "a"}, {"is": 0}, {"from": "a"}, {"from": 1, "before": 2.5}, {"near": NEAR}, {"words": "b"}]
)
def test_each_kind_of_condition(condition: dict[str, Any]) -> None:
    (found,) = query(where=[{"field": "a.0.b", **condition}]).where
    assert found.numeric is any(isinstance(value, int | float) for value in condition.values())


def test_members_of_a_part_have_no_places() -> None:
    part = {"data": [{"f": "1", "q": "p"}], "tags": ["a", "b"], "n": 1}
    assert list(members(part)) == [("data.f", "1"), ("data.q", "p"), ("tags", "a"), ("tags", "b"), ("n", 1)]


@given(st.lists(st.tuples(st.text(), st.floats(-1e6, 1e6))), st.integers(0, 10))
def test_an_answer_is_the_same_as_itself_and_how_it_was_found_does_not_count(rows: Any, found: int) -> None:
    assert same_answer(Answer(found, rows, by_index=True), Answer(found, rows, by_index=False))
    nearly = [(key, value * (1 + 1e-12)) for key, value in rows]
    assert same_answer(Answer(found, rows), Answer(found, nearly))


@pytest.mark.parametrize(
    "other",
    [Answer(2, [("a", 1.0)]), Answer(1), Answer(1, [("a", 1.001)]), Answer(1, [("b", 1.0)]), Answer(1, [("a",)])],
)
def test_another_answer_is_another_one_and_nothing_is_not_zero(other: Answer) -> None:
    assert not same_answer(Answer(1, [("a", 1.0)]), other)
    assert not same_answer(Answer(1, [(None,)]), Answer(1, [(0.0,)]))
