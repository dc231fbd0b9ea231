"""How many records a drain trial needs, so that its window gets the length that the plan asks for."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sinkbench.stats import progress

__all__ = ["MAXIMUM_RECORDS", "MINIMUM_RECORDS", "rate_from_pilot", "records_for"]

MINIMUM_RECORDS = 2_000
MAXIMUM_RECORDS = 20_000_000
_SIGNIFICANT_DIGITS = 3


def records_for(
    rate_per_second: float,
    window_seconds: float,
    minimum: int = MINIMUM_RECORDS,
    maximum: int = MAXIMUM_RECORDS,
) -> int:
    """Records whose drain at `rate_per_second` takes `window_seconds`, from the first of them to the last.

    The number is rounded to three significant digits, then kept between `minimum` and `maximum`. ValueError if the
    rate is not a finite number of at least 0, or the window not one above 0.
    """
    if not (math.isfinite(rate_per_second) and rate_per_second >= 0):
        raise ValueError(f"rate_per_second must be a finite number of at least 0, found {rate_per_second}")
    if not (math.isfinite(window_seconds) and window_seconds > 0):
        raise ValueError(f"window_seconds must be a finite number above 0, found {window_seconds}")
    records = min(rate_per_second * window_seconds, 10.0 * maximum)
    return min(max(_rounded(records), minimum), maximum)


def rate_from_pilot(times_seconds: npt.ArrayLike, stored: npt.ArrayLike) -> float | None:
    """Records per second over the last half of a pilot; None if nothing was stored.

    `times_seconds` and `stored` are the samples of the pilot: when, and how many records the sink held. Only the time
    in which the sink filled counts, without the wait before the first record and after the last. Of that, the first
    half is left out, since a fresh worker's JVM is much slower at first and a trial sized by it would be too short.
    """
    times, counts = progress(times_seconds, stored)
    if times.size < 2 or counts[-1] == counts[0]:
        return None
    start = int(np.searchsorted(counts, counts[0], side="right")) - 1
    end = int(np.searchsorted(counts, counts[-1], side="left"))
    middle = (times[start] + times[end]) / 2
    return float((counts[end] - np.interp(middle, times, counts)) / (times[end] - middle))


def _rounded(records: float) -> int:
    if records < 1:
        return 0
    step: int = 10 ** max(0, math.floor(math.log10(records)) + 1 - _SIGNIFICANT_DIGITS)
    return round(records / step) * step
