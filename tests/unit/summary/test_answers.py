"""Which cells are compared, and what is missing from the answer."""

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, Reason
from sinkbench.summary.answers import BEST, ENDS, PUBLISHED, answers_of, left_out
from tests.support.trials import cell_in_blocks, cell_summary, run_summary

INDEX, BULK = "elasticsearch/camel-index", "elasticsearch/camel-bulk"
JDBC, POOLED = "postgres/jdbc", "postgres/jdbc-pgbouncer"


def warming(label: str, rate: float) -> CellSummary:
    reason = Reason(code=ReasonCode.NOT_WARM, text="still warming", figures={"records_per_second": rate})
    return cell_summary(label, rate).model_copy(update={"at_least": reason})


def pairs(*cells: CellSummary) -> list[tuple[str, str, str]]:
    return [(each.about, each.faster.label, each.slower.label) for each in answers_of(run_summary(*cells))]


def test_the_best_of_each_sink_are_compared_then_the_published_pair() -> None:
    cells = [
        cell_summary(INDEX, 1_300),
        cell_summary(BULK, 24_000),
        cell_summary(JDBC, 60_000),
        cell_summary(POOLED, 70_000),
    ]
    assert pairs(*cells) == [(BEST, POOLED, BULK), (PUBLISHED, JDBC, INDEX)]
    assert left_out(run_summary(*cells)) == []


def test_a_pair_is_named_once() -> None:
    assert pairs(cell_summary(INDEX, 1_300), cell_summary(JDBC, 60_000)) == [(BEST, JDBC, INDEX)]


def test_the_published_pair_is_compared_at_as_many_tasks() -> None:
    cells = [cell_summary(INDEX, 1_300, tasks=6), cell_summary(BULK, 24_000), cell_summary(JDBC, 60_000)]
    assert pairs(*cells) == [(BEST, JDBC, BULK)]


def test_one_sink_compares_its_ends_and_one_cell_nothing() -> None:
    cells = [cell_summary("postgres/a", 100), cell_summary("postgres/b", 300), cell_summary("postgres/c", 200)]
    assert pairs(*cells) == [(ENDS, "postgres/b", "postgres/a")]
    assert pairs(cells[0]) == pairs() == []


def test_a_sink_all_of_whose_cells_are_missing_is_not_replaced_by_another_pair() -> None:
    assert pairs(warming(INDEX, 476), cell_summary(JDBC, 60_000), cell_summary(POOLED, 70_000)) == []


def test_a_ratio_is_paired_by_block() -> None:
    slow, fast = cell_in_blocks(BULK, 100, 110, 120, 130, 140), cell_in_blocks(JDBC, 200, 220, 240, 260, 280)
    (found,) = answers_of(run_summary(slow, fast))
    assert found.ratio is not None
    assert found.ratio.interval is not None
    assert (found.ratio.estimate, found.least) == (pytest.approx(2), pytest.approx(200 / 140))


def test_capacities_have_no_interval_since_the_rates_that_confirm_them_do_not_scatter() -> None:
    slow, fast = (cell_in_blocks(label, *[rate] * 5, mode="capacity") for label, rate in ((BULK, 100.0), (JDBC, 200.0)))
    (found,) = answers_of(run_summary(slow, fast))
    assert found.ratio is None
    assert found.of_medians == 2
