"""How much of the difference between two pipelines is the sink's, and how much the connector's."""

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, Reason
from sinkbench.summary.attribution import attributions_of, unattributed
from tests.support.present import present
from tests.support.trials import cell_in_blocks, run_summary

INDEX, BULK = "elasticsearch/camel-index", "elasticsearch/camel-bulk"
SQL, BATCH, JDBC = "postgres/camel-sql", "postgres/camel-sql-batch", "postgres/jdbc"
CAMEL, DEBEZIUM = "org.apache.camel.CamelSinkConnector", "io.debezium.JdbcSinkConnector"


def cell(label: str, *rates: float, per_write: float | None = 500.0, **fields: object) -> CellSummary:
    connector = DEBEZIUM if "jdbc" in label else CAMEL
    return cell_in_blocks(label, *rates, connector=connector, records_per_write=per_write, **fields)


def warming(found: CellSummary) -> CellSummary:
    reason = Reason(code=ReasonCode.NOT_WARM, text="still warming", figures={"records_per_second": 1})
    return found.model_copy(update={"at_least": reason, "records_per_second": None})


def ways(*cells: CellSummary) -> list[tuple[bool, list[str]]]:
    found = attributions_of(run_summary(*cells))
    return [(each.batched, [one.label for one in each.cells]) for each in found]


def lacking(*cells: CellSummary) -> list[tuple[bool, list[str]]]:
    return [(batched, [one.label for one in found]) for batched, found in unattributed(run_summary(*cells))]


@pytest.mark.parametrize(
    ("between", "rate", "sink_first", "factors"),
    [(BATCH, 20_000, True, (2, 4)), ("elasticsearch/jdbc", 40_000, False, (4, 2))],
)
def test_the_way_leads_over_the_connector_of_the_one_on_the_sink_of_the_other(
    between: str, rate: float, sink_first: bool, factors: tuple[float, float]
) -> None:
    (found,) = attributions_of(run_summary(cell(BULK, 10_000), cell(between, rate), cell(JDBC, 80_000)))
    assert [each.label for each in found.cells] == [BULK, between, JDBC]
    assert (found.sink_first, (found.first.ratio.estimate, found.second.ratio.estimate)) == (
        sink_first,
        pytest.approx(factors),
    )
    share = present(found.share)
    assert (share.estimate, share.interval) == (pytest.approx(1 / 3), None)


def test_from_five_blocks_on_ratios_and_share_have_intervals() -> None:
    slow, fast = [100.0, 110, 120, 130, 140], [400.0, 440, 480, 520, 560]
    (found,) = attributions_of(run_summary(cell(BULK, *slow), cell(BATCH, *slow), cell(JDBC, *fast)))
    assert present(found.share).interval is not None
    assert found.share.estimate == 0
    assert found.first.ratio.interval is not None
    assert found.second.ratio.estimate == pytest.approx(4)


def test_records_one_by_one_and_in_batches_are_not_mixed() -> None:
    singly = [
        cell(INDEX, 1_000, per_write=1.0),
        cell(SQL, 2_000, per_write=0.98),
        cell("postgres/jdbc one by one", 3_000, per_write=1.0),
    ]
    batched = [cell(BULK, 10_000), cell(BATCH, 20_000), cell(JDBC, 80_000)]
    assert ways(*batched, *singly) == [(False, [INDEX, SQL, "postgres/jdbc one by one"]), (True, [BULK, BATCH, JDBC])]
    assert ways(cell(BULK, 10_000), cell(SQL, 2_000, per_write=1.0), cell(JDBC, 80_000)) == []


def test_the_fastest_cell_of_each_connector_on_each_sink_counts_at_the_fewest_tasks_that_have_a_way() -> None:
    few = [cell(BULK, 10_000), cell(f"{BULK}-tuned", 30_000), cell(JDBC, 80_000)]
    many = [cell(label, rate, tasks=6) for label, rate in ((BULK, 20_000), (BATCH, 30_000), (JDBC, 90_000))]
    assert ways(*few, *many) == [(True, [BULK, BATCH, JDBC])]
    assert ways(*few, *many, cell(BATCH, 40_000)) == [(True, [f"{BULK}-tuned", BATCH, JDBC])]


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [cell(BULK, 10_000), cell(JDBC, 80_000)],
        [cell(BULK, 10_000), cell(BATCH, 80_000)],
        [cell(BATCH, 10_000), cell(JDBC, 80_000)],
        [each.model_copy(update={"connector": None}) for each in (cell(BULK, 1), cell(BATCH, 2), cell(JDBC, 3))],
        [cell(label, 5.0, mode="capacity") for label in (BULK, BATCH, JDBC)],
    ],
    ids=["no cell", "nothing between", "one connector", "one sink", "an earlier run", "capacities"],
)
def test_nothing_is_said_and_nothing_missed_where_the_run_has_no_way(cells: list[CellSummary]) -> None:
    assert ways(*cells) == lacking(*cells) == []


def test_a_cell_that_may_not_be_quoted_is_no_step_but_named_as_missing() -> None:
    batched = [cell(BULK, 10_000), cell(BATCH, 20_000), cell(JDBC, 80_000)]
    index, one = cell(INDEX, 1_000, per_write=1.0), cell("jdbc one by one", 3_000, per_write=1.0, sink="postgres")
    lossy = cell(SQL, 2_000, per_write=1.0).model_copy(update={"passed": False, "verdict": "LOST 1"})
    cells = [*batched, warming(index), lossy, one]
    assert ways(*cells) == [(True, [BULK, BATCH, JDBC])]
    ((batched, missing),) = lacking(*cells)
    assert (batched, sorted(missing)) == (False, [INDEX, SQL])


def test_a_cell_without_a_valid_trial_is_missed_though_how_it_writes_is_not_known() -> None:
    broken = cell(BATCH, per_write=None, passed=False, verdict="invalid: x", invalid=["x"])
    assert lacking(cell(BULK, 10_000), broken, cell(JDBC, 80_000)) == [(True, [BATCH])]
