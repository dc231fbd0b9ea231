"""Acknowledgement latency, and which quantiles a number of samples can support."""

from __future__ import annotations

from typing import Any

from hdrh.histogram import HdrHistogram
from pydantic import BaseModel

__all__ = ["Latency", "LatencyHistogram", "supports"]

BEYOND = 10
"""A quantile needs at least this many samples beyond it."""

HIGHEST_US = 3_600_000_000


def supports(count: int, quantile: float) -> bool:
    """Whether 10 of `count` samples lie beyond `quantile` (0 to 1): p50 needs 20, p95 200, p99 1,000, p999 10,000."""
    # In millionths, since 0.001 has no exact binary form.
    return count * round((1 - quantile) * 1_000_000) >= BEYOND * 1_000_000


class Latency(BaseModel, extra="forbid", frozen=True):
    """Quantiles in ms from hand-over to acknowledgement, of `count` records, one in `one_in`; None if too few."""

    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    max: float | None
    count: int
    one_in: int


class LatencyHistogram:
    """A histogram of latencies from 1 us to an hour, to three significant digits."""

    def __init__(self) -> None:
        self._histogram: Any = HdrHistogram(1, HIGHEST_US, 3)

    def add(self, microseconds: int) -> None:
        """Counts one latency; one out of range counts as the range's end."""
        self._histogram.record_value(min(max(1, microseconds), HIGHEST_US))

    def read(self, one_in: int) -> Latency:
        """The quantiles so far."""
        count = int(self._histogram.get_total_count())

        def quantile(value: float) -> float | None:
            if not supports(count, value):
                return None
            return float(self._histogram.get_value_at_percentile(value * 100)) / 1000

        return Latency(
            p50=quantile(0.5),
            p95=quantile(0.95),
            p99=quantile(0.99),
            p999=quantile(0.999),
            max=float(self._histogram.get_max_value()) / 1000 if count else None,
            count=count,
            one_in=one_in,
        )
