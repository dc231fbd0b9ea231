"""Latency from when a record was due to when it was stored: histograms, and the quantiles that they support.

A record's latency begins at `due_us`, when the schedule meant to send it, not when it was sent: a generator, a broker
or a connector that stalls makes all that was due meanwhile late, and that counts (no coordinated omission, as G. Tene
calls it). Counted in an HdrHistogram of whole microseconds with three significant digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from loadgen.latency import HIGHEST_US, supports
from sinkbench.results import LatencyMs

__all__ = ["latency_of", "merged"]

DIGITS = 3


def latency_of(
    latencies_us: npt.ArrayLike, one_in: int = 1, resolution_ms: float | None = None, unknown: int = 0
) -> LatencyMs:
    """The distribution of latencies in microseconds.

    Args:
        latencies_us: of the records that were looked at. One below 0 is counted as `negative` and is in no quantile:
            the time of storing is known too badly, or the clocks disagree.
        one_in: one in so many records was looked at.
        resolution_ms: to within how many milliseconds the time of storing is known.
        unknown: records of which it is not known when they were stored.
    """
    values = np.asarray(latencies_us, dtype=np.float64)
    histogram = _empty()
    positive = values[values >= 0]
    whole = np.clip(np.rint(positive), 1, HIGHEST_US).astype(np.int64)
    for value, count in zip(*(part.tolist() for part in np.unique(whole, return_counts=True)), strict=True):
        histogram.record_value(value, count)
    earliest = -float(values.min()) / 1000 if positive.size < values.size else None
    return _read(histogram, one_in, int(values.size - positive.size), earliest, resolution_ms, unknown)


def merged(parts: Iterable[LatencyMs | None]) -> LatencyMs | None:
    """The distribution of all records of several trials together; None if none of them has one."""
    known = [part for part in parts if part is not None and part.histogram is not None]
    if not known:
        return None
    histogram = _empty()
    for part in known:
        histogram.add(HdrHistogram.decode(part.histogram))
    resolutions = [part.resolution_ms for part in known if part.resolution_ms is not None]
    early = [part.earliest for part in known if part.earliest is not None]
    return _read(
        histogram,
        max(part.one_in for part in known),
        sum(part.negative for part in known),
        max(early, default=None),
        max(resolutions, default=None),
        sum(part.unknown for part in known),
    )


def _empty() -> Any:
    return HdrHistogram(1, HIGHEST_US, DIGITS)


def _read(
    histogram: Any,
    one_in: int,
    negative: int,
    earliest: float | None,
    resolution_ms: float | None,
    unknown: int,
) -> LatencyMs:
    count = int(histogram.get_total_count())

    def quantile(share: float) -> float | None:
        if not supports(count, share):
            return None
        return float(histogram.get_value_at_percentile(100 * share)) / 1000

    return LatencyMs(
        p50=quantile(0.5),
        p95=quantile(0.95),
        p99=quantile(0.99),
        p999=quantile(0.999),
        max=float(histogram.get_max_value()) / 1000 if count else None,
        count=count,
        one_in=one_in,
        negative=negative,
        earliest=None if earliest is None else round(earliest, 3),
        unknown=unknown,
        resolution_ms=None if resolution_ms is None else round(resolution_ms, 3),
        histogram=histogram.encode().decode("ascii"),
    )
