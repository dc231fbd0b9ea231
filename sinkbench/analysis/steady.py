"""Where a drain's warm-up ends, by MSER-5 on its samples.

(K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69, 1997; batches
of 5: K. P. White, M. J. Cobb, S. C. Spratt, Winter Simulation Conference 2000.) Of the mean rates x_0 .. x_(n-1) of
batches of five readings, the first d are left out, at most half, where d minimizes the squared standard error of the
rest:

    z(d) = sum_(i >= d) (x_i - mean_(i >= d) x)^2 / (n - d)^2

What is cut off must differ from the rest: medians more than 10 % apart, and a Mann-Whitney test with p < 0.01; else
fewer batches are cut off. The trial is steady if the rest does not differ so before and after its middle, nor where
MSER would cut the whole series, which finds late steps.
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
    """A drain's warm-up; `steady` in the first half of its window, `from_seconds` on the samples' clock; None is
    unknown."""

    steady: bool | None
    warm_up_seconds: float | None = None
    from_seconds: float | None = None


def steadiness(times_seconds: npt.ArrayLike, stored: npt.ArrayLike, total: int) -> Steadiness:
    """When the rate of a drain became steady; it needs 25 readings between the first record and 90 % of `total`."""
    times, counts = progress(times_seconds, stored)
    first = int(np.searchsorted(counts, 0, side="right"))
    last = int(np.searchsorted(counts, HIGH_SHARE * total, side="left"))
    if last >= counts.size or last - first < FEWEST_READINGS:
        return Steadiness(None)
    # Readings may be late; on an even grid all rates weigh the same.
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
    """How many first values MSER-5 leaves out: a multiple of five, at most `most`; at least two batches remain."""
    values = np.asarray(rates, dtype=np.float64)
    count = values.size // BATCH
    batches = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    cuts = range(min(count - 1, most // BATCH + 1))
    errors = [float(np.var(batches[cut:])) / (count - cut) for cut in cuts]
    return int(np.argmin(errors)) * BATCH if errors else 0


def _differ(one: Numbers, other: Numbers) -> bool:
    """Whether two pieces differ by more than a tenth, and by more than noise explains."""
    if not one.size or not other.size:
        return False
    low, high = sorted((float(np.median(one)), float(np.median(other))))
    if high - low <= DIFFERENCE * high:
        return False
    # Imported here: it takes a second, and most commands do not need it.
    from scipy import stats

    return bool(stats.mannwhitneyu(one, other).pvalue < CHANCE)
