"""The contract of what a run leaves behind."""

import json

import pytest
from pydantic import ValidationError

from sinkbench.results import Audit, CellSummary, RunSummary, TrialRecord
from tests.support.trials import cell_summary, run_summary


def test_what_was_not_measured_is_null_and_never_0() -> None:
    written = json.loads(cell_summary().model_dump_json())
    for name in ("records_per_second", "records_per_write", "audit", "latency_ms", "limit_records_per_second"):
        assert written[name] is None
    assert written["connections"] == {"clients_peak": None, "server_peak": None, "server_limit": None, "others": 0}


def test_a_trial_has_the_fields_of_its_cell() -> None:
    of_cells_alone = {"trials", "ratio", "search", "cost", "total_cpu_seconds_per_million", "efficiency_by_block"}
    of_cells_alone |= {"fastest_trial", "passed", "verdict", "faults", "notes", "at_least"}
    assert CellSummary.model_fields.keys() - of_cells_alone <= TrialRecord.model_fields.keys()


def test_counts_that_do_not_reconcile_are_refused() -> None:
    assert Audit(produced=10, stored=11, lost=1, duplicates=1, foreign=1).clean is False
    with pytest.raises(ValidationError, match=r"10 rows are stored, but .* is 9"):
        Audit(produced=10, stored=10, lost=1, duplicates=0)


def test_a_number_that_is_none_is_refused_rather_than_written_as_null() -> None:
    with pytest.raises(ValidationError):
        cell_summary(records_per_write=float("nan"))


def test_fields_of_a_later_sinkbench_are_passed_over() -> None:
    later = json.loads(run_summary(cell_summary()).model_dump_json()) | {"news": 1}
    assert RunSummary.model_validate(later) == run_summary(cell_summary())


def test_a_run_passes_if_it_is_complete_and_every_cell_passed() -> None:
    good, bad = cell_summary(), cell_summary(passed=False)
    runs = [run_summary(good, good), run_summary(good, bad), run_summary(good, complete=False)]
    assert [run.passed for run in runs] == [True, False, False]
