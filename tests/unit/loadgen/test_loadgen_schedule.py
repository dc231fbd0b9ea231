"""Due times come from the rate, or from a topic's rhythm; being late is counted."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen import OptionsError, load_from
from loadgen.dataset.store import Builder, Dataset
from loadgen.schedule import LATE_MS, EvenSchedule, Lateness, RecordedSchedule, schedule_of

START_US = 1_769_879_160_000_000
Times = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
rates = st.floats(0.01, 1e7)
USUAL = {"bootstrap": "b", "topic": "t", "count": 10, "records": "kafka://b:1/t"}
TIMES = st.lists(st.integers(0, 10_000), min_size=1, max_size=20).map(lambda gaps: np.cumsum([0, *gaps, 7]) + 10**12)


def test_record_i_is_due_i_over_rate_after_the_start() -> None:
    schedule = EvenSchedule(1000, START_US)
    assert [due - START_US for due in schedule.due_us(0, 4)] == [0, 1000, 2000, 3000]
    assert schedule.due_us(60_000, 1) == [START_US + 60_000_000]
    assert schedule.wait_seconds(1, START_US + 400) == 0.0006


@given(rate=rates, first=st.integers(0, 10**9), count=st.integers(1, 50))
def test_due_times_are_in_order_and_do_not_depend_on_what_was_asked_before(rate: float, first: int, count: int) -> None:
    schedule = EvenSchedule(rate, START_US)
    dues = schedule.due_us(first, count)
    assert dues == sorted(dues)
    assert dues == [schedule.due_us(first + each, 1)[0] for each in range(count)]


@given(rate=rates, after_us=st.integers(0, 10**11))
def test_exactly_the_records_due_until_now_are_due(rate: float, after_us: int) -> None:
    schedule, now_us = EvenSchedule(rate, START_US), START_US + after_us
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


def dataset(times_ms: list[int] | None) -> Dataset:
    builder = Builder()
    for _ in times_ms or [0]:
        builder.add(b"{}", None)
    return builder.build("here", whole=True, times_ms=times_ms)


GAPS = np.array([5, 5, 9, 25])


def test_without_a_rate_the_gaps_are_as_they_were() -> None:
    schedule = RecordedSchedule(GAPS, None, START_US)
    # The mean gap of 20 ms / 3 stands between the last record and the first one of the next round.
    due = [START_US + offset for offset in (0, 0, 4_000, 20_000, 26_667, 26_667, 30_667)]
    assert schedule.due_us(0, 7) == due
    # A part of a load begins with its own record.
    assert RecordedSchedule(GAPS, None, START_US, first_seq=6).due_us(0, 2) == [START_US, START_US + 16_000]


@given(TIMES, st.floats(0.5, 1e6), st.integers(0, 50))
def test_a_rate_is_kept_on_average(times: Times, rate: float, first: int) -> None:
    schedule = RecordedSchedule(times, rate, START_US, first)
    whole_rounds = 10 * len(times)
    assert schedule.one_due_us(0) == pytest.approx(START_US, abs=1)
    seconds = (schedule.one_due_us(whole_rounds) - START_US) / 1e6
    assert seconds == pytest.approx(whole_rounds / rate, rel=0.01, abs=1e-5)


@given(TIMES, st.none() | st.floats(0.5, 1e6), st.integers(0, 50), st.integers(0, 200))
def test_as_many_are_due_as_have_their_time_behind_them(
    times: Times, rate: float | None, first: int, record: int
) -> None:
    schedule = RecordedSchedule(times, rate, START_US, first)
    due = schedule.due_us(0, 300)
    assert all(one <= other for one, other in pairwise(due))
    now = due[record]
    assert schedule.due_count(now) == sum(each <= now for each in due) or due[-1] <= now
    assert schedule.wait_seconds(record, now) == 0
    assert schedule.due_count(START_US - 10**13) == 0


def test_records_without_times_have_no_rhythm() -> None:
    load = load_from({**USUAL, "pace": "recorded"})
    assert isinstance(schedule_of(load, dataset([1, 2]), START_US), RecordedSchedule)
    for times in (None, [3], [3, 3]):
        with pytest.raises(OptionsError, match="have no times to follow"):
            schedule_of(load, dataset(times), START_US)
    assert schedule_of(load_from(USUAL), dataset([1, 2]), START_US) is None
    assert isinstance(schedule_of(load_from({**USUAL, "rate": 5}), dataset(None), START_US), EvenSchedule)
