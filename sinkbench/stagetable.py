"""Which stage of a pipeline's path takes how much of the time of one record, as a small table."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from sinkbench.columns import NOT_MEASURED, new_table
from sinkbench.limits.efficiency import CONNECTOR, SINK, percent, stages_before, stages_of
from sinkbench.results import RunSummary

__all__ = ["stage_table"]


def stage_table(summary: RunSummary) -> Table | None:
    """One row for each cell whose rate and whose sink's limit are known; None if there is none.

    A stage has its microseconds a record, and the share of the whole. What the others leave is the connector's; a `-`
    there says that they overlap and leave nothing.
    """
    before = stages_before(summary.limits)
    table = new_table("time of one record")
    for header in ("tasks", "all\nus", *(_header(name) for name in (*before, SINK, CONNECTOR))):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("most is\nof the", no_wrap=True)
    label = ""
    for cell in summary.cells:
        found = stages_of(cell, summary.limits)
        if found is None:
            continue
        taken = (*found.before.values(), found.sink, found.connector)
        row = [
            "" if cell.label == label else cell.label,
            f"{cell.tasks}",
            _us(found.whole),
            *(NOT_MEASURED if us is None else f"{_us(us)} ({percent(us / found.whole)})" for us in taken),
            found.most,
        ]
        table.add_row(*map(Text, row))
        label = cell.label
    return table if table.row_count else None


def _header(name: str) -> str:
    return name.replace(" and ", ",\n") if " and " in name else f"{name}\nus"


def _us(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds >= 9.95 else f"{microseconds:.1f}"
