"""From trials to cells: what is counted, what is left out, and what the verdict says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.cells import Cell
from sinkbench.results import Audit, CellSummary, Connections, TrialRecord
from sinkbench.summarize import scalings, summarize

CELL = Cell("postgres/jdbc", "postgres/jdbc", "postgres", 8, 3)
OTHER = Cell("elasticsearch/camel-bulk", "elasticsearch/camel-bulk", "elasticsearch", 1, 3)
CLEAN = Audit(produced=100, stored=100, lost=0, duplicates=0)


def trial(rate: float | None = 1000.0, cell: Cell = CELL, **fields: object) -> TrialRecord:
    bare = {
        "trial": "t1",
        "block": 1,
        **cell.identity(),
        "started_at": "2026-01-31T17:06:00Z",
        "seconds": 20.0,
        "records": 100,
        "records_per_second": rate,
        "audit": CLEAN,
    }
    return TrialRecord.model_validate({**bare, **fields})


def cell_of(*trials: TrialRecord) -> CellSummary:
    (only,) = summarize([CELL], trials)
    return only


def test_a_cell_has_the_median_and_the_span_of_its_trials() -> None:
    cell = cell_of(trial(3000.0), trial(1000.0), trial(2000.0))
    assert cell.records_per_second is not None
    assert cell.records_per_second.model_dump() == {
        "median": 2000.0,
        "low": 1000.0,
        "high": 3000.0,
        "values": [3000.0, 1000.0, 2000.0],
        "interval": None,
    }
    assert cell.trials == 3
    assert cell.verdict == "ok"
    assert cell.passed
    assert (cell.tasks, cell.tasks_per_worker, cell.workers) == (24, 8, 3)


def test_cells_come_in_the_order_of_the_plan() -> None:
    taken = [trial(cell=OTHER), trial()]
    assert [cell.cell for cell in summarize([CELL, OTHER], taken)] == [CELL.key, OTHER.key]


def test_pilots_are_left_out() -> None:
    assert cell_of(trial(1.0, pilot=True), trial(5.0)).trials == 1


def test_a_trial_of_no_cell_of_the_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the plan"):
        summarize([CELL], [trial(cell=OTHER)])


def test_a_cell_without_trials_is_invalid_and_has_no_numbers() -> None:
    cell = cell_of()
    assert cell.invalid == ["no trial was taken"]
    assert cell.records_per_second is None
    assert cell.audit is None
    assert cell.connections == Connections()
    assert not cell.passed


def test_an_invalid_trial_is_left_out_of_the_numbers_and_named_in_a_note() -> None:
    cell = cell_of(trial(1000.0), trial(9.0, invalid=["elasticsearch was killed"]), trial(3000.0))
    assert cell.records_per_second is not None
    assert cell.records_per_second.values == [1000.0, 3000.0]
    assert cell.invalid == []
    assert cell.notes == ["1 of 3 trials invalid: elasticsearch was killed"]
    assert cell.passed


def test_a_cell_of_invalid_trials_alone_gives_each_reason_once() -> None:
    cell = cell_of(trial(1.0, invalid=["a"]), trial(2.0, invalid=["a", "b"]), trial(None))
    assert cell.records_per_second is None
    assert cell.invalid == ["a", "b", "no rate could be measured"]
    assert cell.verdict == "invalid: a"
    assert not cell.passed


def test_a_loss_is_not_hidden_by_the_invalid_trial_it_happened_in() -> None:
    lossy = Audit(produced=100, stored=81, lost=23, duplicates=4)
    cell = cell_of(trial(), trial(None, audit=lossy, invalid=["timed out"]))
    assert cell.audit == Audit(produced=200, stored=181, lost=23, duplicates=4)
    assert cell.verdict == "LOST 23; DUPLICATED 4"
    assert not cell.passed
    assert cell.records_per_second is not None


def test_records_of_another_run_fail_the_cell() -> None:
    assert cell_of(trial(audit=Audit(produced=1, stored=3, lost=0, duplicates=0, foreign=2))).verdict == "FOREIGN 2"


def test_failed_tasks_come_first_with_their_cause() -> None:
    cell = cell_of(
        trial(
            None,
            failed_tasks=16,
            failure="FATAL: sorry, too many clients already",
            invalid=["tasks failed"],
            audit=None,
        )
    )
    assert cell.verdict == "16 of 24 tasks FAILED: FATAL: sorry, too many clients already"
    assert cell.invalid == ["tasks failed"]
    assert cell.failed_tasks == 16
    assert not cell.passed


def test_a_valid_trial_that_was_not_audited_does_not_pass() -> None:
    cell = cell_of(trial(), trial(audit=None))
    assert cell.verdict == "1 trial NOT AUDITED"
    assert not cell.passed
    assert cell_of(trial(audit=None), trial(audit=None)).verdict == "2 trials NOT AUDITED"


def test_connections_are_the_most_of_any_trial_and_stay_unknown_if_none_knew() -> None:
    cell = cell_of(
        trial(connections=Connections(clients_peak=5)),
        trial(None, connections=Connections(clients_peak=97), invalid=["x"]),
    )
    assert cell.connections == Connections(clients_peak=97, server_peak=None)


def test_costs_are_medians_over_the_valid_trials_that_have_them() -> None:
    cell = cell_of(
        trial(cpu_seconds_per_million={"connect": 1.0, "kafka": None}, records_per_write=10.0),
        trial(cpu_seconds_per_million={"connect": 3.0, "kafka": None}, records_per_write=None),
        trial(cpu_seconds_per_million={"connect": 99.0}, records_per_write=99.0, invalid=["x"]),
    )
    assert cell.cpu_seconds_per_million == {"connect": 2.0, "kafka": None}
    assert cell.records_per_write == 10.0


def test_the_placement_is_that_of_the_last_valid_trial() -> None:
    cell = cell_of(trial(placement={"w": 1}), trial(placement={"w": 2}), trial(placement={"w": 3}, invalid=["x"]))
    assert cell.placement == {"w": 2}


@settings(deadline=None)
@given(st.lists(st.tuples(st.none() | st.floats(0, 1e6), st.booleans(), st.integers(0, 50)), max_size=6))
def test_numbers_and_reasons_never_contradict_each_other(drawn: list[tuple[float | None, bool, int]]) -> None:
    taken = [
        trial(rate, invalid=["x"] if bad else [], audit=Audit(produced=50, stored=50 - lost, lost=lost, duplicates=0))
        for rate, bad, lost in drawn
    ]
    cell = cell_of(*taken)
    assert (cell.records_per_second is None) == bool(cell.invalid)
    assert cell.passed == (cell.verdict == "ok")
    assert (cell.audit.lost if cell.audit else 0) == sum(lost for _, _, lost in drawn)
    if cell.records_per_second is not None:
        assert cell.records_per_second.low <= cell.records_per_second.median <= cell.records_per_second.high


def test_from_five_valid_trials_on_a_rate_has_an_interval() -> None:
    few = cell_of(*(trial(1000.0 + block, block=block) for block in range(4)), trial(9.0, invalid=["x"]))
    assert few.records_per_second is not None
    assert few.records_per_second.interval is None
    enough = cell_of(*(trial(1000.0 + block, block=block) for block in range(5))).records_per_second
    assert enough is not None
    assert enough.interval is not None
    assert enough.interval.blocks == 5


def test_ratios_are_to_the_slowest_cell_from_blocks_in_which_both_are_valid() -> None:
    fast = [trial(3000.0 * block, block=block) for block in range(1, 8)]
    slow = [trial(1000.0 * block, OTHER, block=block, invalid=["x"] if block == 7 else []) for block in range(1, 8)]
    first, second = summarize([CELL, OTHER], [*fast, *slow])
    assert first.ratio is not None
    assert (first.ratio.to, first.ratio.blocks, first.ratio.estimate) == (OTHER.key, 6, pytest.approx(3))
    assert second.ratio is None


@pytest.mark.parametrize("rate", [0.0, None])
def test_a_cell_without_a_rate_above_0_has_no_ratio(rate: float | None) -> None:
    taken = [trial(rate, OTHER, block=block) for block in range(6)] + [trial(5.0, block=block) for block in range(6)]
    first, second = summarize([CELL, OTHER], taken)
    assert first.ratio is None
    assert second.ratio is None
    assert (first.model_dump_json() + second.model_dump_json()).count("NaN") == 0


def test_trials_that_never_became_steady_are_noted_and_used() -> None:
    cell = cell_of(trial(steady=False), trial(steady=True), trial(steady=None), trial(invalid=["x"], steady=False))
    assert cell.notes == ["1 of 4 trials invalid: x", "1 of 3 trials never became steady"]
    assert cell.passed


def test_only_a_label_with_several_numbers_of_tasks_has_a_scaling() -> None:
    cells = [Cell("p", "p/p", "p", multiple, 3) for multiple in (1, 2, 4, 8)]
    taken = [trial(100.0 * cell.tasks, cell) for cell in cells] + [trial(cell=OTHER)]
    (only,) = scalings([*cells, OTHER], taken)
    assert (only.label, only.supported) == ("p", True)
    assert [point.tasks for point in only.points] == [3, 6, 12, 24]
