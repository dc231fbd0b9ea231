"""A pipeline against itself: what is claimed of it."""

from functools import cache

import numpy as np
import pytest

from sinkbench.errors import PlanError
from sinkbench.plan.cells import expand
from sinkbench.results import Noise
from sinkbench.summary import selftest
from tests.support.counts import count
from tests.support.present import present
from tests.support.reasons import because
from tests.support.trials import watched_and_not


def blocks(count: int, seed: int, noise: float = 0.05) -> tuple[dict[int, float], dict[int, float]]:
    draw = np.random.default_rng(seed)
    slow = draw.uniform(0.5, 1, count)
    first, second = (1000 * slow * np.exp(noise * draw.standard_normal(count)) for _ in range(2))
    return dict(enumerate(first.tolist(), start=1)), dict(enumerate(second.tolist(), start=1))


@cache
def noise(count: int = 12, seed: int = 1, spread: float = 0.05) -> Noise:
    return present(selftest.noise_of(*blocks(count, seed, spread)))


def test_the_plan_lists_the_pipeline_twice_and_has_blocks_for_all_the_time() -> None:
    plan = selftest.noise_plan("postgres/jdbc", 10)
    assert [cell.label for cell in expand(plan, 3)] == ["A", "B"]
    assert plan.trials * 2 * plan.drain.window_seconds >= 600
    assert selftest.noise_plan("postgres/jdbc", 0.1).trials == 5


@pytest.mark.long
def test_about_one_comparison_in_twenty_claims_what_is_not() -> None:
    claimed = [noise(seed=seed).claimed / selftest.COMPARISONS for seed in range(count(12, 4))]
    assert 0.0 <= np.mean(claimed) <= 0.09


@pytest.mark.long
def test_more_noise_hides_larger_differences_and_a_slow_minute_hides_none() -> None:
    small, large = noise(spread=0.01), noise(spread=0.1)
    assert small.smallest_difference_percent < large.smallest_difference_percent
    assert small.smallest_difference_percent < 5


@pytest.mark.long
def test_the_same_rates_give_the_same_outcome_in_the_same_words() -> None:
    found = noise()
    assert found == selftest.noise_of(*blocks(12, 1))
    assert found.share.low <= found.claimed / selftest.COMPARISONS <= found.share.high
    first, second, third = selftest.noise_lines(
        found.model_copy(update={"by_cpu": noise(spread=0.001)}), "postgres/jdbc"
    )[:3]
    assert first.startswith(f"postgres/jdbc against itself, 12 blocks: {found.claimed} of 200 comparisons claimed")
    assert second.startswith("The smallest difference found in as long a run: about ")
    assert third.startswith("By CPU time for the same records: ")
    assert "the smallest found: about 0." in third


@pytest.mark.parametrize("rates", [({}, {}), blocks(4, 1), ({1: 0.0, **blocks(8, 1)[0]} | {1: 0.0}, blocks(8, 1)[1])])
def test_too_few_blocks_or_a_rate_of_0_have_no_outcome(rates: tuple[dict[int, float], dict[int, float]]) -> None:
    assert selftest.noise_of(*rates) is None


def test_a_run_that_claims_a_difference_itself_says_so() -> None:
    first, _ = blocks(8, 1)
    lines = selftest.noise_lines(selftest.noise_of(first, {block: 1.5 * rate for block, rate in first.items()}), "p")  # type: ignore[arg-type]
    assert lines[-1].startswith("All blocks together claim one, B to A 1.500")


def test_the_plan_of_overhead_has_the_pipeline_with_probes_and_without() -> None:
    cells = expand(selftest.overhead_plan("postgres/jdbc", 10, ["postgres"]), 3)
    assert [(cell.label, cell.probes) for cell in cells] == [("probes on", True), ("probes off", False)]
    with pytest.raises(PlanError, match="elasticsearch/camel-bulk: without probes only a sink that keeps the time"):
        selftest.overhead_plan("elasticsearch/camel-bulk", 10, ["postgres"])


@pytest.mark.parametrize("lost", [0.0, 0.05])
def test_the_cost_of_probes_is_found_behind_the_machines_slow_minutes(lost: float) -> None:
    found = present(selftest.overhead_of(watched_and_not(20, lost)))
    assert found.interval_percent.low <= 100 * lost <= found.interval_percent.high
    assert found.lost_percent == pytest.approx(100 * lost, abs=1.5)
    (line, verdict) = selftest.overhead_lines(found, "postgres/jdbc")
    assert line.startswith(f"postgres/jdbc, 20 blocks: with probes {found.lost_percent:.1f} % fewer records/s")
    assert ("contains 0" in verdict) is (lost == 0)


def test_invalid_trials_and_pilots_have_no_part_in_the_cost_of_probes() -> None:
    trials = watched_and_not(8, 0.0)
    spoilt = [
        each.model_copy(update={"stamped_records_per_second": 1.0, "reasons": [because("x")]}) for each in trials[:2]
    ]
    pilot = trials[0].model_copy(update={"stamped_records_per_second": 1.0, "pilot": True})
    assert present(selftest.overhead_of([*spoilt, *trials[2:], pilot])).blocks == 7
    assert selftest.overhead_of(trials[:8]) is None
