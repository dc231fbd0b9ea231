"""CPU time and efficiency in a report: what has no sum, and which cells are named as not to be compared."""

from sinkbench.errors import ReasonCode
from sinkbench.report.costs import cpu, efficiency
from sinkbench.results import CellSummary, Limit, LimitInBlock, Reason, RunSummary
from tests.support.present import present
from tests.support.trials import cell_summary, run_summary, with_limits

LOST = Reason(code=ReasonCode.LOST, text="3 records LOST")


def cell(label: str = "postgres/jdbc", **fields: object) -> CellSummary:
    return cell_summary(label, 50_000.0, **fields)  # type: ignore[arg-type]


def test_where_a_service_was_not_seen_there_is_no_sum() -> None:
    used = {"connect": 12.0, "postgres": None, "controller": 1.0}
    unseen = cell(cpu_seconds_per_million=used)
    figure = present(cpu(run_summary(unseen), [unseen]))
    assert [chart.label for chart in figure.charts] == ["CPU seconds per million records: postgres/jdbc -"]
    assert figure.table.rows == [("postgres/jdbc", "12", "-", "-", "1.0")]
    assert figure.table.headers == ("cell", "connect", "all", "95 % interval", "controller")


def shares(*cells: CellSummary, blocks: int = 0) -> RunSummary:
    in_blocks = [LimitInBlock(block=block, records_per_second=100_000) for block in range(1, blocks + 1)]
    limit = Limit(sink="postgres", way="COPY", records_per_second=100_000, in_blocks=in_blocks)
    return run_summary(*with_limits(cells, [limit]), limits=[limit])


def test_an_efficiency_of_a_cell_that_did_not_pass_is_named_so() -> None:
    figure = present(efficiency(shares(cell(**{"passed": False, "verdict": LOST.text, "faults": [LOST]}))))
    assert [row[0] for row in figure.table.rows] == ["postgres/jdbc (LOST)"]
    assert "postgres/jdbc (LOST) 50 %" in figure.charts[0].label


def test_only_limits_in_blocks_are_of_the_same_block() -> None:
    once = present(efficiency(shares(cell())))
    assert "block" not in once.caption
    assert once.caption.endswith("without Kafka and Connect.")
    rate = {"median": 5e4, "low": 5e4, "high": 5e4, "values": [5e4], "blocks": [1]}
    beside = present(efficiency(shares(cell(records_per_second=rate), blocks=1)))
    assert "in the same block. In brackets are" in beside.caption
