"""Acknowledgement latency, and which of its quantiles a count of samples can support."""

from __future__ import annotations

from typing import Any

from hdrh.histogram import HdrHistogram
from pydantic import BaseModel, ConfigDict

__all__ = ["Latency", "LatencyHistogram", "supports"]

BEYOND = 10
"""So many samples must lie beyond a quantile for it to be given."""

HIGHEST_US = 3_600_000_000


def supports(count: int, quantile: float) -> bool:
    """Whether `count` samples can give `quantile` (0 to 1): at least 10 of them must lie beyond it.

    So p50 takes 20 samples, p95 200, p99 1,000 and p999 10,000.
    """
    # In millionths, as 0.001 has no exact binary form.
    return count * round((1 - quantile) * 1_000_000) >= BEYOND * 1_000_000


class Latency(BaseModel):
    """Quantiles in ms from hand-over to acknowledgement; None where `count`, the records measured, cannot support one.

    `one_in` says how the records were chosen: every one, or one in so many.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    max: float | None
    count: int
    one_in: int


class LatencyHistogram:
    """Takes latencies in microseconds, from 1 us to an hour, to three significant digits."""

    def __init__(self) -> None:
        self._histogram: Any = HdrHistogram(1, HIGHEST_US, 3)

    def add(self, microseconds: int) -> None:
        """Counts one latency; what is out of range counts as the nearest end of it."""
        self._histogram.record_value(min(max(1, microseconds), HIGHEST_US))

    def read(self, one_in: int) -> Latency:
        """The quantiles of what was counted."""
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
