"""Times that follow from sequence numbers, against operations whose times are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.services.clocks import offset_of
from sinkbench.sinks.elasticsearch.times import SeqNoTimes, highest_found


@given(rate=st.floats(10, 1e5), interval_us=st.floats(1_000, 500_000), start_us=st.floats(0, 2e15))
def test_every_operation_is_found_between_two_readings(rate: float, interval_us: float, start_us: float) -> None:
    happened = start_us + np.arange(200) * 1e6 / rate
    readings = np.arange(start_us - interval_us, happened[-1] + 2 * interval_us, interval_us)[:100_000]
    highest = np.searchsorted(happened, readings, side="right") - 1
    times, widths = SeqNoTimes(readings.tolist(), highest.tolist()).at(np.arange(200))
    assert np.isfinite(times).all()
    # Microseconds since the epoch have that much room in a double.
    assert (np.abs(times - happened) <= interval_us + 1).all()
    assert np.allclose(widths, interval_us, atol=1)


def test_a_refresh_makes_all_of_an_interval_searchable_at_once() -> None:
    times, widths = SeqNoTimes([0, 100, 200], [-1, -1, 9]).at([0, 4, 9], at_once=True)
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


@given(
    ahead_us=st.floats(-1e9, 1e9),
    ways=st.lists(st.tuples(st.floats(1, 1e5), st.floats(1, 1e5)), min_size=1, max_size=9),
)
def test_a_clock_is_known_to_half_of_the_quickest_round_trip(ahead_us: float, ways: list[tuple[float, float]]) -> None:
    asked = [(1e9, 1e9 + there + ahead_us, 1e9 + there + back) for there, back in ways]
    offset, resolution = offset_of(asked)
    reach = min(there + back for there, back in ways) / 2
    if offset:
        assert abs(offset - ahead_us) <= reach + 1e-3
        assert abs(resolution - reach) <= 1e-3
    else:
        assert abs(ahead_us) <= 2 * reach + 1e-3
    assert offset_of([(0.0, 2_000_500.0, 1_000.0), (5_000.0, 2_005_050.0, 5_100.0)]) == (2_000_000.0, 50.0)


def test_each_shard_has_its_highest_number_and_one_that_does_not_answer_makes_the_reading_a_gap() -> None:
    answers = [{"status": 200, "aggregations": {"last": {"value": value}}} for value in (16.0, None, 0.0)]
    assert highest_found(answers) == [16.0, -1.0, 0.0]
    for at in range(3):
        # Without it the others' numbers would be taken for those of its neighbours.
        with pytest.raises(LookupError):
            highest_found([*answers[:at], {"status": 503}, *answers[at + 1 :]])
