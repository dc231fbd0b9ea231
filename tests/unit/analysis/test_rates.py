"""The rate of a drain, and what is said of several."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sinkbench.analysis.rates import drain_rate, median_low_high
from tests.support.present import present


@given(
    rate=st.floats(100, 200_000),
    seconds=st.floats(5, 60),
    interval=st.floats(0.1, 0.5),
    wait=st.floats(0.5, 5),
    jitter=st.integers(0, 2**32 - 1),
)
def test_a_constant_rate_is_found_within_the_sampling_error(
    rate: float, seconds: float, interval: float, wait: float, jitter: int
) -> None:
    total = int(rate * seconds)
    draw = np.random.default_rng(jitter)
    times = np.cumsum(draw.uniform(0.8, 1.2, int((seconds + wait) / interval * 1.5)) * interval)
    assume(times[-1] > seconds + wait)
    found = present(drain_rate(times, np.clip(np.floor((times - times[0] - wait) * rate), 0, total), total))
    assert found == pytest.approx(rate, rel=2 * 1.2 * interval / (0.8 * seconds))


def test_slow_start_and_slow_end_are_outside_the_window() -> None:
    times = np.arange(0, 41.0)
    found = present(drain_rate(times, np.interp(times, [0, 10, 18, 40], [0, 100, 900, 1000]), 1000))
    assert found == pytest.approx(100)


def test_a_stall_counts_by_its_length_wherever_it_falls() -> None:
    def with_stall_at(share: float) -> float:
        times = np.arange(0, 31.0)
        stored = np.interp(times, [0, 20 * share, 20 * share + 10, 30], [0, 2000 * share, 2000 * share, 2000])
        return present(drain_rate(times, stored, 2000))

    assert with_stall_at(0.2) == pytest.approx(with_stall_at(0.5)) == pytest.approx(1600 / 26)


def test_counts_that_fall_are_taken_as_no_progress() -> None:
    times = np.arange(0, 11.0)
    confused = times * 100
    confused[5] = 0
    assert present(drain_rate(times, confused, 1000)) == pytest.approx(100)


def test_samples_out_of_order_and_samples_without_a_count_do_not_disturb() -> None:
    times = [3.0, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
    stored = [300.0, 0, 100, 200, 400, float("nan"), 600, 700, 800, 900, 1000]
    assert present(drain_rate(times, stored, 1000)) == pytest.approx(100)


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ([], "no samples"),
        ([0], "one sample"),
        ([0, 0, 0, 0, 0, 0], "no progress"),
        ([0, 1000], "all of it between two samples"),
        ([0, 300, 600, 1000], "too few samples in the window"),
        ([0, 500, 500, 500, 500, 500, 500, 500, 1000], "many samples, but of two steps"),
        ([500, 600, 700, 750, 800, 850, 900, 1000], "begun before the first sample"),
        ([0, 100, 200, 300, 400, 500, 600, 700, 800], "given up before nine tenths"),
    ],
)
def test_a_drain_that_cannot_give_a_rate_gives_none(stored: list[float], why: str) -> None:
    assert drain_rate(range(len(stored)), stored, 1000) is None, why


def test_lists_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        drain_rate([1, 2], [1], 10)
    with pytest.raises(ValueError, match="total"):
        drain_rate([1, 2], [1, 2], 0)


def test_several_values_come_to_their_median_lowest_and_highest() -> None:
    assert (median_low_high([3.0, 1.0, 2.0]), median_low_high([1.0, 2.0])) == ((2.0, 1.0, 3.0), (1.5, 1.0, 2.0))
    assert median_low_high([]) is None
