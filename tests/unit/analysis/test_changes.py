"""Change points: a new level is found at its first run, and noise has none."""

import numpy as np
import pytest

from sinkbench.analysis.changes import change_points
from tests.support.counts import count


def series(seed: int, before: int, after: int, factor: float) -> list[float]:
    """Rates with 4 % noise, the later ones times a factor."""
    noise = np.random.default_rng(seed).normal(0, 0.04, before + after)
    return [float(40_000 * np.exp(each)) * (factor if run >= before else 1) for run, each in enumerate(noise)]


@pytest.mark.parametrize("after", [4, 10])
def test_a_change_of_20_percent_after_ten_runs_is_found_at_its_place(after: int) -> None:
    seeds = count(100, 20)
    found = [change_points(series(seed, 10, after, 0.8)) for seed in range(seeds)]
    assert found.count([10]) >= 0.9 * seeds


def test_noise_has_a_change_in_at_most_3_percent_of_series() -> None:
    seeds = count(200, 60)
    assert sum(bool(change_points(series(seed, 10, 10, 1.0))) for seed in range(seeds)) <= 0.03 * seeds + 1


def test_a_change_and_its_repair_are_two_in_any_unit() -> None:
    rates = [*series(1, 10, 10, 0.7), *series(2, 0, 10, 1.0)]
    assert change_points(rates) == change_points([rate / 1e3 for rate in rates]) == [10, 20]


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0, 9.0, 9.0], [5.0] * 20, [*[5.0] * 10, 9.0, 9.0]])
def test_too_few_runs_and_equal_runs_have_no_change(values: list[float]) -> None:
    assert change_points(values) == []
