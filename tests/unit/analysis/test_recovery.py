"""What a fault did to a pipeline, out of made samples."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.recovery import late_of, recovery_of, without_rates
from sinkbench.analysis.samples import Sample
from tests.support.present import present
from tests.support.trials import sample

RATE, LOAD, EVERY = 1_000.0, 30.0, 0.25


def load(
    stored_at: Callable[[float], float], seconds: float = LOAD + 10, running: Callable[[float], int] = lambda at: 3
) -> list[Sample]:
    """A load of 30 s at 1,000 records/s, of which so many are stored at each moment."""
    total = int(RATE * LOAD)
    made = []
    for at in np.arange(0, seconds, EVERY).tolist():
        sent = min(int(RATE * at), total)
        stored = min(int(stored_at(at)), sent)
        tasks = {"tasks_running": running(at), "tasks_failed": 3 - running(at)}
        made.append(sample(at, stored, in_topic=sent, uncommitted=sent - stored, backends=6, **tasks))
    return made


def stands_still(began: float, still: float, catch_up: float = 4.0) -> Callable[[float], float]:
    """Stores what comes, nothing for so long, and then that many times as much until all is there."""

    def stored(at: float) -> float:
        if at < began:
            return RATE * at
        return RATE * began + max(at - began - still, 0.0) * RATE * catch_up

    return stored


@given(began=st.floats(5, 12), still=st.floats(2, 9))
def test_a_standstill_has_its_end(began: float, still: float) -> None:
    found = recovery_of(load(stands_still(began, still)), began, began + 1, 3, "postgres")
    assert (found.target, found.before_records_per_second) == ("postgres", pytest.approx(RATE, rel=0.05))
    assert found.first_record_seconds == pytest.approx(still, abs=2 * EVERY)
    assert found.standstill_seconds == pytest.approx(still, abs=2 * EVERY)
    assert found.rate_seconds == pytest.approx(still, abs=1.5)
    # What came meanwhile is stored four times as fast as more comes.
    assert found.lag_seconds == pytest.approx(still * 4 / 3, abs=1.5)
    assert (found.stuck_seconds, found.told_seconds) == (pytest.approx(still, abs=3 * EVERY), None)


def test_a_pipeline_that_nothing_happened_to_never_stood_still() -> None:
    found = recovery_of(load(lambda at: RATE * at), 9, 14, 3)
    assert (found.first_record_seconds, found.standstill_seconds) == (0.0, 0.0)
    assert (found.rate_seconds, found.lag_seconds, found.stuck_seconds) == (0.0, 0.0, 0.0)
    assert found.during_records_per_second == pytest.approx(RATE, rel=0.02)
    assert found.after_records_per_second == pytest.approx(RATE, rel=0.02)
    assert (found.connections_before, found.connections_after) == (6, 6)


def test_a_pipeline_that_loses_a_third_of_its_rate_is_not_as_before_until_it_has_it_again() -> None:
    def stored(at: float) -> float:
        return RATE * (at if at < 10 else 10 + min(at - 10, 12) * 2 / 3 + max(at - 22, 0) * 3)

    found = recovery_of(load(stored), 10, 15, 3)
    assert (found.first_record_seconds, found.rate_seconds) == (0.0, pytest.approx(12, abs=1.5))
    assert present(found.lag_seconds) > 12
    assert found.during_records_per_second == pytest.approx(RATE * 2 / 3, rel=0.1)


def test_a_pipeline_that_never_comes_back_has_no_time_of_return() -> None:
    found = recovery_of(load(stands_still(10, 1_000)), 10, 15, 3)
    assert (found.first_record_seconds, found.lag_seconds) == (None, None)
    assert found.standstill_seconds == pytest.approx(30, abs=1)
    # Nothing else was ever stored: no rate tells of the time after.
    assert found.rate_seconds is None


def storing(stored: Callable[[float, int], int], read_after: float) -> list[Sample]:
    """The load, of which so many records are stored, and all are read after that moment."""
    return [
        replace(each, stored=stored(each.seconds, each.stored or 0), uncommitted=0 if each.seconds > read_after else 5)
        for each in load(lambda at: RATE * at)
    ]


def test_a_sink_that_stores_nothing_any_more_of_what_is_read_stands_still_until_the_last_record() -> None:
    found = recovery_of(storing(lambda at, stored: min(stored, 10_000), LOAD + 4), 10, 15, 3)
    assert (found.first_record_seconds, found.rate_seconds) == (None, None)
    assert found.standstill_seconds == pytest.approx(20, abs=2 * EVERY)
    assert found.stuck_seconds == pytest.approx(20, abs=2 * EVERY)


@pytest.mark.parametrize("lost", [400, 1_500])
def test_what_is_lost_is_no_lag_for_ever(lost: int) -> None:
    # Also more than a second's records, which is the least that counts as a lag.
    found = recovery_of(storing(lambda at, stored: max(stored - lost * (at >= 12), 0), LOAD), 10, 11, 3)
    assert found.lag_seconds is not None


def test_what_connect_says_is_set_against_what_is_stored() -> None:
    samples = load(stands_still(10, 8), running=lambda at: 1 if 14 <= at < 20 else 3)
    found = recovery_of(samples, 10, 12, 3)
    # For four of the eight seconds every task was called RUNNING.
    assert found.stuck_seconds == pytest.approx(4, abs=2 * EVERY)
    assert found.told_seconds == pytest.approx(4, abs=2 * EVERY)
    assert (found.failed_tasks, found.failed_seconds) == (2, pytest.approx(4, abs=2 * EVERY))


def test_where_connect_never_answered_its_tasks_are_not_known() -> None:
    samples = [
        sample(each.seconds, each.stored, in_topic=each.in_topic, tasks_running=3 if each.seconds < 10 else None)
        for each in load(stands_still(10, 8))
    ]
    found = recovery_of(samples, 10, 12, 3)
    assert (found.failed_tasks, found.stuck_seconds) == (None, None)
    assert present(found.standstill_seconds) > 7


@given(late=st.lists(st.floats(0, 60), min_size=1), one_in=st.integers(1, 9))
def test_late_is_what_is_stored_more_than_five_seconds_after_it_was_due(late: list[float], one_in: int) -> None:
    due_us = np.arange(len(late)) * 1e6
    count, latest = late_of(due_us, due_us + np.array(late) * 1e6, one_in)
    sure = [sum(each > 5 + about for each in late) for about in (1e-3, -1e-3)]
    assert one_in * sure[0] <= present(count) <= one_in * sure[1]
    assert latest == pytest.approx(max(late), abs=2e-3)


def test_of_records_whose_time_is_not_known_it_is_not_known_how_late_they_were() -> None:
    assert late_of(np.array([1e6, 2e6]), np.array([1e6, np.nan]), 1) == (None, None)
    assert late_of(np.empty(0), np.empty(0), 1) == (None, None)


@given(st.lists(st.tuples(st.floats(0, 40), st.integers(0, 30_000) | st.none()), min_size=1, max_size=30))
def test_no_samples_are_too_strange(readings: list[tuple[float, int | None]]) -> None:
    samples = [sample(at, stored, in_topic=20_000, tasks_running=3) for at, stored in sorted(readings, key=str)]
    assert recovery_of(samples, 10, 12, 3).standstill_seconds is not None


@given(began=st.floats(5, 12), share=st.floats(0.3, 0.7))
def test_what_lasts_until_all_is_stored_is_known_by_the_rate_meanwhile(began: float, share: float) -> None:
    def stored(at: float) -> float:
        return RATE * min(at, began) + share * RATE * max(at - began, 0.0)

    found = recovery_of(load(stored, seconds=2 * LOAD / share), began, None, 3)
    all_stored = began + (LOAD - began) / share
    assert found.ended_seconds == pytest.approx(all_stored, abs=2 * EVERY)
    # Without the rest at its end, in which the trial waits whether more comes.
    assert found.during_records_per_second == pytest.approx(share * RATE, rel=0.05)
    assert (found.rate_seconds, found.standstill_seconds) == (None, 0)


def drain(stored_at: Callable[[float], float], committed: bool = True) -> list[Sample]:
    """A backlog of 30,000 records, of which so many are stored at each moment of 40 s."""
    total = int(RATE * LOAD)
    stored = [(at, min(int(stored_at(at)), total)) for at in np.arange(0, LOAD + 10, EVERY).tolist()]
    return [
        sample(at, each, in_topic=total, uncommitted=0 if committed else total - each, tasks_running=3, tasks_failed=0)
        for at, each in stored
    ]


@given(began=st.floats(4, 9), still=st.floats(2, 9))
def test_a_drain_that_stands_still_flows_again_and_has_no_rate_to_be_as_before(began: float, still: float) -> None:
    found = without_rates(recovery_of(drain(stands_still(began, still)), began, began + 1, 3, "connect-3"))
    assert found.first_record_seconds == pytest.approx(still, abs=2 * EVERY)
    assert (found.standstill_seconds, found.is_silent) == (pytest.approx(still, abs=2 * EVERY), False)
    assert (found.rate_seconds, found.lag_seconds, found.late_records, found.latest_seconds) == (None,) * 4
    rates = (found.before_records_per_second, found.during_records_per_second, found.after_records_per_second)
    assert rates == (None, None, None)


@given(began=st.floats(4, 20))
def test_a_drain_of_which_nothing_more_is_stored_is_silent_though_all_was_committed(began: float) -> None:
    found = without_rates(recovery_of(drain(lambda at: RATE * min(at, began)), began, began + 1, 3, "elasticsearch"))
    assert (found.is_silent, found.standstill_seconds) == (True, pytest.approx(LOAD + 10 - began, abs=1))


@given(began=st.floats(4, 20))
def test_a_drain_that_has_lost_records_does_not_stand_still_when_the_others_are_stored(began: float) -> None:
    found = without_rates(recovery_of(drain(lambda at: RATE * min(at, 25.0)), began, began + 1, 3, "connect-3"))
    assert (found.first_record_seconds, found.standstill_seconds, found.is_silent) == (0.0, 0.0, False)
