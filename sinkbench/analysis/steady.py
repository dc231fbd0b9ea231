"""Where a drain's warm-up ends, by its own samples.

The rule is MSER-5 (K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
Simulation 69, 1997; for batches of 5: K. P. White, M. J. Cobb, S. C. Spratt, Winter Simulation Conference 2000). Of the
rates x_0 .. x_(n-1) of n batches of five readings, the first d are left out, where d minimizes

    z(d) = sum_(i >= d) (x_i - mean_(i >= d) x)^2 / (n - d)^2

the squared standard error of what remains, which falls while a transient is cut off, and rises when good data are.

MSER also cuts off stalls and chance. So what is cut off must differ from what remains: medians more than 10 % apart,
and a Mann-Whitney test with p < 0.01; else fewer batches are cut off, the most that do differ. At most the first half
is cut off, as White has it. The trial is steady if what remains does not differ, by the same measure, before and after
its middle, nor before and after where MSER would cut the whole series: a ramp has no such point, a late step one beyond
the half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.rates import HIGH_SHARE, progress

BATCH = 5
FEWEST_READINGS = 25
DIFFERENCE = 0.10
CHANCE = 0.01

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Steadiness:
    """What the samples of a drain say of its warm-up.

    Attributes:
        steady: whether its rate became steady in the first half of its window; None with too few readings to tell.
        warm_up_seconds: from the first reading with records to the steady part; None if there is none, or not known.
        from_seconds: when the steady part begins, on the samples' clock; None likewise.
    """

    steady: bool | None
    warm_up_seconds: float | None = None
    from_seconds: float | None = None


def steadiness(times_seconds: npt.ArrayLike, stored: npt.ArrayLike, total: int) -> Steadiness:
    """When the rate of a drain of `total` records became steady; `stored` is NaN where it could not be read.

    The window is from the first reading with records to 90 % of them, after which partitions run dry; it needs 25
    readings.
    """
    times, counts = progress(times_seconds, stored)
    first = int(np.searchsorted(counts, 0, side="right"))
    last = int(np.searchsorted(counts, HIGH_SHARE * total, side="left"))
    if last >= counts.size or last - first < FEWEST_READINGS:
        return Steadiness(None)
    # Readings may be late; on an even grid each rate weighs the same.
    grid = np.linspace(times[first], times[last], last - first + 1)
    rates = np.diff(np.interp(grid, times, counts)) / np.diff(grid)
    furthest = mser(rates, rates.size // 2)
    cut = next((each for each in range(furthest, 0, -BATCH) if _differ(rates[:each], rates[each:])), 0)
    anywhere = mser(rates, rates.size)
    middle = cut + (rates.size - cut) // 2
    if any(_differ(rates[cut:later], rates[later:]) for later in (anywhere, middle) if later > cut):
        return Steadiness(False)
    return Steadiness(True, float(grid[cut] - grid[0]), float(grid[cut]))


def mser(rates: Sequence[float] | Numbers, most: int) -> int:
    """How many of the first values MSER-5 leaves out: a multiple of five, at most `most`; two batches remain.

    Values at the end that make no whole batch do not count.
    """
    values = np.asarray(rates, dtype=np.float64)
    count = values.size // BATCH
    batches = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    cuts = range(min(count - 1, most // BATCH + 1))
    errors = [float(np.var(batches[cut:])) / (count - cut) for cut in cuts]
    return int(np.argmin(errors)) * BATCH if errors else 0


def _differ(one: Numbers, other: Numbers) -> bool:
    """Whether two pieces of the series differ by more than a tenth, and by more than noise explains."""
    if not one.size or not other.size:
        return False
    low, high = sorted((float(np.median(one)), float(np.median(other))))
    if high - low <= DIFFERENCE * high:
        return False
    # Imported here: it takes a second, and most commands do not need it.
    from scipy import stats

    return bool(stats.mannwhitneyu(one, other).pvalue < CHANCE)
