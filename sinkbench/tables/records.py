"""What a run of the user's own records says of them."""

from __future__ import annotations

from sinkbench.results import RunSummary
from sinkbench.tables.format import times

__all__ = ["record_lines"]


def record_lines(summary: RunSummary) -> list[str]:
    """What the records were like, and whether they went round; nothing of noaa's."""
    facts = summary.records
    if facts is None:
        return []
    lines = [f"Records: {facts.in_words}; sha256 {facts.sha256[:12]}."]
    audits = [cell.audit.produced / (cell.trials - cell.not_audited or 1) for cell in summary.cells if cell.audit]
    rounds = max(audits, default=0.0) / facts.records
    if rounds > 1:
        lines.append(
            f"They are fewer than a trial took: they went round up to {times(rounds)} times a trial. Compression and"
            " the page cache then flatter, and ids of theirs repeat."
        )
    return lines
