"""No quantile is given that its count cannot support."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.latency import LatencyHistogram, supports


@pytest.mark.parametrize(("quantile", "least"), [(0.5, 20), (0.95, 200), (0.99, 1_000), (0.999, 10_000)])
def test_a_quantile_needs_ten_samples_beyond_it(quantile: float, least: int) -> None:
    assert supports(least, quantile)
    assert not supports(least - 1, quantile)


def test_nothing_measured_is_null_not_zero() -> None:
    latency = LatencyHistogram().read(one_in=1)
    assert latency.model_dump() == {
        "p50": None, "p95": None, "p99": None, "p999": None, "max": None, "count": 0, "one_in": 1,
    }  # fmt: skip


def test_quantiles_are_in_ms_and_the_unsupported_ones_are_null() -> None:
    histogram = LatencyHistogram()
    for microseconds in range(1_000, 1_001_000, 1_000):
        histogram.add(microseconds)
    latency = histogram.read(one_in=61)
    assert latency.p50 == pytest.approx(500, rel=0.002)
    assert latency.p99 == pytest.approx(990, rel=0.002)
    assert latency.p999 is None
    assert latency.max == pytest.approx(1000, rel=0.002)
    assert (latency.count, latency.one_in) == (1000, 61)


@given(st.integers(-(10**6), 10**13))
def test_a_latency_out_of_range_is_counted_all_the_same(microseconds: int) -> None:
    histogram = LatencyHistogram()
    histogram.add(microseconds)
    assert histogram.read(one_in=1).count == 1
