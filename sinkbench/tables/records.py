"""Results about the user's own records."""

from __future__ import annotations

from sinkbench.metrics.format import times
from sinkbench.results import RunSummary


def record_lines(summary: RunSummary) -> list[str]:
    """How many records passed the content check; for the user's own also their properties and repetitions."""
    facts = summary.records
    if facts is None:
        return _content_lines(summary)
    lines = [*_content_lines(summary), f"Records: {facts.in_words}; sha256 {facts.sha256[:12]}."]
    audits = [cell.audit.produced / (cell.trials - cell.not_audited or 1) for cell in summary.cells if cell.audit]
    rounds = max(audits, default=0.0) / facts.records
    if rounds > 1:
        lines.append(
            f"They are fewer than a trial took: they went round up to {times(rounds)} times a trial. Compression and"
            " the page cache then flatter, and ids of theirs repeat."
        )
    return lines


def _content_lines(summary: RunSummary) -> list[str]:
    audits = [cell.audit for cell in summary.cells if cell.audit is not None and cell.audit.checked is not None]
    checked = sum(audit.checked or 0 for audit in audits)
    stored = sum(audit.stored - audit.duplicates - audit.foreign for audit in audits)
    if not stored:
        return []
    of_all = f"{checked:,} of {stored:,} stored records were compared with the checksums that they bear"
    return [f"{of_all}." if checked >= stored else f"{of_all}: of a trial with many, evenly chosen ones."]
