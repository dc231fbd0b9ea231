"""What loads of changes have left in the sinks, as a table."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from sinkbench.results import Bloat, CellSummary, RunSummary
from sinkbench.tables.format import megabytes, whole
from sinkbench.tables.resources import marked_name
from sinkbench.tables.text import new_table

__all__ = ["changes_table"]


def changes_table(summary: RunSummary) -> Table | None:
    """One row a cell whose load changes keys, in the plan's order; None if no cell's does."""
    cells = [cell for cell in summary.cells if cell.bloat is not None or _is_by_key(cell)]
    if not cells:
        return None
    table = new_table(
        *("changes", "tasks", "stale\nkeys", "missing\nkeys", "not\ndeleted\nkeys", "dead-\nlocks", "roll-\nbacks"),
        *("dead\nrows", "MB\nbefore", "MB\nafter"),
    )
    for cell in cells:
        bloat = cell.bloat or Bloat()
        audit = cell.audit
        row = [
            marked_name(cell, summary),
            f"{cell.tasks}",
            *map(whole, (None,) * 3 if audit is None else (audit.stale, audit.missing, audit.not_deleted)),
            *map(whole, (bloat.deadlocks, bloat.rollbacks, bloat.dead_rows)),
            *map(megabytes, (bloat.bytes_before, bloat.bytes_after)),
        ]
        table.add_row(*map(Text, row))
    return table


def _is_by_key(cell: CellSummary) -> bool:
    return cell.audit is not None and cell.audit.stale is not None
