"""Sizes a drain trial: the number of records for the planned duration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.rates import progress

MINIMUM_RECORDS = 2_000
MAXIMUM_RECORDS = 20_000_000
# Fewer than `MINIMUM_RECORDS` suffice if they have this many bytes.
_MINIMUM_BYTES = 200_000_000
_FEWEST_RECORDS = 200


def least_records(mean_bytes: float) -> int:
    """Minimum number of records of a loaded topic, given their mean size."""
    return max(_FEWEST_RECORDS, min(MINIMUM_RECORDS, int(_MINIMUM_BYTES / mean_bytes)))


def records_for(
    rate_per_second: float, window_seconds: float, minimum: int = MINIMUM_RECORDS, maximum: int = MAXIMUM_RECORDS
) -> int:
    """Returns the records that drain in `window_seconds`, to three digits and within the bounds."""
    records = min(rate_per_second * window_seconds, 10.0 * maximum)
    return min(max(round(float(f"{records:.3g}")), minimum), maximum)


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
