"""Two samples of rates: how often a difference is claimed where there is none, and found where there is one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.analysis.intervals import ALPHA, holm, p_value, ratio_of_medians, smallest_difference
from tests.support.counts import count
from tests.support.present import present
from tests.support.rates import NORMAL, SKEWED, STALLS, Draw

RATES = st.lists(st.floats(1, 1e6), min_size=5, max_size=9)
DATA_SETS = count(150, 40)
# Three standard errors of a share of 0.95 among so many data sets.
CHANCE = 3 * math.sqrt(0.95 * 0.05 / DATA_SETS)


@pytest.mark.parametrize(("count", "other"), [(5, 5), (8, 8), (5, 15)])
@pytest.mark.parametrize("data", [NORMAL, STALLS, SKEWED])
def test_the_interval_holds_the_true_ratio_as_often_as_it_says(data: Draw, count: int, other: int) -> None:
    draw = np.random.default_rng(count + other)
    held = 0
    for _ in range(DATA_SETS):
        _, found = ratio_of_medians((3 * data(draw, count)).tolist(), data(draw, other).tolist())
        held += (interval := present(found)).low <= 3 <= interval.high
    assert held / DATA_SETS >= 0.95 - CHANCE


@pytest.mark.parametrize(("count", "other"), [(5, 5), (7, 7), (12, 12), (5, 12)])
@pytest.mark.parametrize("data", [NORMAL, STALLS, SKEWED])
def test_equal_pipelines_are_told_apart_in_one_of_twenty_cases_at_most(data: Draw, count: int, other: int) -> None:
    draw = np.random.default_rng(count + other)
    claimed = sum(
        p_value(data(draw, count).tolist(), data(draw, other).tolist()) <= ALPHA for _ in range(2 * DATA_SETS)
    )
    assert claimed / (2 * DATA_SETS) <= ALPHA + CHANCE


def test_the_ratio_is_that_of_the_medians() -> None:
    estimate, interval = ratio_of_medians([30.0, 10.0, 20.0], [5.0, 4.0])
    assert estimate == pytest.approx(20 / math.sqrt(20))
    assert interval is None


@pytest.mark.parametrize("rates", [[], [1.0, 0.0], [1.0, math.inf]])
def test_rates_without_a_logarithm_are_refused(rates: list[float]) -> None:
    with pytest.raises(ValueError, match="only finite rates above 0"):
        ratio_of_medians(rates, [1.0])


@settings(max_examples=count(25, 5))
@given(RATES, RATES)
def test_an_interval_holds_its_estimate_and_the_order_of_trials_does_not_matter(
    above: list[float], below: list[float]
) -> None:
    estimate, interval = ratio_of_medians(above, below)
    assert (sure := present(interval)).low * (1 - 1e-9) <= estimate <= sure.high * (1 + 1e-9)
    assert ratio_of_medians(above[::-1], below[::-1]) == (estimate, interval)


def test_ranks_that_are_parted_have_the_exact_p_and_equal_ones_nearly() -> None:
    # 2 of the 252 ways to part ten ranks into five and five.
    assert p_value([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]) == pytest.approx(2 / 252)
    assert p_value([1.0, 2.0, 3.0, 4.0, 4.0], [6.0, 7.0, 8.0, 9.0, 10.0]) == pytest.approx(2 / 252, rel=0.6)
    assert p_value([3.0] * 5, [3.0] * 6) == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_correcting_for_many_cells_never_lowers_a_p_value_and_keeps_their_order(values: list[float]) -> None:
    corrected = holm(values)
    assert all(value <= more <= 1 for value, more in zip(values, corrected, strict=True))
    by_p = [more for _, more in sorted(zip(values, corrected, strict=True))]
    assert by_p == sorted(by_p)
    assert min(corrected) == pytest.approx(min(1, len(values) * min(values)))


def test_holm_goes_from_the_smallest_p_up() -> None:
    assert (holm([0.01, 0.04, 0.03]), holm([])) == (pytest.approx([0.03, 0.06, 0.06]), [])


@settings(max_examples=count(20, 4))
@given(st.integers(5, 9), st.integers(0, 2**32 - 1))
def test_the_smallest_difference_is_claimed_of_such_rates_and_a_smaller_one_is_not(count: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    one = (1000 * draw.lognormal(0, 0.03, 8)).tolist()
    other = (1000 * draw.lognormal(0, 0.03, count)).tolist()
    estimate, interval = ratio_of_medians(one, other)
    share = present(smallest_difference(one, other, present(interval), ALPHA))

    def claimed(factor: float) -> bool:
        moved = [rate * factor / estimate for rate in one]
        low, high = (bound * factor / estimate for bound in (interval.low, interval.high))
        return p_value(moved, other) <= ALPHA and not low <= 1 <= high

    assert claimed(1 - share - 1e-4)
    assert claimed(1 / (1 - share - 1e-4))
    assert not (claimed((1 - share) ** 0.9) and claimed((1 - share) ** -0.9))


def test_where_no_difference_could_be_claimed_there_is_no_smallest_one() -> None:
    rates = [1000.0, 1010.0, 990.0, 1005.0, 995.0]
    _, interval = ratio_of_medians(rates, rates)
    assert smallest_difference(rates, rates, present(interval), ALPHA) is not None
    assert smallest_difference(rates, rates, interval, ALPHA / 8) is None
