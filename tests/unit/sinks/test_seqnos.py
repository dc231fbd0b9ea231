"""What the searches for the highest sequence numbers say while shards come and go."""

from __future__ import annotations

from typing import Any

import pytest

from sinkbench.sinks.elasticsearch.seqnos import highest_found


def answer(value: float | None) -> dict[str, Any]:
    return {"status": 200, "aggregations": {"last": {"value": value}}}


def test_each_shard_has_its_highest_number_and_an_empty_one_minus_1() -> None:
    assert highest_found([answer(16.0), answer(None), answer(0.0)]) == [16.0, -1.0, 0.0]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_shard_that_does_not_answer_makes_the_whole_reading_a_gap(at: int) -> None:
    # Without it the others' numbers would be taken for those of its neighbours.
    answers = [answer(1.0), answer(2.0), answer(3.0)]
    answers[at] = {"status": 503}
    with pytest.raises(LookupError):
        highest_found(answers)
