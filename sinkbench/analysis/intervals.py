"""Intervals of rates and of ratios by percentile bootstrap, and whether two samples differ.

The median of a cell, and ratios paired by block, are resampled over blocks. Ratios are taken on the log scale, where
A/B is as certain as B/A; what slows both trials of a block cancels. In simulations they cover with 5 blocks 95 % of
rates and 93 % of ratios, with more 95 to 99 % (test_intervals.py).

Of two independent samples (one cell in two runs) the ratio of medians has the interval of the difference of log
medians, not widened: it covers 94 to 98 % of simulated cases. The test is that of Mann and Whitney (1947), which one
stalled trial moves by one rank, corrected by Holm (1979, Scandinavian Journal of Statistics 6): the chance of any false
claim in a table is at most 5 % (tests/unit/runs/test_compare.py). Two arms of one run are paired by block; their test
is that of Wilcoxon's signed ranks (1945)."""

import hashlib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sinkbench.results import Interval, RatioTo, Spread

CONFIDENCE = 0.95
FEWEST_BLOCKS = 5
FEWEST_PAIRS = 6
"""With 5 the smallest p of signed ranks is 1/16."""
RESAMPLES = 9_999


def interval_of_median(values: Sequence[float]) -> Interval | None:
    """The interval of the median of valid trials, one value per block; None for fewer than 5 values. The values seed
    the resampling, in any order. ValueError if one is not finite."""
    found = bounds(values)
    return None if found is None else interval_of(*found, "percentile bootstrap of the median", len(values))


def ratio_by_block(to: str, above: Mapping[int, float], below: Mapping[int, float]) -> RatioTo | None:
    """The ratio of two cells' valid rates by block, `above` to `below`; `to` is the key of the latter. It is the
    median over shared blocks on the log scale, with an interval from 5 blocks on. None without shared blocks, or if
    a rate is 0: leaving its block out would hide it."""
    shared = sorted(above.keys() & below.keys())
    if not shared or any(above[block] <= 0 or below[block] <= 0 for block in shared):
        return None
    logs = sorted(math.log(above[block]) - math.log(below[block]) for block in shared)
    method = "percentile bootstrap of the median of the log ratios, paired by block"
    inverse = [-log for log in reversed(logs)]
    # Always draw for the same one of the two directions, so that B/A and A/B agree to the last digit.
    turned = inverse > logs
    found = bounds(inverse if turned else logs)
    if found is not None and turned:
        found = -found[1], -found[0]
    interval = found and interval_of(math.exp(found[0]), math.exp(found[1]), method, len(shared))
    return RatioTo(to=to, estimate=math.exp(statistics.median(logs)), blocks=len(shared), interval=interval)


def ratio_of(to: str, above: Mapping[int, float], below: Mapping[int, float], of_medians: float) -> RatioTo | None:
    """The one ratio of two cells that tables, exports and answers give: `ratio_by_block` or, if they share fewer than 5
    blocks, that of their medians (with `blocks` 0). It lies between the quotients of their lowest and highest rates."""
    if len(above.keys() & below.keys()) >= FEWEST_BLOCKS:
        return ratio_by_block(to, above, below)
    return RatioTo(to=to, estimate=of_medians, blocks=0) if of_medians > 0 else None


def spread_of(by_block: Mapping[int, float]) -> Spread | None:
    if not (values := list(by_block.values())):
        return None
    ends = {"median": statistics.median(values), "low": min(values), "high": max(values)}
    return Spread(**ends, values=values, blocks=list(by_block), interval=interval_of_median(values))


def relative_width(interval: Interval, estimate: float) -> float | None:
    """The width of an interval as a share of its estimate; None if that is 0."""
    return (interval.high - interval.low) / estimate if estimate > 0 else None


def widened_level(count: int) -> float:
    """The level at which a bootstrap interval of `count` values has about the `CONFIDENCE` wanted.

    A bootstrap of few values is too narrow: it divides by n instead of n - 1 and uses a normal quantile instead of t.
    The tail is Phi(-sqrt(n / (n - 1)) t(n - 1; 1 - alpha / 2)) (T. Hesterberg, "What Teachers Should Know About the
    Bootstrap", The American Statistician 69, 2015, section 4.4)."""
    # Imported here: it takes a second, and most commands do not need it.
    from scipy import special

    t = float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return 1 - 2 * float(special.ndtr(-math.sqrt(count / (count - 1)) * t))


