"""Due times come from the rate; being late is counted."""

from hypothesis import given
from hypothesis import strategies as st

from loadgen.schedule import LATE_MS, Lateness, Schedule

START_US = 1_769_879_160_000_000
rates = st.floats(0.01, 1e7)


def test_record_i_is_due_i_over_rate_after_the_start() -> None:
    schedule = Schedule(1000, START_US)
    assert [due - START_US for due in schedule.due_us(0, 4)] == [0, 1000, 2000, 3000]
    assert schedule.due_us(60_000, 1) == [START_US + 60_000_000]
    assert schedule.wait_seconds(1, START_US + 400) == 0.0006


@given(rate=rates, first=st.integers(0, 10**9), count=st.integers(1, 50))
def test_due_times_are_in_order_and_do_not_depend_on_what_was_asked_before(rate: float, first: int, count: int) -> None:
    schedule = Schedule(rate, START_US)
    dues = schedule.due_us(first, count)
    assert dues == sorted(dues)
    assert dues == [schedule.due_us(first + each, 1)[0] for each in range(count)]


@given(rate=rates, after_us=st.integers(0, 10**11))
def test_exactly_the_records_due_until_now_are_due(rate: float, after_us: int) -> None:
    schedule, now_us = Schedule(rate, START_US), START_US + after_us
    count = schedule.due_count(now_us)
    assert schedule.due_count(START_US - 1) == 0
    assert schedule.wait_seconds(count - 1, now_us) == 0 < schedule.wait_seconds(count, now_us)
    assert schedule.due_us(count - 1, 1)[0] <= now_us < schedule.due_us(count, 1)[0]


def test_records_are_in_time_until_the_last_one_was_due() -> None:
    bound_us = 5_000 + LATE_MS * 1000
    lateness = Lateness(last_due_us=5_000)
    lateness.add([0, 1_000, 2_000], sent_us=bound_us)
    lateness.add([3_000, 5_000], sent_us=bound_us + 1)
    assert lateness.records_in_time == 3


def test_lateness_is_the_worst_and_counts_each_record_beyond_the_bound() -> None:
    lateness = Lateness()
    lateness.add([0, 1_000, 2_000], sent_us=2_000)
    assert (lateness.max_us, lateness.records_late) == (2_000, 0)
    bound_us = LATE_MS * 1000
    lateness.add([0, 1, 2, 3], sent_us=bound_us + 2)
    assert (lateness.max_us, lateness.records_late) == (bound_us + 2, 2)
