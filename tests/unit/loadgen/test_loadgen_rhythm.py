"""Records of a topic come in the rhythm in which they were written."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen import OptionsError, load_from
from loadgen.dataset.store import Builder, Dataset
from loadgen.rhythm import RecordedSchedule, schedule_of
from loadgen.schedule import Schedule

START_US = 1_000_000
USUAL = {"bootstrap": "b", "topic": "t", "count": 10, "records": "kafka://b:1/t"}
TIMES = st.lists(st.integers(0, 10_000), min_size=1, max_size=20).map(lambda gaps: np.cumsum([0, *gaps, 7]) + 10**12)


def dataset(times_ms: list[int] | None) -> Dataset:
    builder = Builder()
    for _ in times_ms or [0]:
        builder.add(b"{}", None)
    return builder.build("here", whole=True, times_ms=times_ms)


def test_without_a_rate_the_gaps_are_as_they_were() -> None:
    schedule = RecordedSchedule(np.array([5, 5, 9, 25]), None, START_US)
    # The mean gap of 20 ms / 3 stands between the last record and the first one of the next round.
    due = [START_US + offset for offset in (0, 0, 4_000, 20_000, 26_667, 26_667, 30_667)]
    assert schedule.due_us(0, 7) == due


def test_a_part_of_a_load_begins_with_its_own_record() -> None:
    schedule = RecordedSchedule(np.array([5, 5, 9, 25]), None, START_US, first_seq=6)
    assert schedule.due_us(0, 2) == [START_US, START_US + 16_000]


@given(TIMES, st.floats(0.5, 1e6), st.integers(0, 50))
def test_a_rate_is_kept_on_average(
    times: np.ndarray[tuple[int, ...], np.dtype[np.int64]], rate: float, first: int
) -> None:
    schedule = RecordedSchedule(times, rate, START_US, first)
    whole_rounds = 10 * len(times)
    assert schedule.one_due_us(0) == pytest.approx(START_US, abs=1)
    seconds = (schedule.one_due_us(whole_rounds) - START_US) / 1e6
    assert seconds == pytest.approx(whole_rounds / rate, rel=0.01, abs=1e-5)


@given(TIMES, st.none() | st.floats(0.5, 1e6), st.integers(0, 50), st.integers(0, 200))
def test_as_many_are_due_as_have_their_time_behind_them(
    times: np.ndarray[tuple[int, ...], np.dtype[np.int64]], rate: float | None, first: int, record: int
) -> None:
    schedule = RecordedSchedule(times, rate, START_US, first)
    due = schedule.due_us(0, 300)
    assert all(one <= other for one, other in pairwise(due))
    now = due[record]
    assert schedule.due_count(now) == sum(each <= now for each in due) or due[-1] <= now
    assert schedule.wait_seconds(record, now) == 0
    assert schedule.due_count(START_US - 1_000_000) == 0


def test_records_without_times_have_no_rhythm() -> None:
    load = load_from({**USUAL, "pace": "recorded"})
    assert isinstance(schedule_of(load, dataset([1, 2]), START_US), RecordedSchedule)
    for times in (None, [3], [3, 3]):
        with pytest.raises(OptionsError, match="have no times to follow"):
            schedule_of(load, dataset(times), START_US)
    assert schedule_of(load_from(USUAL), dataset([1, 2]), START_US) is None
    assert isinstance(schedule_of(load_from({**USUAL, "rate": 5}), dataset(None), START_US), Schedule)
