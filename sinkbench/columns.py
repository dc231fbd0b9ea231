"""What the tables of a run have in common: their look, and the columns that all of them have."""

from __future__ import annotations

import re

from rich import box
from rich.table import Table

from sinkbench.results import CellSummary, RunSummary

__all__ = ["NOT_MEASURED", "connections", "counted", "in_short", "new_table", "resumed_in_words"]

NOT_MEASURED = "-"


def new_table(first: str) -> Table:
    """A table without rows yet, whose only column so far is `first`, for names."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(first, no_wrap=True)
    return table


def counted(cell: CellSummary) -> tuple[str, str]:
    """Records lost, and stored more than once."""
    if cell.audit is None:
        return NOT_MEASURED, NOT_MEASURED
    return f"{cell.audit.lost:,}", f"{cell.audit.duplicates:,}"


def connections(cell: CellSummary) -> str:
    """`clients/server` where both are known and differ, as behind a pool; else the one number there is."""
    clients, server = cell.connections.clients_peak, cell.connections.server_peak
    if clients is not None and server is not None and clients != server:
        return f"{clients}/{server}"
    known = clients if clients is not None else server
    return NOT_MEASURED if known is None else f"{known}"


def in_short(cell: CellSummary) -> str:
    """The verdict in as few words as a column has room for, one a line; a star for notes.

    `remarks` gives both in full, and the counts of records have columns of their own.
    """
    text = cell.verdict.replace(f": {cell.failure}", "")
    for reason in cell.invalid:
        text = text.replace(f"invalid: {reason}", "invalid")
    text = re.sub(r"(NOT SUSTAINED|UNCLEAR): [^;]*", r"\1", text)
    text = re.sub(
        r"\d+ of \d+ tasks (?=FAILED)|\d+ trials? (?=NOT AUDITED)|(?<=LOST) [\d,]+|(?<=DUPLICATED) [\d,]+", "", text
    )
    return text.replace("; ", "\n") + (" *" if cell.notes else "")


def resumed_in_words(summary: RunSummary) -> str:
    """When the run was taken up again, as `resumed 2026-11-21T03:48:00Z`; empty for one that was taken at once."""
    return f"resumed {' and '.join(summary.resumed)}" if summary.resumed else ""
