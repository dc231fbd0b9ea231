"""The size of a trial, from the rate of a pilot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.plan.sizing import MAXIMUM_RECORDS, MINIMUM_RECORDS, least_records, rate_from_pilot, records_for


def test_the_number_of_records_stays_within_its_bounds() -> None:
    assert (records_for(0, 15), records_for(1e12, 15)) == (MINIMUM_RECORDS, MAXIMUM_RECORDS)


@given(rate=st.floats(200, 1e6), window=st.floats(1, 60))
def test_the_window_is_met_within_the_rounding_to_three_digits(rate: float, window: float) -> None:
    records = records_for(rate, window, minimum=0, maximum=10**9)
    assert records / rate == pytest.approx(window, rel=0.006)
    assert len(str(records).rstrip("0")) <= 3


def test_the_slow_start_of_a_pilot_does_not_count() -> None:
    times = np.arange(0, 8.25, 0.25)
    warming = np.where(times < 4, times * 400, 1600 + (times - 4) * 2000)
    assert rate_from_pilot(times, warming) == pytest.approx(2000)


def test_neither_the_wait_before_the_first_record_nor_the_rest_after_the_last_counts() -> None:
    times = np.arange(0, 20, 0.25)
    assert rate_from_pilot(times, np.clip((times - 3) * 1000, 0, 5000)) == pytest.approx(1000)


def test_a_pilot_that_stored_all_between_two_samples_still_gives_a_rate() -> None:
    assert rate_from_pilot([0, 1, 2, 3], [0, 0, 500, 500]) == pytest.approx(500)


@pytest.mark.parametrize("stored", [[], [5], [0, 0, 0]])
def test_a_pilot_without_progress_has_no_rate(stored: list[int]) -> None:
    assert rate_from_pilot(range(len(stored)), stored) is None


def test_large_records_need_be_fewer() -> None:
    assert [least_records(size) for size in (1.5, 512, 100_000, 1_000_000, 1e9)] == [2_000, 2_000, 2_000, 200, 200]
