"""Latency from `due_us`, when the schedule meant to send a record, to when it was stored. So a stall delays all
records due meanwhile (no coordinated omission: G. Tene). In an HdrHistogram of microseconds with three significant
digits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from sinkbench.analysis.rates import most
from sinkbench.results import LatencyMs

DIGITS = 3
HIGHEST_US = 3_600_000_000
BEYOND = 10
"""The samples that must lie beyond a quantile."""
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def supports(count: int, quantile: float) -> bool:
    """Whether 10 of `count` samples lie beyond `quantile` (0 to 1): p50 needs 20, p95 200, p99 1,000, p999 10,000."""
    # In millionths: 0.001 has no exact binary form.
    return count * round((1 - quantile) * 1_000_000) >= BEYOND * 1_000_000


def latency_of(
    latencies_us: npt.ArrayLike, one_in: int = 1, resolution_ms: float | None = None, unknown: int = 0
) -> LatencyMs:
    """The distribution of latencies in microseconds, when one in `one_in` records was read; `resolution_ms` is that
    of the time of storing, and `unknown` counts records without one. Negative latencies (imprecise times, or clocks
    that disagree) are only counted."""
    values = np.asarray(latencies_us, dtype=np.float64)
    histogram = HdrHistogram(1, HIGHEST_US, DIGITS)
    positive = values[values >= 0]
    whole = np.clip(np.rint(positive), 1, HIGHEST_US).astype(np.int64)
    for value, count in zip(*(part.tolist() for part in np.unique(whole, return_counts=True)), strict=True):
        histogram.record_value(value, count)
    return LatencyMs(
        **_figures(histogram),
        one_in=one_in,
        negative=int(values.size - positive.size),
        earliest=round(-float(values.min()) / 1000, 3) if positive.size < values.size else None,
        unknown=unknown,
        resolution_ms=None if resolution_ms is None else round(resolution_ms, 3),
    )


def merged(parts: Iterable[LatencyMs | None]) -> LatencyMs | None:
    """The distribution over all records of several trials; None if no trial has one."""
    known = [part for part in parts if part is not None and part.histogram is not None]
    if not known:
        return None
    histogram = HdrHistogram(1, HIGHEST_US, DIGITS)
    for part in known:
        histogram.add(HdrHistogram.decode(part.histogram))
    return LatencyMs(
        **_figures(histogram),
        one_in=max(part.one_in for part in known),
        negative=sum(part.negative for part in known),
        earliest=most(part.earliest for part in known),
        unknown=sum(part.unknown for part in known),
        resolution_ms=most(part.resolution_ms for part in known),
    )


def _figures(histogram: Any) -> dict[str, Any]:
    count = int(histogram.get_total_count())
    return {
        **{
            name: float(histogram.get_value_at_percentile(100 * share)) / 1000 if supports(count, share) else None
            for name, share in QUANTILES.items()
        },
        "max": float(histogram.get_max_value()) / 1000 if count else None,
        "count": count,
        "histogram": histogram.encode().decode("ascii"),
    }
