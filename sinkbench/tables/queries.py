"""Query results of each index or table of a run: whether correct, whether by an index, and how fast."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from sinkbench.analysis.rates import most
from sinkbench.analysis.words import NOT_MEASURED, whole
from sinkbench.metrics.names import cell_name
from sinkbench.metrics.queries import job_of
from sinkbench.results import Asked, CellSummary, RunSummary
from sinkbench.tables.text import new_table


def query_table(summary: RunSummary) -> Table | None:
    """A row per cell, a column per query; None if none was asked."""
    cells = [cell for cell in summary.cells if cell.queries]
    if not cells:
        return None
    names = list(dict.fromkeys(each.query for cell in cells for each in cell.queries))
    table = new_table("pipeline", "rows", "by an\nindex", *(name.replace("-", "\n") for name in names))
    for cell in cells:
        found = {each.query: each for each in cell.queries}
        rows = whole(most(each.rows for each in cell.queries))
        row = [cell_name(cell, summary), rows, by_index(cell), *(shown(found.get(name)) for name in names)]
        table.add_row(*map(Text, row))
    return table


def by_index(cell: CellSummary) -> str:
    """The number of queries that a cell answers correctly using an index, of all, as 5/7."""
    job = job_of(cell)
    return NOT_MEASURED if job is None else f"{len(job)}/{len(cell.queries)}"


def shown(asked: Asked | None) -> str:
    """As `12 ms`, `840 ms full scan` without an index, `wrong` or `failed`."""
    if asked is None:
        return NOT_MEASURED
    if asked.problem:
        return "failed"
    if asked.right is False:
        return "wrong"
    time = NOT_MEASURED if asked.milliseconds is None else f"{asked.milliseconds:,.0f} ms"
    return time if asked.by_index else f"{time} full scan"


def query_lines(summary: RunSummary) -> list[str]:
    """Which answers are wrong and why, and a legend; empty if no query was asked."""
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
        lines.append(f"{what}; full scan: it read every record, no index helps.")
    if any(cell.reads is not None for cell in summary.cells):
        lines.append(
            "A query's time counts from when it was due: loaded during the load, idle when all of it was stored."
        )
    return lines