def interval_of(low: float, high: float, method: str, blocks: int) -> Interval:
    return Interval(low=low, high=high, confidence=CONFIDENCE, method=method, blocks=blocks)


def percentile_bounds(
    samples: Sequence[Sequence[float]], statistic: Callable[..., Any], level: float
) -> tuple[float, float]:
    """Percentile bootstrap bounds of a statistic of samples, each resampled separately and seeded by its values."""
    from scipy import stats

    found = stats.bootstrap(
        [np.asarray(sample, dtype=np.float64) for sample in samples],
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(seed_of([value for sample in samples for value in sample])),
    ).confidence_interval
    return float(found.low), float(found.high)


def seed_of(values: Sequence[float]) -> int:
    return int.from_bytes(hashlib.sha256(np.asarray(values, dtype=np.float64).tobytes()).digest()[:8], "little")


def bounds(values: Sequence[float], statistic: Callable[..., Any] = np.median) -> tuple[float, float] | None:
    """The bounds of a statistic of values, in any order; None for fewer than 5."""
    values = sorted(values)
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"only finite values have an interval, found {list(values)}")
    if len(values) < FEWEST_BLOCKS:
        return None
    # scipy refuses constant data.
    if values[0] == values[-1]:
        return values[0], values[-1]
    low, high = percentile_bounds([values], statistic, widened_level(len(values)))
    # Interpolation between equal values rounds, and could put a bound outside all values.
    return max(low, values[0]), min(high, values[-1])


ALPHA = 1 - CONFIDENCE
_EXACT_UP_TO = 40
_HALVINGS = 16


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> tuple[float, Interval | None]:
    """The ratio of the medians and its interval, none below 5 rates. ValueError unless all are finite and above 0."""
    high, low = sorted(_logs(above)), sorted(_logs(below))
    estimate = statistics.median(high) - statistics.median(low)
    fewest = min(len(high), len(low))
    if fewest < FEWEST_BLOCKS:
        return math.exp(estimate), None
    least = most = estimate
    # scipy refuses constant data.
    if high[0] < high[-1] or low[0] < low[-1]:
        least, most = percentile_bounds(
            [high, low], lambda a, b, axis: np.median(a, axis) - np.median(b, axis), CONFIDENCE
        )
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


def paired_p_value(one: Sequence[float], other: Sequence[float]) -> float:
    """The two-sided p of Wilcoxon's signed-rank test (1945) of the log ratios of rates by block."""
    return _signed_rank_p(_logs(one), _logs(other))


def _signed_rank_p(one: Sequence[float], other: Sequence[float]) -> float:
    differences = np.subtract(one, other)
    if not differences.any():
        return 1.0
    from scipy import stats

    return float(stats.wilcoxon(differences).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of several tests, each corrected for all of them, in the same order."""
    order = np.argsort(p_values, kind="stable")
    tests_left = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(tests_left * np.asarray(p_values)[order]), 1)
    return list(map(float, corrected))


def smallest_difference(
    above: Sequence[float], below: Sequence[float], interval: Interval, level: float, *, paired: bool = False
) -> float | None:
    """The smallest difference, as a share of the rate, that rates with this scatter would have shown. Both samples
    are moved to one median, then apart in both directions, until `p_value` (or `paired_p_value`) is at most `level` and
    the interval excludes 1. The larger move counts, as a slowdown (0.1: 10 %). None if trials are too few."""
    high, low = _logs(above), _logs(below)
    estimate = statistics.median(high) - statistics.median(low)
    if paired:
        estimate = statistics.median(one - other for one, other in zip(high, low, strict=True))
    high = [value - estimate for value in high]
    test = _signed_rank_p if paired else p_value
    up, down = _least_move(high, low, level, test), _least_move(low, high, level, test)
    if up is None or down is None:
        return None
    moves = (up, estimate - math.log(interval.low), down, math.log(interval.high) - estimate)
    return 1 - math.exp(-max(moves))


def _least_move(
    moved: Sequence[float], fixed: Sequence[float], level: float, test: Callable[[list[float], Sequence[float]], float]
) -> float | None:
    """The smallest upward move of values that makes the test's p significant; None if there is none."""

    def enough(move: float) -> bool:
        raised = [value + move for value in moved]
        higher = float(np.sign(np.subtract.outer(raised, fixed)).sum())
        return higher > 0 and test(raised, fixed) <= level

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
    return [math.log(rate) for rate in rates]
