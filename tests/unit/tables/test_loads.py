"""Constant loads and capacities in a run's summary and in its table."""

import pytest

from sinkbench.analysis.latency import BOUNDED, GROWING, UNCLEAR, latency_of
from sinkbench.plan.cells import Cell
from sinkbench.plan.schedule import CapacitySearch
from sinkbench.results import Interval, Lag, TrialRecord
from sinkbench.summary.cells import summarize
from sinkbench.tables.cells import render
from sinkbench.trial.workloads.sustain import clock_step
from tests.support.present import present
from tests.support.trials import a_cell, run_summary
from tests.support.trials import trial as drained

SUSTAIN = a_cell(mode="sustain", offered=5_000.0)
SEARCHED = a_cell(mode="capacity")
UNTOLD = "UNCLEAR: cannot tell whether the lag grows (38 to 52"


def lag(verdict: str, growth: float = 0.0) -> Lag:
    between = Interval(low=growth - 10, high=growth + 10, confidence=0.95, method="batch means", blocks=20)
    return Lag.model_validate({"verdict": verdict, "growth_per_second": growth, "interval": between, "largest": 700})


def trial(cell: Cell, block: int, found: Lag, offered: float = 5_000.0, **fields: object) -> TrialRecord:
    of_a_load = {
        "block": block,
        "offered_records_per_second": offered,
        "lag": found,
        "latency_ms": latency_of([7_000.0 * block] * 1_000, resolution_ms=0.5),
    }
    return drained(offered - 1, cell, **{**of_a_load, **fields})


def test_records_stored_before_they_were_due_are_shown_with_the_likely_reason() -> None:
    late = latency_of([7_000.0] * 1_000 + [-10.0, -40_000], resolution_ms=0.5)
    (cell,) = summarize([SUSTAIN], [trial(SUSTAIN, 1, lag(BOUNDED), latency_ms=late)])
    assert "2 more stored before they were due, by 40.0 ms at most, so the clocks" in render(run_summary(cell))


def test_one_trial_that_did_not_keep_up_is_the_cells_verdict() -> None:
    (cell,) = summarize([SUSTAIN], [trial(SUSTAIN, 1, lag(BOUNDED)), trial(SUSTAIN, 2, worst := lag(GROWING, 400))])
    assert (cell.passed, cell.lag) == (False, worst)
    assert cell.verdict.startswith("NOT SUSTAINED: lag grows by 400")


@pytest.mark.parametrize(("other", "growth", "word"), [(0, 90, UNTOLD), (0, 80, "ok"), (-500, 90, UNTOLD)])
def test_trials_that_cannot_tell_alone_are_judged_together(other: float, growth: float, word: str) -> None:
    found = [trial(SUSTAIN, block, each) for block, each in enumerate((lag(BOUNDED, other), lag(UNCLEAR, growth)), 1)]
    (cell,) = summarize([SUSTAIN], found)
    assert cell.verdict.startswith(word)
    assert present(cell.lag).growth_per_second == growth / 2


def test_a_search_that_confirmed_nothing_gives_no_number_and_says_so() -> None:
    search = CapacitySearch(1_000, 1_400, 0.5, 2)
    for outcome in (BOUNDED, *[GROWING] * 5):
        assert search.next() is not None
        search.take(outcome)
    assert search.next() is None
    (cell,) = summarize([SEARCHED], [trial(SEARCHED, 1, lag(GROWING, 90), 1_000.0)], {SEARCHED.key: search})
    assert cell.records_per_second is None
    assert cell.verdict.startswith("invalid: no rate could be confirmed")
    assert "no rate could be confirmed" in render(run_summary(cell))


@pytest.mark.parametrize(("before", "after", "set_by"), [(0, -2_000, "-2,000 ms"), (5, 65, "+60 ms")])
def test_a_clock_that_is_set_is_noticed_and_one_that_drifts_is_not(before: float, after: float, set_by: str) -> None:
    assert clock_step(before, after) == f"this machine's clock was set by {set_by} during the trial"
    assert clock_step(before, before + 9) is None
