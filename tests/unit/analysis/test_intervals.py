"""Intervals and differences of rates: what they cover, how often one is claimed, and when there is none."""

import json
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.analysis.intervals import (
    ALPHA,
    holm,
    interval_of_median,
    p_value,
    ratio_by_block,
    ratio_of,
    ratio_of_medians,
    relative_width,
    smallest_difference,
    widened_level,
)
from tests.support.counts import count
from tests.support.present import present
from tests.support.rates import NORMAL, SKEWED, STALLS, Draw

RATES = st.lists(st.floats(1, 1e6), min_size=5, max_size=12)
DATA_SETS = count(250, 60)
# Three standard errors of a share of 0.95 among so many data sets.
CHANCE = 3 * math.sqrt(0.95 * 0.05 / DATA_SETS)

MEDIAN = {"normal": 1000.0, "stalls": 1000 - 150 * np.log(2), "skewed": 1000.0}


def by_block(values: list[float] | np.ndarray) -> dict[int, float]:
    return {block: float(value) for block, value in enumerate(values, start=1)}


# Five values have 2 x 0.5^5 = 6.25 % that all are on one side of the median, and no resample goes beyond them.
@pytest.mark.parametrize("count", [5, 7, 10])
@pytest.mark.parametrize(("name", "data"), [("normal", NORMAL), ("stalls", STALLS), ("skewed", SKEWED)])
def test_the_interval_of_a_rate_holds_the_true_median_as_often_as_it_says(name: str, data: Draw, count: int) -> None:
    draw = np.random.default_rng(count)
    held = 0
    for _ in range(DATA_SETS):
        found = present(interval_of_median(data(draw, count).tolist()))
        held += found.low <= MEDIAN[name] <= found.high
    assert held / DATA_SETS >= (0.9375 if count == 5 else 0.95) - CHANCE


@pytest.mark.parametrize("count", [5, 7, 10])
@pytest.mark.parametrize("data", [NORMAL, STALLS, SKEWED])
def test_the_interval_of_a_ratio_holds_the_true_ratio_as_often_as_it_says(data: Draw, count: int) -> None:
    draw = np.random.default_rng(count)
    held = 0
    for _ in range(DATA_SETS):
        # What slows a whole block falls on both, and must not count.
        slow = draw.uniform(0.5, 1, count)
        found = present(ratio_by_block("b", by_block(3 * slow * data(draw, count)), by_block(slow * data(draw, count))))
        held += (interval := present(found.interval)).low <= 3 <= interval.high
    assert held / DATA_SETS >= (0.9375 if count == 5 else 0.95) - CHANCE


@pytest.mark.parametrize("values", [[], [5.0], [1.0, 2.0, 3.0, 4.0]])
def test_fewer_than_five_values_have_no_interval(values: list[float]) -> None:
    assert interval_of_median(values) is None


def test_a_ratio_of_few_blocks_has_an_estimate_and_no_interval() -> None:
    found = present(ratio_by_block("b", {1: 200.0, 2: 200.0, 9: 1.0}, {1: 100.0, 2: 100.0, 8: 7.0}))
    assert (found.estimate, found.blocks, found.interval) == (pytest.approx(2), 2, None)


@given(
    st.dictionaries(st.integers(1, 9), st.floats(1, 1e5), min_size=1),
    st.dictionaries(st.integers(1, 9), st.floats(1, 1e5), min_size=1),
)
def test_the_ratio_of_a_table_lies_between_the_quotients_of_the_rates_beside_it(
    above: dict[int, float], below: dict[int, float]
) -> None:
    # Trials that were taken again lie in other blocks: one shared block must not decide.
    medians = statistics.median(above.values()) / statistics.median(below.values())
    found = present(ratio_of("b", above, below, medians))
    low, high = min(above.values()) / max(below.values()), max(above.values()) / min(below.values())
    assert low * (1 - 1e-9) <= found.estimate <= high * (1 + 1e-9)
    if len(above.keys() & below.keys()) < 5:
        assert (found.estimate, found.blocks, found.interval) == (medians, 0, None)
    else:
        assert found == ratio_by_block("b", above, below)


@pytest.mark.parametrize(("above", "below"), [({}, {}), ({1: 5.0}, {2: 5.0}), ({1: 0.0, 2: 5.0}, {1: 5.0, 2: 5.0})])
def test_without_a_common_block_or_with_a_rate_of_0_there_is_no_ratio(
    above: dict[int, float], below: dict[int, float]
) -> None:
    assert (ratio_by_block("b", above, below), ratio_by_block("b", below, above)) == (None, None)


@settings(max_examples=count(30, 6))
@given(RATES)
def test_an_interval_lies_within_the_values_and_around_their_median(values: list[float]) -> None:
    found = present(interval_of_median(values))
    middle = float(np.median(values))
    assert min(values) <= found.low <= middle * (1 + 1e-9)
    assert middle * (1 - 1e-9) <= found.high <= max(values)
    assert found == interval_of_median(values[::-1])
    assert found.blocks == len(values)
    json.loads(found.model_dump_json(), parse_constant=pytest.fail)


@settings(max_examples=count(30, 6))
@given(RATES, st.floats(0.01, 100))
def test_a_ratio_and_its_inverse_are_equally_sure(values: list[float], factor: float) -> None:
    one, other = by_block(values), by_block([1000 * factor] * len(values))
    there, back = present(ratio_by_block("b", one, other)), present(ratio_by_block("a", other, one))
    assert there.estimate == pytest.approx(1 / back.estimate)
    assert (ours := present(there.interval)).low == pytest.approx(1 / (theirs := present(back.interval)).high)
    assert ours.high == pytest.approx(1 / theirs.low)


def test_values_that_do_not_vary_have_an_interval_without_width() -> None:
    found = present(interval_of_median([7.0] * 5))
    assert (found.low, found.high) == (7.0, 7.0)
    same = present(ratio_by_block("b", by_block([4.0] * 6), by_block([2.0] * 6)))
    assert ((interval := present(same.interval)).low, interval.high) == (pytest.approx(2), pytest.approx(2))
    assert relative_width(present(interval_of_median([0.0] * 5)), 0.0) is None


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        interval_of_median([1.0, 2.0, 3.0, 4.0, float("nan")])


def test_few_values_ask_the_bootstrap_for_more_than_the_confidence_wanted() -> None:
    levels = [widened_level(count) for count in (2, 5, 10, 100, 100_000)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == pytest.approx(0.95, abs=1e-4)


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
