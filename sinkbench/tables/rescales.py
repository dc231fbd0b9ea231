"""What it took to give running connectors another number of tasks, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sinkbench.analysis.rates import usable_median
from sinkbench.results import CellSummary
from sinkbench.tables.columns import counted, in_short
from sinkbench.tables.format import NOT_MEASURED, formatted, tenths, whole
from sinkbench.tables.text import new_table, words

__all__ = ["rescale_table"]


def rescale_table(cells: Sequence[CellSummary]) -> Table:
    """One row a step from one number of tasks to another, in the plan's order; other cells have none."""
    table = new_table(
        *("rescale", "tasks", "rebalance\ns", "stand-\nstill s", "before\nrecords/s", "after\nrecords/s"),
        *("after/\ncold", "95 %\ninterval", "lost", "twice", words("verdict")),
    )
    for cell in cells:
        step = cell.rescale
        if step is None:
            continue
        cold = step.to_cold
        interval = None if cold is None else cold.interval
        row = [
            cell.label,
            f"{step.tasks_before} to {cell.tasks}",
            tenths(step.rebalance_seconds),
            tenths(step.standstill_seconds),
            whole(step.before_records_per_second),
            whole(usable_median(cell)),
            formatted(None if cold is None else cold.estimate, ".2f"),
            NOT_MEASURED if interval is None else f"{interval.low:.2f}-{interval.high:.2f}",
            *counted(cell),
            in_short(cell),
        ]
        table.add_row(*map(Text, row))
    return table
