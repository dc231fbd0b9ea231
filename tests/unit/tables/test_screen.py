"""The result on one screen: grouped by job, fastest first, within 100 columns."""

from typing import Any

from sinkbench.errors import ReasonCode
from sinkbench.results import Asked, Bottleneck, CellSummary, Connections, Reason
from sinkbench.runs.reader import StoredRun
from sinkbench.tables.screen import jobs, screen
from tests.support.trials import CLEAN, cell_summary, run_summary

INDEX, BULK, JDBC, INDEXED = (
    "elasticsearch/camel-index",
    "elasticsearch/camel-bulk",
    "postgres/jdbc",
    "postgres/jdbc-indexed",
)
QUICK: dict[str, Any] = {"load": {"record_bytes": 512}}


def cell(label: str, *rates: float, answered: int = 7, **fields: Any) -> CellSummary:
    queries = [Asked(query=f"q{place}", right=True, by_index=place < answered) for place in range(7)]
    machine = Bottleneck(component="machine", cause="machine CPU", evidence="all cores are busy")
    known = {"trials": 3, "audit": CLEAN, "queries": queries, "bottleneck": machine, **fields}
    return cell_summary(label, *rates, **known)


def shown(*cells: CellSummary, **fields: Any) -> str:
    return screen(StoredRun(run_summary(*cells, **fields), [], QUICK, {}))


def cold(rate: float) -> dict[str, Any]:
    return {"at_least": Reason(code=ReasonCode.NOT_WARM, text="still warming", figures={"records_per_second": rate})}


DEFAULT = (
    cell(INDEX, 1_100, 1_200, 1_300),
    cell(BULK, **cold(25_941)),
    cell(JDBC, 72_580, 83_290, 93_915, answered=0, connections=Connections(clients_peak=18, server_peak=3)),
    cell(INDEXED, 25_009, 25_303, 26_958),
)


def test_cells_are_grouped_by_what_they_answer_and_the_fastest_stands_first() -> None:
    text = shown(*DEFAULT)
    lines = text.splitlines()
    places = [
        next(at for at, line in enumerate(lines) if each in line) for each in ("Answers all 7", BULK, INDEXED, INDEX)
    ]
    assert places == sorted(places)
    assert lines.index("Stores only: all 7 test queries need a full scan, or have no answer") > places[-1]
    assert "25,941  NOT FINAL [1]" in text
    assert "[1] still warming." in text
    assert "(72,580-93,915)" in text
    assert "18 -> 3" in text
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 100


def test_a_loss_stands_instead_of_the_range_and_in_a_note() -> None:
    lost = Reason(code=ReasonCode.LOST, text="LOST 3")
    text = shown(cell(BULK, 5, 6, passed=False, verdict="LOST 3 of 9", faults=[lost]), cell(JDBC, 7, 8))
    assert "LOST [1]" in text
    assert "[1] LOST 3 of 9." in text


def test_what_no_cell_has_has_no_column_and_cells_that_answer_nothing_have_no_heading() -> None:
    plain = [cell(label, 5, 6, queries=[], bottleneck=None) for label in (BULK, JDBC)]
    assert [title for title, _ in jobs(run_summary(*plain))] == [""]
    text = shown(*plain)
    assert "disk" not in text
    assert "held back" not in text


def test_the_data_check_is_a_line_and_says_what_was_not_audited() -> None:
    wrong = CLEAN.model_copy(update={"dead_letters": 2, "stored": CLEAN.stored - 2, "checked": 5})
    text = shown(cell(BULK, 5, audit=wrong, not_audited=1), cell(JDBC, 5))
    assert " 0 lost, 0 duplicated, 2 dead letters; 5 contents verified; 1 of 6" in text


def test_an_unfinished_run_says_how_to_go_on() -> None:
    assert "sinkbench resume r\n" in shown(cell(JDBC, 5), complete=False)
