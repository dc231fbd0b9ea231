"""Numbers out of samples: the rate of a drain, and the middle and the span of a cell's trials."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "FEWEST_SAMPLES",
    "HIGH_SHARE",
    "LOW_SHARE",
    "DrainRate",
    "drain_rate",
    "median_low_high",
    "progress",
    "ratio_to_slowest",
]

LOW_SHARE = 0.1
HIGH_SHARE = 0.9
FEWEST_SAMPLES = 4


@dataclass(frozen=True)
class DrainRate:
    """The rate of a drain over its measured window."""

    records_per_second: float
    window_seconds: float
    samples: int
    """Readings within the window that show progress over the one before."""


def drain_rate(
    times_seconds: npt.ArrayLike,
    stored: npt.ArrayLike,
    total: int,
    fewest_samples: int = FEWEST_SAMPLES,
    from_seconds: float | None = None,
) -> DrainRate | None:
    """The mean rate at which a drain stored its records once it was warm, until 90 % of its `total` were stored.

    `times_seconds` and `stored` are its samples: when, and how many records the sink held. The end is left out for the
    partitions that run dry one after the other, the start for the connector's start-up: what comes before
    `from_seconds`, on the samples' clock, where the samples show when the rate was steady; else the first 10 %.

    The times at which 10 % and 90 % were stored are interpolated linearly between the samples around them, and so is
    what was stored at `from_seconds`. The rate is that between the two ends, 0.8 x total / (t90 - t10) without
    `from_seconds`: the mean over the window by definition, records over time. A least-squares slope is not: it weighs
    samples by their distance from the middle, so a stall counts for more or less by where it falls, and by how densely
    it was sampled. The error of this one is at most one sampling interval at either end of the window.

    None if either share was not seen to be crossed, or if fewer than `fewest_samples` samples within the window show
    progress: a window that short, or a sink that stores in so few steps, cannot give a number.
    """
    if total < 1:
        raise ValueError(f"total must be at least 1, found {total}")
    times, counts = progress(times_seconds, stored)
    start = _crossing(times, counts, LOW_SHARE * total) if from_seconds is None else from_seconds
    end = _crossing(times, counts, HIGH_SHARE * total)
    if start is None or end is None or end <= start:
        return None
    inside = (times >= start) & (times <= end) & (np.diff(counts, prepend=counts[0]) > 0)
    samples = int(np.count_nonzero(inside))
    if samples < fewest_samples:
        return None
    window_seconds = end - start
    before = LOW_SHARE * total if from_seconds is None else float(np.interp(start, times, counts))
    return DrainRate((HIGH_SHARE * total - before) / window_seconds, window_seconds, samples)


def median_low_high(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Median, lowest and highest of the values; None if there are none."""
    return (statistics.median(values), min(values), max(values)) if values else None


def ratio_to_slowest(rates: Sequence[float | None]) -> list[float | None]:
    """Each rate divided by the lowest of them; None where there is no rate, or none above 0 to divide by."""
    slowest = min((rate for rate in rates if rate is not None), default=0.0)
    return [rate / slowest if rate is not None and slowest > 0 else None for rate in rates]


def progress(
    times_seconds: npt.ArrayLike, stored: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Samples made fit to calculate with: in order of time, without gaps (NaN), and never falling.

    A count that is below an earlier one was read out of order or from a shard that lags behind, since a sink loses no
    rows while it drains; it is taken as no progress. ValueError if the two differ in length or have two dimensions.
    """
    times = np.asarray(times_seconds, dtype=np.float64)
    counts = np.asarray(stored, dtype=np.float64)
    if times.ndim != 1 or times.shape != counts.shape:
        raise ValueError(f"times and counts must be two lists of one length, found {times.shape} and {counts.shape}")
    known = np.isfinite(times) & np.isfinite(counts)
    order = np.argsort(times[known], kind="stable")
    return times[known][order], np.maximum.accumulate(counts[known][order])


def _crossing(times: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], level: float) -> float | None:
    """When `counts` first reached `level`; None if that was before the first sample, or never."""
    after = int(np.searchsorted(counts, level, side="left"))
    if after in (0, counts.size):
        return None
    before = after - 1
    share = (level - counts[before]) / (counts[after] - counts[before])
    return float(times[before] + share * (times[after] - times[before]))
