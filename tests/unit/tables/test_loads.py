"""Constant loads and capacities in a run's summary and in its table."""

import pytest

from sinkbench.analysis.latency import BOUNDED, GROWING, UNCLEAR, latency_of
from sinkbench.analysis.limits import GENERATOR
from sinkbench.plan.cells import Cell
from sinkbench.plan.schedule import CapacitySearch
from sinkbench.results import CellSummary, Interval, Lag, Limit, RunSummary, TrialRecord
from sinkbench.summary.cells import summarize
from sinkbench.tables.cells import render
from sinkbench.trial.workloads.sustain import clock_step
from tests.support.trials import a_cell, run_summary, with_limits
from tests.support.trials import trial as drained

SUSTAIN = a_cell(mode="sustain", offered=5_000.0)
SEARCHED = a_cell(mode="capacity")


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


def run(cell: CellSummary, *limits: Limit) -> RunSummary:
    return run_summary(cell, limits=list(limits))


def test_a_load_that_is_kept_up_with_is_ok_and_its_trials_latencies_are_one_distribution() -> None:
    (cell,) = summarize([SUSTAIN], [trial(SUSTAIN, block, lag(BOUNDED)) for block in (1, 2)])
    assert (cell.verdict, cell.offered_records_per_second, cell.cell) == ("ok", 5_000, "postgres/jdbc@3x1@5000")
    assert cell.latency_ms is not None
    assert (cell.latency_ms.count, cell.latency_ms.p99) == (2_000, pytest.approx(14, rel=2e-3))
    text = render(run(cell, Limit(sink=GENERATOR, way="loadgen", records_per_second=300_000.0)))
    row = next(line for line in text.splitlines() if line.startswith("postgres/jdbc")).split()
    assert row[:6] == ["postgres/jdbc", "3", "(1)", "5,000", "4,999", "0"]
    assert "due until stored: 2,000 records, longest 14.0 ms, known to within 0.50 ms" in text
    assert "limit of generator: 300,000 records/s by loadgen alone" in text
    # It is the sink's limit that efficiency is of, and a load that was asked for is no share of it.
    (limited,) = with_limits([cell], [Limit(sink="postgres", way="COPY", records_per_second=100_000.0)])
    assert limited.efficiency is None


def test_records_stored_before_they_were_due_are_shown_with_the_likely_reason() -> None:
    late = latency_of([7_000.0] * 1_000 + [-10.0, -40_000], resolution_ms=0.5)
    (cell,) = summarize([SUSTAIN], [trial(SUSTAIN, 1, lag(BOUNDED), latency_ms=late)])
    assert "2 more stored before they were due, by 40.0 ms at most, so the clocks" in render(run(cell))


@pytest.mark.parametrize(
    ("worst", "word"), [(lag(GROWING, 400), "NOT SUSTAINED: lag grows by 400"), (lag(UNCLEAR, 30), "UNCLEAR: cannot")]
)
def test_one_trial_that_did_not_keep_up_is_the_cells_verdict(worst: Lag, word: str) -> None:
    (cell,) = summarize([SUSTAIN], [trial(SUSTAIN, 1, lag(BOUNDED)), trial(SUSTAIN, 2, worst)])
    assert (cell.passed, cell.lag) == (False, worst)
    assert cell.verdict.startswith(word)


def test_nothing_is_cut_off_where_every_column_is_full() -> None:
    wide = a_cell("elasticsearch/camel-index", 8, mode="sustain", offered=500.0)
    late = latency_of([3_949_123.0] * 20_000, resolution_ms=0.5)
    full = trial(
        wide,
        1,
        lag(GROWING, 307_000),
        500_000.0,
        latency_ms=late,
        searchable_ms=late,
        connections={"clients_peak": 1_280},
    )
    (cell,) = summarize([wide], [full])
    text = render(run(cell))
    assert "…" not in text
    assert max(map(len, text.split("due until")[0].splitlines())) <= 140
    rows = [line.split()[0] for line in text.splitlines() if line.startswith(("elasticsearch/ ", "camel-index"))]
    assert rows == ["elasticsearch/", "camel-index"]
    assert "NOT SUSTAINED" in text


def searched(*outcomes: str) -> CapacitySearch:
    search = CapacitySearch(1_000, 1_400, 0.5, 2)
    for outcome in outcomes:
        assert search.next() is not None
        search.take(outcome)
    return search


def test_a_search_that_confirmed_nothing_gives_no_number_and_says_so() -> None:
    search = searched(BOUNDED, GROWING, GROWING, GROWING, GROWING, GROWING)
    assert search.next() is None
    (cell,) = summarize([SEARCHED], [trial(SEARCHED, 1, lag(GROWING, 90), 1_000.0)], {SEARCHED.key: search})
    assert cell.records_per_second is None
    assert cell.verdict.startswith("invalid: no rate could be confirmed")
    assert "no rate could be confirmed" in render(run(cell))


def test_what_the_generator_could_not_exceed_is_noted() -> None:
    search = CapacitySearch(1_000, 1_000, 0.05, 1)
    search.take(BOUNDED)
    search.take(BOUNDED)
    (cell,) = summarize([SEARCHED], [trial(SEARCHED, 1, lag(BOUNDED), 1_000.0)], {SEARCHED.key: search})
    assert cell.passed
    assert any("the generator can offer no more" in note for note in cell.notes)


@pytest.mark.parametrize(("before", "after", "set_by"), [(0, -2_000, "-2,000 ms"), (5, 65, "+60 ms")])
def test_a_clock_that_is_set_is_noticed_and_one_that_drifts_is_not(before: float, after: float, set_by: str) -> None:
    assert clock_step(before, after) == f"this machine's clock was set by {set_by} during the trial"
    assert clock_step(before, before + 9) is None
