"""What each index or table of a run answers to the queries: rightly or not, by an index or not, and how fast."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from sinkbench.results import Asked, CellSummary, Reads, RunSummary
from sinkbench.summary.jobs import job_of
from sinkbench.tables.answers import cell_name
from sinkbench.tables.format import NOT_MEASURED, milliseconds, whole
from sinkbench.tables.text import new_table

__all__ = ["by_index", "query_lines", "query_table", "reads_table", "shown"]


def query_table(summary: RunSummary) -> Table | None:
    """A row for each cell, a column for each query; None if nothing was asked."""
    cells = [cell for cell in summary.cells if cell.queries]
    if not cells:
        return None
    names = list(dict.fromkeys(each.query for cell in cells for each in cell.queries))
    table = new_table("pipeline", "by an\nindex", *(name.replace("-", "-\n") for name in names))
    for cell in cells:
        found = {each.query: each for each in cell.queries}
        row = [cell_name(cell, summary), by_index(cell), *(shown(found.get(name)) for name in names)]
        table.add_row(*map(Text, row))
    return table


def by_index(cell: CellSummary) -> str:
    """How many queries a cell answers rightly and by an index, of how many, as 5/7."""
    job = job_of(cell)
    return NOT_MEASURED if job is None else f"{len(job)}/{len(cell.queries)}"


def shown(asked: Asked | None) -> str:
    """As `12 ms`, `840 ms scan` of one that no index finds, `wrong` or `failed`."""
    if asked is None:
        return NOT_MEASURED
    if asked.problem:
        return "failed"
    if asked.right is False:
        return "wrong"
    time = NOT_MEASURED if asked.milliseconds is None else f"{asked.milliseconds:,.0f} ms"
    return time if asked.by_index else f"{time} scan"


def reads_table(summary: RunSummary) -> Table | None:
    """What queries beside a load take, and what they cost the load: a row a cell; None if none were asked."""
    if all(cell.reads_per_second is None for cell in summary.cells):
        return None
    headers = ("queries/s", "query\np50 ms\nidle", "p50 ms\nloaded", "p99 ms\nidle", "p99 ms\nloaded", "failed")
    table = new_table("pipeline", "offered\nrecords/s", *headers, "record\np99 ms", "CPU s per\nmillion\nrecords")
    for cell in summary.cells:
        reads, cpu = cell.reads or Reads(), cell.total_cpu_seconds_per_million
        times = [getattr(each, name, None) for name in ("p50", "p99") for each in (reads.idle_ms, reads.loaded_ms)]
        row = [
            cell.label,
            whole(cell.offered_records_per_second),
            "none" if cell.reads_per_second is None else f"{cell.reads_per_second:g}",
            *map(milliseconds, times),
            NOT_MEASURED if cell.reads is None else f"{reads.failed:,}",
            milliseconds(getattr(cell.latency_ms, "p99", None)),
            NOT_MEASURED if cpu is None else whole(cpu.median),
        ]
        table.add_row(*map(Text, row))
    return table


def query_lines(summary: RunSummary) -> list[str]:
    """What is wrong with answers, and what the table means; empty if nothing was asked."""
    lines = []
    for cell in summary.cells:
        failed = [f"{each.query} ({each.problem})" for each in cell.queries if each.problem]
        wrong = [each.query for each in cell.queries if each.right is False and not each.problem]
        if wrong:
            lines.append(f"{cell_name(cell, summary)}: cannot answer {', '.join(wrong)} rightly.")
        if cell.reads is not None and cell.reads.problem:
            lines.append(f"{cell_name(cell, summary)}: {cell.reads.failed:,} queries failed: {cell.reads.problem}.")
        if cell.reads is not None and cell.reads.unasked:
            lines.append(
                f"{cell_name(cell, summary)}: {cell.reads.unasked:,} queries were due and not begun before the end: the"
                " sink answers fewer a second, so that latencies would be longer."
            )
        if failed:
            lines.append(f"{cell_name(cell, summary)}: queries failed: {'; '.join(failed)}.")
    if any(cell.queries for cell in summary.cells):
        what = "Each query was asked once after a trial, of a sink with nothing else to do"
        lines.append(f"{what}; scan: it read every record, no index helps.")
    if any(cell.reads is not None for cell in summary.cells):
        lines.append(
            "A query's time counts from when it was due: loaded beside the load, idle when all of it was stored."
        )
    return lines
