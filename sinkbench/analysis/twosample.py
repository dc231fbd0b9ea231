"""Whether two independent samples of rates differ, by how much, and what difference they could have shown.

A sample is the valid rates of one cell in one run. Two runs share no blocks, so nothing is paired.

The ratio of the medians has the percentile bootstrap interval of the difference of the medians' logarithms, each run
resampled on its own. It is not widened for few trials as in `intervals`: the difference of two bootstrapped medians
spreads wide enough. Simulated with 5 to 20 trials in each run (5 to 10 and 5 to 20, too), of normal rates, rates with
stalls and log-normal ones, it covers the true ratio in 94 to 98 % of 400 data sets each. Widened by `widened_level` it
covers it in 97 to 100 %, and shows about half as many differences of 10 % of rates that scatter by as much.

The test is that of Mann and Whitney (1947), which rests on ranks: exact for few trials of any distribution without
ties, and one stalled trial moves it by one rank. A permutation test of the medians would be nearer to the estimate, but
of 5 trials against 5 it gives no p below 0.048. Student's t compares means, which a stall moves.

The p values of a table are corrected by Holm (1979, "A simple sequentially rejective multiple test procedure",
Scandinavian Journal of Statistics 6), which holds the chance of even one false claim in the table at 5 %, whatever the
cells have in common.

Both together (`runs.compare`) claimed something in 0 to 5 % of 600 simulated tables each, of 1, 4 and 8 cells, 5 to 15
trials in each run, normal rates and rates with stalls, where nothing differed. At 2 % noise 5 trials find a cell that
is 10 % slower in 99 to 100 % of 300 tables of 1 and 4 cells; at 3 % noise in 99 and 89 %, 6 trials in at least 98 %.
tests/unit/analysis/test_twosample.py and tests/unit/runs/test_compare.py simulate some of it again.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.intervals import CONFIDENCE, FEWEST_BLOCKS, interval_of, percentile_bounds
from sinkbench.results import Interval

ALPHA = 1 - CONFIDENCE
_EXACT_UP_TO = 40
_HALVINGS = 16


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> tuple[float, Interval | None]:
    """The median of the rates `above` divided by that of those `below`, and the interval of this ratio.

    Both on the log scale. No interval if either has fewer than 5 rates. The order of the rates does not count.
    ValueError if one is empty or has a rate that is not above 0 and finite.
    """
    high, low = _logs(above), _logs(below)
    estimate = statistics.median(high) - statistics.median(low)
    fewest = min(len(high), len(low))
    if fewest < FEWEST_BLOCKS:
        return math.exp(estimate), None
    least = most = estimate
    # scipy refuses data that do not vary.
    if high[0] < high[-1] or low[0] < low[-1]:
        least, most = percentile_bounds([high, low], _difference, CONFIDENCE)
    # The estimate lies within even if the median of few values jumps.
    least, most = min(least, estimate), max(most, estimate)
    method = "percentile bootstrap of the difference of the log medians, two samples"
    return math.exp(estimate), interval_of(math.exp(least), math.exp(most), method, fewest)


def p_value(one: Sequence[float], other: Sequence[float]) -> float:
    """The two-sided p of Mann and Whitney's test.

    Exact for up to 40 values in all without ties, else the normal approximation, corrected for ties.
    """
    together = [*one, *other]
    if min(together) == max(together):
        return 1.0
    from scipy import stats

    exact = len(together) <= _EXACT_UP_TO and len(set(together)) == len(together)
    return float(stats.mannwhitneyu(one, other, method="exact" if exact else "asymptotic").pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of several tests, each corrected for all of them, in the same order."""
    order = np.argsort(p_values, kind="stable")
    tests_left = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(tests_left * np.asarray(p_values)[order]), 1)
    return list(map(float, corrected))


def smallest_difference(
    above: Sequence[float], below: Sequence[float], interval: Interval, level: float
) -> float | None:
    """The smallest difference, as a share of the rate, that rates which scatter like these would have shown.

    Both samples are moved to one median and then apart, up and down, until `p_value` is at most `level` and the
    interval, which moves with them, leaves out 1. The larger of the two moves is returned, as how much slower (0.1: 10
    %). None if no move is enough: there are too few trials for this level.
    """
    high, low = _logs(above), _logs(below)
    estimate = statistics.median(high) - statistics.median(low)
    high = [value - estimate for value in high]
    up, down = _least_move(high, low, level), _least_move(low, high, level)
    if up is None or down is None:
        return None
    moves = (up, estimate - math.log(interval.low), down, math.log(interval.high) - estimate)
    return 1 - math.exp(-max(moves))


def _least_move(moved: Sequence[float], fixed: Sequence[float], level: float) -> float | None:
    """By how much values must be moved up until their ranks are significant; None if no move is enough."""

    def enough(move: float) -> bool:
        raised = [value + move for value in moved]
        higher = float(np.sign(np.subtract.outer(raised, fixed)).sum())
        return higher > 0 and p_value(raised, fixed) <= level

    too_little, found = 0.0, max(fixed) - min(moved) + 1e-6
    if not enough(found):
        return None
    for _ in range(_HALVINGS):
        middle = (too_little + found) / 2
        too_little, found = (too_little, middle) if enough(middle) else (middle, found)
    return found


def _logs(rates: Sequence[float]) -> list[float]:
    if not rates or not all(math.isfinite(rate) and rate > 0 for rate in rates):
        raise ValueError(f"only finite rates above 0 have a ratio, found {list(rates)}")
    return sorted(math.log(rate) for rate in rates)


def _difference(high: npt.NDArray[np.float64], low: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.median(high, axis=axis) - np.median(low, axis=axis))
