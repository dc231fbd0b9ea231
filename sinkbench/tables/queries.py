"""What each index or table of a run answers to the queries: rightly or not, by an index or not, and how fast."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from sinkbench.results import Asked, CellSummary, RunSummary
from sinkbench.summary.jobs import job_of
from sinkbench.tables.answers import cell_name
from sinkbench.tables.format import NOT_MEASURED
from sinkbench.tables.text import new_table

__all__ = ["by_index", "query_lines", "query_table", "shown"]


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


def query_lines(summary: RunSummary) -> list[str]:
    """What is wrong with answers, and what the table means; empty if nothing was asked."""
    lines = []
    for cell in summary.cells:
        failed = [f"{each.query} ({each.problem})" for each in cell.queries if each.problem]
        wrong = [each.query for each in cell.queries if each.right is False and not each.problem]
        if wrong:
            lines.append(f"{cell_name(cell, summary)}: cannot answer {', '.join(wrong)} rightly.")
        if failed:
            lines.append(f"{cell_name(cell, summary)}: queries failed: {'; '.join(failed)}.")
    if any(cell.queries for cell in summary.cells):
        what = "Each query was asked once after a trial, of a sink with nothing else to do"
        lines.append(f"{what}; scan: it read every record, no index helps.")
    return lines
