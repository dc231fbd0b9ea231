"""The result on one screen; how cells are grouped and sorted is in tests/frozen/expected."""

from typing import Any

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.results import Bottleneck, CellSummary, Connections, Reason
from sinkbench.runs.reader import StoredRun
from sinkbench.tables.screen import jobs, screen
from tests.support.trials import CLEAN, cell_summary, run_summary

BULK, JDBC = "elasticsearch/camel-bulk", "postgres/jdbc"


def cell(label: str, *rates: float, **fields: Any) -> CellSummary:
    machine = Bottleneck(component="machine", cause="machine CPU", evidence="all cores are busy")
    return cell_summary(label, *rates, **{"trials": 3, "audit": CLEAN, "bottleneck": machine, **fields})


def shown(*cells: CellSummary, **fields: Any) -> str:
    return screen(StoredRun(run_summary(*cells, **fields), [], {"load": {"record_bytes": 512}}, {}))


def test_a_loss_stands_instead_of_the_range_and_in_a_note() -> None:
    lost = Reason(code=ReasonCode.LOST, text="LOST 3")
    text = shown(cell(BULK, 5, 6, passed=False, verdict="LOST 3 of 9", faults=[lost]), cell(JDBC, 7, 8))
    assert [each for each in ("LOST [1]", "[1] LOST 3 of 9.") if each not in text] == []


def test_what_no_cell_has_has_no_column_and_cells_that_answer_nothing_have_no_heading() -> None:
    plain = [cell(label, 5, 6, bottleneck=None) for label in (BULK, JDBC)]
    assert [title for title, _ in jobs(run_summary(*plain))] == [""]
    text = shown(*plain)
    assert [each for each in ("disk", "held back") if each in text] == []


@pytest.mark.parametrize("letters", range(8, 48))
def test_a_head_is_in_its_line_for_a_name_of_any_length(letters: int) -> None:
    seen = Connections(clients_peak=30, server_peak=30)
    text = shown(cell(f"postgres/{letters * 'x'}", 50_000, 60_000, connections=seen), cell(JDBC, 5))
    assert [line for line in text.splitlines() if line.endswith("  held back by")] != []
    assert [line for line in text.splitlines() if len(line) > 100] == []


def test_the_data_check_is_a_line_and_says_what_was_not_audited() -> None:
    wrong = CLEAN.model_copy(update={"dead_letters": 2, "stored": CLEAN.stored - 2, "checked": 5})
    text = shown(cell(BULK, 5, audit=wrong, not_audited=1), cell(JDBC, 5))
    assert " 0 lost, 0 duplicated, 2 dead letters; 5 contents verified; 1 of 6" in text
