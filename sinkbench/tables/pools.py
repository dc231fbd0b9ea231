"""What the connections of connectors waited for in a pooler, as a table."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from sinkbench.results import CellSummary, Pool, RunSummary
from sinkbench.tables.format import NOT_MEASURED, milliseconds, whole
from sinkbench.tables.resources import marked_name
from sinkbench.tables.text import new_table

__all__ = ["pool_table"]


def pool_table(summary: RunSummary) -> Table | None:
    """One row a cell that goes through a pooler, in the plan's order; None if none does."""
    cells = [(cell, cell.pool) for cell in summary.cells if cell.pool is not None]
    if not cells:
        return None
    table = new_table(
        *("pooler", "tasks", "mode", "pool\nsize", "pre-\npared", "server\nconns"),
        *("most\nwaiting", "longest\nms", "ms/\nquery", "ms/\ntransaction"),
    )
    for cell, pool in cells:
        table.add_row(*map(Text, _row(cell, pool, summary)))
    return table


def _row(cell: CellSummary, pool: Pool, summary: RunSummary) -> list[str]:
    waits = (pool.longest_wait_ms, pool.wait_ms_per_query, pool.wait_ms_per_transaction)
    return [
        marked_name(cell, summary),
        f"{cell.tasks}",
        pool.mode or NOT_MEASURED,
        *map(whole, (pool.size, pool.prepared_statements, cell.connections.server_peak, pool.most_waiting)),
        *map(milliseconds, waits),
    ]
