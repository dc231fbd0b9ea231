"""The rate of a drain, where its warm-up ends (by MSER-5 on its samples), and median and range of a cell's rates.

(K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69, 1997; batches
of 5: K. P. White, M. J. Cobb, S. C. Spratt, Winter Simulation Conference 2000.) Of the mean rates x_0 .. x_(n-1) of
batches of five readings, the first d are left out, at most half, where d minimizes the squared standard error of the
rest:

    z(d) = sum_(i >= d) (x_i - mean_(i >= d) x)^2 / (n - d)^2

What is cut off must differ from the rest: medians more than 10 % apart, and a Mann-Whitney test with p < 0.01; else
fewer batches are cut off. The trial is steady if the rest does not differ so before and after its middle, nor where
MSER would cut the whole series, which finds late steps."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sinkbench.results import CellSummary, RatePerSecond

LOW_SHARE = 0.1
HIGH_SHARE = 0.9
FEWEST_SAMPLES = 4

Number = TypeVar("Number", int, float)
Numbers = npt.NDArray[np.float64]


def drain_rate(
    times_seconds: npt.ArrayLike, stored: npt.ArrayLike, total: int, from_seconds: float | None = None
) -> float | None:
    """The mean rate of a warm drain: records over time, from `from_seconds` (samples' clock; else from 10 %) until 90 %
    of its `total` records were stored, since partitions run dry one by one. Both ends are interpolated linearly, with
    an error of at most one sampling interval. None if an end was not seen, or fewer than 4 samples show progress."""
    if total < 1:
        raise ValueError(f"total must be at least 1, found {total}")
    times, counts = progress(times_seconds, stored)
    start = _crossing(times, counts, LOW_SHARE * total) if from_seconds is None else from_seconds
    end = _crossing(times, counts, HIGH_SHARE * total)
    if start is None or end is None or end <= start:
        return None
    inside = (times >= start) & (times <= end) & (np.diff(counts, prepend=counts[0]) > 0)
    if np.count_nonzero(inside) < FEWEST_SAMPLES:
        return None
    before = LOW_SHARE * total if from_seconds is None else float(np.interp(start, times, counts))
    return (HIGH_SHARE * total - before) / (end - start)


def most(values: Iterable[Number | None]) -> Number | None:
    """The highest known value; None if none is known."""
    return max((value for value in values if value is not None), default=None)


def median_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def total_known(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def usable_rate(cell: CellSummary) -> RatePerSecond | None:
    """The rate of a cell; None if it is invalid, or was not warm and steady."""
    return None if cell.invalid or cell.at_least is not None else cell.records_per_second


def usable_median(cell: CellSummary) -> float | None:
    rate = usable_rate(cell)
    return None if rate is None else rate.median


def progress(times_seconds: npt.ArrayLike, stored: npt.ArrayLike) -> tuple[Numbers, Numbers]:
    """Samples ordered by time, without NaN, and never falling: a sink loses no rows in a drain, so a lower count was
    read out of order or from a lagging shard. ValueError if shapes differ or are two-dimensional."""
    times = np.asarray(times_seconds, dtype=np.float64)
    counts = np.asarray(stored, dtype=np.float64)
    if times.ndim != 1 or times.shape != counts.shape:
        raise ValueError(f"times and counts must be two lists of one length, found {times.shape} and {counts.shape}")
    known = np.isfinite(times) & np.isfinite(counts)
    order = np.argsort(times[known], kind="stable")
    return times[known][order], np.maximum.accumulate(counts[known][order])


def _crossing(times: Numbers, counts: Numbers, level: float) -> float | None:
    """When `counts` first reached `level`, interpolated; None if before the first sample or never."""
    after = int(np.searchsorted(counts, level, side="left"))
    if after in (0, counts.size):
        return None
    before = after - 1
    share = (level - counts[before]) / (counts[after] - counts[before])
    return float(times[before] + share * (times[after] - times[before]))


BATCH = 5
FEWEST_READINGS = 25
DIFFERENCE = 0.10
CHANCE = 0.01


@dataclass(frozen=True)
class Steadiness:
    """A drain's warm-up; `steady` in its window's first half, `from_seconds` by the samples' clock; None: unknown."""

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


def rate_from_pilot(times_seconds: npt.ArrayLike, stored: npt.ArrayLike) -> float | None:
    """Returns records per second over the second half of the time from first to last stored record, if any."""
    # A fresh JVM is much slower at first, so a trial sized by the first half would be too short.
    times, counts = progress(times_seconds, stored)
    if times.size < 2 or counts[-1] == counts[0]:
        return None
    start = int(np.searchsorted(counts, counts[0], side="right")) - 1
    end = int(np.searchsorted(counts, counts[-1], side="left"))
    middle = (times[start] + times[end]) / 2
    return float((counts[end] - np.interp(middle, times, counts)) / (times[end] - middle))
