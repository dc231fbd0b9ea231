"""Distributions of latencies, against those of a pipeline whose delays are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.latency import latency_of, merged
from tests.support.present import present


def simulated(rate: float, seconds: float, delay_us: float, stall_us: float = 0.0) -> np.ndarray:
    """Latencies of a pipeline that takes `delay_us` for a record, and once stands still for `stall_us`, at 2 s."""
    due = np.arange(int(rate * seconds)) * 1e6 / rate
    stored = due + delay_us
    stalled = (stored >= 2e6) & (stored < 2e6 + stall_us)
    stored[stalled] = 2e6 + stall_us
    return stored - due


@given(delay_ms=st.floats(0.1, 60_000))
def test_a_fixed_delay_is_every_quantile(delay_ms: float) -> None:
    found = latency_of(simulated(1_000, 20, delay_ms * 1000))
    assert found.count == 20_000
    for quantile in (found.p50, found.p95, found.p99, found.p999, found.max):
        assert quantile == pytest.approx(delay_ms, rel=2e-3)


def test_all_that_was_due_while_the_pipeline_stood_still_is_late() -> None:
    found = latency_of(simulated(1_000, 20, 5_000, stall_us=2e6))
    # 2,000 of 20,000 records were due in the stall, evenly late between 5 ms and 2 s.
    assert (found.p50, found.p95) == (pytest.approx(5, rel=2e-3), pytest.approx(1_000, rel=0.02))
    assert (found.p99, found.max) == (pytest.approx(1_800, rel=0.02), pytest.approx(2_005, rel=0.02))


@pytest.mark.parametrize(
    ("count", "supported"),
    [(0, 0), (19, 0), (20, 1), (199, 1), (200, 2), (999, 2), (1_000, 3), (9_999, 3), (10_000, 4)],
)
def test_no_quantile_is_given_that_the_count_cannot_support(count: int, supported: int) -> None:
    found = latency_of([1_000.0] * count)
    quantiles = (found.p50, found.p95, found.p99, found.p999)
    assert [value is not None for value in quantiles] == [number < supported for number in range(4)]
    assert found.max == (pytest.approx(1, rel=2e-3) if count else None)


def test_what_was_stored_before_it_was_due_is_counted_and_in_no_quantile() -> None:
    found = latency_of([-5.0] * 30 + [2_000.0] * 40, one_in=3, resolution_ms=0.25, unknown=7)
    assert (found.count, found.negative, found.unknown, found.one_in) == (40, 30, 7, 3)
    assert (found.p50, found.resolution_ms, found.earliest) == (pytest.approx(2, rel=2e-3), 0.25, 0.005)
    assert latency_of([0.0, 1.0]).earliest is None


def test_trials_are_counted_together() -> None:
    one = latency_of([1_000.0] * 150, resolution_ms=10)
    found = present(merged([one, None, latency_of([9_000.0] * 50 + [-1.0], one_in=2, resolution_ms=40, unknown=1)]))
    assert (found.count, found.negative, found.unknown, found.one_in, found.resolution_ms) == (200, 1, 1, 2, 40)
    assert (found.earliest, found.p50, found.p95) == (0.001, pytest.approx(1, rel=2e-3), pytest.approx(9, rel=2e-3))
    assert merged([None]) is merged([]) is None
