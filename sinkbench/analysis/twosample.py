"""Whether two independent samples of rates (one cell in two runs) differ, by how much, and what difference they could
show.

The ratio of medians has the percentile bootstrap interval of the difference of log medians, not widened as in
`intervals`: it covers the true ratio in 94 to 98 % of simulated cases. The test is that of Mann and Whitney (1947),
which one stalled trial moves by one rank, corrected by Holm (1979, Scandinavian Journal of Statistics 6): the chance of
any false claim in a table is at most 5 % (tests/unit/runs/test_compare.py).
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
    """The ratio of the medians and its interval; none for fewer than 5 rates. ValueError if one is empty or has a
    rate that is not above 0 and finite."""
    high, low = _logs(above), _logs(below)
    estimate = statistics.median(high) - statistics.median(low)
    fewest = min(len(high), len(low))
    if fewest < FEWEST_BLOCKS:
        return math.exp(estimate), None
    least = most = estimate
    # scipy refuses constant data.
    if high[0] < high[-1] or low[0] < low[-1]:
        least, most = percentile_bounds([high, low], _difference, CONFIDENCE)
    # The estimate lies within even if the median of few values jumps.
    least, most = min(least, estimate), max(most, estimate)
    method = "percentile bootstrap of the difference of the log medians, two samples"
    return math.exp(estimate), interval_of(math.exp(least), math.exp(most), method, fewest)


def p_value(one: Sequence[float], other: Sequence[float]) -> float:
    """The two-sided p of Mann and Whitney's test; exact for up to 40 values without ties."""
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
    """The smallest difference, as a share of the rate, that rates with this scatter would have shown. Both samples
    are moved to one median, then apart in both directions, until `p_value` is at most `level` and the interval
    excludes 1. The larger move counts, as a slowdown (0.1: 10 %). None if there are too few trials for this level."""
    high, low = _logs(above), _logs(below)
    estimate = statistics.median(high) - statistics.median(low)
    high = [value - estimate for value in high]
    up, down = _least_move(high, low, level), _least_move(low, high, level)
    if up is None or down is None:
        return None
    moves = (up, estimate - math.log(interval.low), down, math.log(interval.high) - estimate)
    return 1 - math.exp(-max(moves))


def _least_move(moved: Sequence[float], fixed: Sequence[float], level: float) -> float | None:
    """The smallest upward move of values that makes their ranks significant; None if there is none."""

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
