"""The size of a trial, from the rate of a pilot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.rates import rate_from_pilot
from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import expand
from sinkbench.plan.sizing import (
    FEWEST_FOR_DISK,
    MAXIMUM_RECORDS,
    MINIMUM_RECORDS,
    Sizes,
    StepsLeft,
    is_too_short,
    least_records,
    records_for,
    seconds_left,
    trial_seconds,
)
from sinkbench.results import Audit, Rescale
from tests.support.reasons import because
from tests.support.trials import plan_of, trial


def test_the_number_of_records_stays_within_its_bounds_and_large_ones_need_be_fewer() -> None:
    assert (records_for(0, 15), records_for(1e12, 15)) == (MINIMUM_RECORDS, MAXIMUM_RECORDS)
    assert [least_records(size) for size in (1.5, 512, 100_000, 1_000_000, 1e9)] == [2_000, 2_000, 2_000, 200, 200]


@given(rate=st.floats(200, 1e6), window=st.floats(1, 60))
def test_the_window_is_met_within_the_rounding_to_three_digits(rate: float, window: float) -> None:
    records = records_for(rate, window, minimum=0, maximum=10**9)
    assert records / rate == pytest.approx(window, rel=0.006)
    assert len(str(records).rstrip("0")) <= 3


def test_the_slow_start_of_a_pilot_its_wait_before_the_first_record_and_its_rest_after_the_last_do_not_count() -> None:
    times = np.arange(0, 8.25, 0.25)
    warming = np.where(times < 4, times * 400, 1600 + (times - 4) * 2000)
    assert rate_from_pilot(times, warming) == pytest.approx(2000)
    times = np.arange(0, 20, 0.25)
    assert rate_from_pilot(times, np.clip((times - 3) * 1000, 0, 5000)) == pytest.approx(1000)


@pytest.mark.parametrize(("stored", "rate"), [([0, 0, 500, 500], 500), ([], None), ([5], None), ([0, 0, 0], None)])
def test_a_pilot_has_a_rate_if_it_stored_all_between_two_samples_but_none_without_progress(
    stored: list[int], rate: float | None
) -> None:
    assert rate_from_pilot(range(len(stored)), stored) == (rate and pytest.approx(rate))


ANY = plan_of()
PLAN = plan_of(drain={"window_seconds": 10})
CELL = expand(PLAN, 3)[0]
SHORT = [because("too short", ReasonCode.TOO_SHORT)]
TWICE = Audit(produced=100, stored=101, lost=0, duplicates=1)
LATE = [because("3 of 6 tasks started", ReasonCode.TASKS_NOT_STARTED)]


def test_a_trial_is_sized_by_the_pilot_and_then_by_the_trial_before() -> None:
    sizes = Sizes(PLAN.drain)
    assert sizes.records(CELL) == 10_000
    sizes.learn(CELL.place, 5_000)
    assert sizes.records(CELL) == 50_000
    sizes.see(CELL, trial(6_000, CELL))
    assert sizes.records(CELL) == 60_000
    # An invalid one changes no size.
    sizes.see(CELL, trial(9_000, CELL, reasons=[because("a service died")]))
    assert sizes.records(CELL) == 60_000


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(6_660, 66_600), (6_670, FEWEST_FOR_DISK), (9_900, FEWEST_FOR_DISK), (10_000, FEWEST_FOR_DISK), (10_100, 101_000)],
)
def test_a_trial_that_has_nearly_enough_records_for_their_bytes_on_disk_gets_them(rate: int, expected: int) -> None:
    sizes = Sizes(PLAN.drain)
    sizes.learn(CELL.place, rate)
    assert sizes.records(CELL) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reasons": SHORT}, True),
        ({"reasons": [*SHORT, because("a service died")]}, False),
        ({"reasons": SHORT, "audit": Audit(produced=100, stored=99, lost=1, duplicates=0)}, False),
        ({"reasons": SHORT, "records": 20_000_000}, False),
        ({"reasons": LATE, "window_seconds": 1.5}, True),
        ({"reasons": LATE, "window_seconds": 12.0}, False),
        ({"reasons": [*LATE, *SHORT], "window_seconds": 1.5}, False),
        ({}, False),
        ({"reasons": SHORT, "audit": TWICE}, False),
        ({"reasons": SHORT, "audit": TWICE, "rescale": Rescale(tasks_before=3)}, True),
    ],
)
def test_too_short_is_what_nothing_else_is_wrong_with(fields: dict[str, object], expected: bool) -> None:
    assert is_too_short(trial(None, CELL, **fields), 10) == expected


def test_a_cold_trial_sizes_the_next_one_and_a_cold_one_that_was_too_short_grows() -> None:
    sizes = Sizes(PLAN.drain)
    sizes.see(CELL, trial(1_500, CELL, pilot=True, warm=False))
    assert sizes.records(CELL) == 15_000
    sizes.see(CELL, trial(None, CELL, records=15_000, window_seconds=9.0, pilot=True, warm=False, reasons=SHORT))
    assert sizes.records(CELL) == 60_000


def test_one_in_which_tasks_came_too_late_grows_though_it_has_a_rate() -> None:
    sizes = Sizes(PLAN.drain)
    sizes.learn(CELL.place, 1_000)
    sizes.see(CELL, trial(6_000, CELL, records=10_000, window_seconds=1.5, pilot=True, reasons=LATE))
    assert sizes.records(CELL) > 60_000


def test_pilots_of_a_fresh_stack_use_up_their_time_and_a_trial_takes_as_long_as_those_before() -> None:
    assert seconds_left(ANY, StepsLeft(1, 0, 0, 0, 240.0), []) == 240
    assert seconds_left(ANY, StepsLeft(4, 0, 0, 0, 1.0), []) == seconds_left(ANY, StepsLeft(4, 0, 0), []) > 1
    assert trial_seconds(ANY, [10.0, 20.0]) == 15.0
    assert trial_seconds(ANY, []) > ANY.drain.window_seconds
