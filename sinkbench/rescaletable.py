"""Running connectors that were given another number of tasks, as a table beside that of cold starts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sinkbench.columns import NOT_MEASURED, counted, in_short, new_table
from sinkbench.results import CellSummary

__all__ = ["rescale_table"]

HEADERS = (
    *("tasks", "rebalance\ns", "stand-\nstill s", "before\nrecords/s", "after\nrecords/s"),
    *("after/\ncold", "95 %\ninterval", "lost", "twice"),
)


def rescale_table(cells: Sequence[CellSummary]) -> Table:
    """One row for each step from one number of tasks to another, in the plan's order."""
    table = new_table("rescale")
    for header in HEADERS:
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for cell in cells:
        step = cell.rescale
        if step is None:
            continue
        rate = None if cell.invalid or cell.records_per_second is None else cell.records_per_second.median
        cold = step.to_cold
        interval = None if cold is None else cold.interval
        row = [
            cell.label,
            f"{step.tasks_before} to {cell.tasks}",
            _seconds(step.rebalance_seconds),
            _seconds(step.standstill_seconds),
            _whole(step.before_records_per_second),
            _whole(rate),
            NOT_MEASURED if cold is None else f"{cold.estimate:.2f}",
            NOT_MEASURED if interval is None else f"{interval.low:.2f}-{interval.high:.2f}",
            *counted(cell),
            in_short(cell),
        ]
        table.add_row(*map(Text, row))
    return table


def _seconds(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.1f}"


def _whole(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:,.0f}"
