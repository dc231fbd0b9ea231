"""Times that follow from sequence numbers, against operations whose times are known."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.sinks.arrivals import SeqNoTimes


@given(
    rate=st.floats(10, 1e5),
    interval_us=st.floats(1_000, 500_000),
    start_us=st.floats(0, 2e15),
)
def test_every_operation_is_found_between_the_readings_around_it(
    rate: float, interval_us: float, start_us: float
) -> None:
    happened = start_us + np.arange(200) * 1e6 / rate
    readings = np.arange(start_us - interval_us, happened[-1] + 2 * interval_us, interval_us)[:100_000]
    highest = np.searchsorted(happened, readings, side="right") - 1
    times, widths = SeqNoTimes(readings.tolist(), highest.tolist()).at(np.arange(200))
    assert np.isfinite(times).all()
    # Microseconds since the epoch have that much room in a double.
    assert (np.abs(times - happened) <= interval_us + 1).all()
    assert np.allclose(widths, interval_us, atol=1)


def test_a_refresh_makes_all_of_an_interval_searchable_at_once() -> None:
    seen = SeqNoTimes([0, 100, 200], [-1, -1, 9])
    times, widths = seen.at([0, 4, 9], at_once=True)
    assert times.tolist() == [150, 150, 150]
    assert SeqNoTimes.resolution_us(widths) == 50


def test_a_gap_makes_the_records_of_its_time_known_less_well_and_fills_nothing_in() -> None:
    times, widths = SeqNoTimes([0, 100, 900], [-1, 9, 19]).at([5, 15])
    assert widths.tolist() == [100, 800]
    assert 100 < times[1] < 900


def test_what_was_there_before_the_first_reading_or_came_after_the_last_is_not_known() -> None:
    times, widths = SeqNoTimes([0, 100], [3, 9]).at([2, 5, 12])
    assert np.isnan(times).tolist() == [True, False, True]
    assert np.isnan(widths).tolist() == [True, False, True]
    nothing, _ = SeqNoTimes([], []).at([1])
    assert np.isnan(nothing).all()
    assert np.isnan(SeqNoTimes.resolution_us(np.array([np.nan])))
