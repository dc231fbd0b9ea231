"""Memory, disk and money in a report: what has no chart, and which cells are named as not to be compared."""

from sinkbench.metrics import MEANINGS
from sinkbench.report.parts import Figure, Table
from sinkbench.report.resources import disk, memory
from sinkbench.results import CellSummary, Memory
from tests.support.trials import cell_summary, run_summary


def cell(label: str = "postgres/jdbc", **fields: object) -> CellSummary:
    return cell_summary(label, 1_000.0, **fields)  # type: ignore[arg-type]


def test_heaps_alone_are_a_table_without_a_chart() -> None:
    found = memory(run_summary(cell(peak_memory={"connect": Memory(heap_bytes=1.2e9)})))
    assert isinstance(found, Table)
    assert (found.headers, found.rows) == (("cell", "peak MB", "heap of connect"), [("postgres/jdbc", "-", "1,200")])


def test_only_cells_whose_memory_was_seen_have_a_bar() -> None:
    seen = cell("a", peak_memory={"connect": Memory(resident_bytes=2.4e9, heap_bytes=1.2e9)})
    found = memory(run_summary(seen, cell("b", peak_memory={"connect": Memory(heap_bytes=1e9)})))
    assert isinstance(found, Figure)
    assert found.charts[0].label == "Peak memory by service: a 2,400 MB"
    assert found.table.rows == [("a", "-", "2,400", "1,200"), ("b", "-", "-", "1,000")]


def test_bytes_from_kafka_alone_are_a_table_without_a_chart() -> None:
    found = disk(run_summary(cell(fetched_bytes_per_record=612.0), cell("b")))
    assert isinstance(found, Table)
    assert found.headers == ("cell", "bytes on disk a record", "bytes from Kafka a record")
    assert found.rows == [("postgres/jdbc", "-", "612")]
    assert {*found.meanings} == {*found.headers[1:]}
    assert {*found.meanings.values()} <= MEANINGS.keys()
    assert disk(run_summary(cell())) is None
