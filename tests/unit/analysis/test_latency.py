"""Distributions of latencies, and verdicts over lags, against those that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.latency import BOUNDED, GROWING, UNCLEAR, lag_of, latency_of, merged, warm_from
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


OFFERED = 1_000.0
TIMES = [0.25 * number for number in range(240)]


def noisy(growth: float, noise: float, seed: int, autocorrelation: float = 0.0) -> list[float]:
    """A lag that grows by so many records a second, with noise that remembers what it was a reading before."""
    draw = np.random.default_rng(seed)
    now, found = 0.0, []
    for seconds in TIMES:
        now = autocorrelation * now + noise * float(draw.normal())
        found.append(max(300 + growth * seconds + now, 0.0))
    return found


# The first call imports scipy, which takes longer than an example may.
@given(seed=st.integers(0, 1_000))
def test_a_lag_that_only_swings_is_bounded(seed: int) -> None:
    found = lag_of(TIMES, noisy(0, 50, seed), OFFERED)
    assert found.verdict == BOUNDED
    assert present(found.interval).blocks == 20


@given(seed=st.integers(0, 1_000), share=st.floats(0.03, 1))
def test_a_lag_that_grows_by_more_than_noise_is_growing_and_says_by_how_much(seed: int, share: float) -> None:
    found = lag_of(TIMES, noisy(share * OFFERED, 50, seed), OFFERED)
    assert (found.verdict, found.growth_per_second) == (GROWING, pytest.approx(share * OFFERED, abs=5))


@pytest.mark.parametrize(
    ("lags", "offered", "verdict"),
    [
        (noisy(5, 5, 1), OFFERED, BOUNDED),
        # Of a tenth of that load it is much.
        (noisy(5, 5, 1), OFFERED / 10, GROWING),
        (noisy(10, 2_000, 3), OFFERED, UNCLEAR),
        ([max(50_000 - 500 * t, 0) for t in TIMES], OFFERED, BOUNDED),
    ],
    ids=["growth below a hundredth of the load", "growth above it", "noise beyond the growth", "a lag that drains"],
)
def test_the_verdict_depends_on_growth_load_and_noise(lags: list[float], offered: float, verdict: str) -> None:
    assert lag_of(TIMES, lags, offered).verdict == verdict


def test_the_interval_covers_the_growth_although_readings_remember() -> None:
    inside = 0
    for seed in range(200):
        found = present(lag_of(TIMES, noisy(20, 40, seed, autocorrelation=0.8), OFFERED).interval)
        inside += found.low <= 20 <= found.high
    # 95 % are aimed at; batches of 12 readings still remember a little.
    assert inside >= 170


def test_the_warm_up_is_cut_off_where_the_readings_show_one() -> None:
    # Ten seconds of growth, until the JVM is warm, and then none.
    lags = [min(t, 10) * 300 + (7 * i) % 40 for i, t in enumerate(TIMES)]
    start = present(warm_from(TIMES, lags))
    assert 8 <= start <= 12
    assert lag_of(TIMES, lags, OFFERED, start).verdict == BOUNDED
    assert lag_of(TIMES, lags, OFFERED).largest == max(lags)


def test_gaps_are_left_out_and_too_few_readings_tell_nothing() -> None:
    lags = noisy(0, 10, 5)
    gaps = [float("nan") if 100 < number < 140 else lag for number, lag in enumerate(lags)]
    assert lag_of(TIMES, gaps, OFFERED).verdict == BOUNDED
    few = lag_of(TIMES[:19], lags[:19], OFFERED)
    assert (few.verdict, few.growth_per_second, few.interval) == (UNCLEAR, None, None)
    assert few.largest == round(max(lags[:19]))
    none = lag_of([], [], OFFERED)
    assert (none.verdict, none.largest, none.last) == (UNCLEAR, None, None)
    assert warm_from(TIMES[:5], lags[:5]) is None


@pytest.mark.parametrize("step", [0.25, 0.1, 1 / 3])
@pytest.mark.parametrize("growth", [0.0, 37.5, 1_000.0])
def test_a_perfect_line_has_a_verdict_without_an_error(step: float, growth: float) -> None:
    times = [number * step for number in range(81)]
    found = lag_of(times, [125 + growth * seconds for seconds in times], 10_000)
    assert found.growth_per_second == pytest.approx(growth, abs=0.01)
    assert (interval := present(found.interval)).high - interval.low < 1
