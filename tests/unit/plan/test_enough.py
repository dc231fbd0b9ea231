"""How many trials are enough."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.plan.plan import Plan
from sinkbench.plan.schedule import is_enough
from tests.support.counts import count

NARROW = [1000.0, 1001.0, 1002.0, 1003.0, 1004.0]
WIDE = [500.0, 800.0, 1000.0, 1500.0, 1700.0]


def plan(trials: int = 5, percent: float | None = 10, most: int = 20) -> Plan:
    until = None if percent is None else {"interval_percent": percent, "trials": most}
    return Plan.model_validate({"name": "p", "pipelines": ["a/b"], "trials": trials, "until": until})


def test_without_until_a_run_takes_its_trials() -> None:
    fixed = plan(3, None)
    assert fixed.most_blocks == 3
    assert [is_enough(fixed, done, {"a": NARROW}) for done in (0, 2, 3)] == [False, False, True]


def test_it_goes_on_until_every_interval_is_narrow() -> None:
    assert is_enough(plan(), 5, {"a": NARROW, "b": NARROW})
    assert not is_enough(plan(), 5, {"a": NARROW, "b": WIDE})


def test_it_never_ends_before_the_least_or_after_the_most() -> None:
    assert not is_enough(plan(8), 7, {"a": NARROW})
    assert is_enough(plan(), 20, {"a": WIDE})
    assert plan().most_blocks == 20


@pytest.mark.parametrize("rates", [[], NARROW[:4], [0.0] * 5])
def test_a_cell_without_an_interval_is_never_narrow_enough(rates: list[float]) -> None:
    assert not is_enough(plan(), 5, {"a": NARROW, "b": rates})


@settings(max_examples=count(30, 6))
@given(st.lists(st.floats(0, 1e6), max_size=8), st.integers(0, 30))
def test_any_rates_give_a_decision_and_the_limit_always_holds(rates: list[float], done: int) -> None:
    assert is_enough(plan(), done, {"a": rates}) or done < 20
