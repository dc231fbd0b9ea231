"""How many trials are enough."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.errors import PlanError
from sinkbench.plan.plan import Plan, load_plan
from sinkbench.plan.schedule import is_enough

NARROW = [1000.0, 1001.0, 1002.0, 1003.0, 1004.0]
WIDE = [500.0, 800.0, 1000.0, 1500.0, 1700.0]
CONNECTORS = Path(__file__).parents[3] / "connectors"


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


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1e6), max_size=8), st.integers(0, 30))
def test_any_rates_give_a_decision_and_the_limit_always_holds(rates: list[float], done: int) -> None:
    assert is_enough(plan(), done, {"a": rates}) or done < 20


def written(tmp_path: Path, until: str) -> Path:
    file = tmp_path / "p.yaml"
    file.write_text(f"pipelines: [postgres/jdbc]\ntrials: 5\n{until}\n")
    return file


def test_a_plan_shows_until_and_reads_it_back(tmp_path: Path) -> None:
    first = load_plan(written(tmp_path, "until: {interval_percent: 10, trials: 20}"), CONNECTORS)
    assert first.until is not None
    (tmp_path / "again.yaml").write_text(first.show())
    assert load_plan(tmp_path / "again.yaml", CONNECTORS).until == first.until


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("until: {interval_percent: 10}", "trials"),
        ("until: {trials: 10}", "interval_percent"),
        ("until: {interval_percent: 10, trials: 4}", "until.trials 4 is less than trials 5"),
        ("until: {interval_percent: 0, trials: 9}", "interval_percent"),
        ("until: {interval_percents: 10, trials: 9}", "interval_percent"),
    ],
)
def test_a_wrong_until_is_refused_with_its_line(tmp_path: Path, until: str, said: str) -> None:
    with pytest.raises(PlanError, match=said) as refused:
        load_plan(written(tmp_path, until), CONNECTORS)
    assert "p.yaml:3" in str(refused.value)
