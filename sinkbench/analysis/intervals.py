"""95 % intervals of the median of rates, and of ratios paired by block, by percentile bootstrap over blocks.

Ratios are taken on the log scale, where A/B is as certain as B/A; what slows both trials of a block cancels. In
simulations they cover with 5 blocks 95 % of rates and 93 % of ratios, with more 95 to 99 % (test_intervals.py).
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sinkbench.analysis.rates import median_low_high
from sinkbench.results import Interval, RatioTo, Spread

CONFIDENCE = 0.95
FEWEST_BLOCKS = 5
RESAMPLES = 9_999


def interval_of_median(values: Sequence[float]) -> Interval | None:
    """The interval of the median of valid trials, one value per block; None for fewer than 5 values. The values seed
    the resampling, in any order. ValueError if one is not finite."""
    found = _bounds(sorted(values))
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
    found = _bounds(inverse if turned else logs)
    if found is not None and turned:
        found = -found[1], -found[0]
    interval = found and interval_of(math.exp(found[0]), math.exp(found[1]), method, len(shared))
    return RatioTo(to=to, estimate=math.exp(statistics.median(logs)), blocks=len(shared), interval=interval)


def ratio_of(to: str, above: Mapping[int, float], below: Mapping[int, float], of_medians: float) -> RatioTo | None:
    """The one ratio of two cells that tables, exports and answers give: `ratio_by_block` or, if they share no block,
    that of their medians (with `blocks` 0)."""
    if above.keys() & below.keys():
        return ratio_by_block(to, above, below)
    return RatioTo(to=to, estimate=of_medians, blocks=0) if of_medians > 0 else None


def spread_of(by_block: Mapping[int, float]) -> Spread | None:
    values = list(by_block.values())
    span = median_low_high(values)
    if span is None:
        return None
    return Spread(
        median=span[0],
        low=span[1],
        high=span[2],
        values=values,
        blocks=list(by_block),
        interval=interval_of_median(values),
    )


def relative_width(interval: Interval, estimate: float) -> float | None:
    """The width of an interval as a share of its estimate; None if that is 0."""
    return (interval.high - interval.low) / estimate if estimate > 0 else None


def widened_level(count: int, confidence: float = CONFIDENCE) -> float:
    """The level at which a bootstrap interval of `count` values has about the `confidence` wanted.

    A bootstrap of few values is too narrow: it divides by n instead of n - 1 and uses a normal quantile instead of t.
    The tail is Phi(-sqrt(n / (n - 1)) t(n - 1; 1 - alpha / 2)) (T. Hesterberg, "What Teachers Should Know About the
    Bootstrap", The American Statistician 69, 2015, section 4.4). ValueError for fewer than 2 values.
    """
    if count < 2:
        raise ValueError(f"a spread needs at least 2 values, found {count}")
    # Imported here: it takes a second, and most commands do not need it.
    from scipy import special

    t = float(special.stdtrit(count - 1, (1 + confidence) / 2))
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


def _bounds(values: Sequence[float]) -> tuple[float, float] | None:
    """The bounds of the median of sorted values; None for fewer than 5."""
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"only finite values have an interval, found {list(values)}")
    if len(values) < FEWEST_BLOCKS:
        return None
    # scipy refuses constant data.
    if values[0] == values[-1]:
        return values[0], values[-1]
    low, high = percentile_bounds([values], np.median, widened_level(len(values)))
    # Interpolation between equal values rounds, and could put a bound outside all values.
    return max(low, values[0]), min(high, values[-1])
