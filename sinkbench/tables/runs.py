"""The stored runs as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from sinkbench.metrics.format import NOT_MEASURED
from sinkbench.runs.listing import RunRow
from sinkbench.tables.cells import machine_in_words, resumed_in_words
from sinkbench.tables.text import new_table, plain_text, words


def runs_table(rows: Sequence[RunRow]) -> str:
    table = new_table(
        "run",
        *map(words, ("started (UTC)", "plan", "machine", "stack")),
        "trials",
        *map(words, ("complete", "passed", "")),
    )
    for row in rows:
        table.add_row(*map(Text, (row.run, row.started or NOT_MEASURED, *_told(row))))
    return plain_text([table])


def _told(row: RunRow) -> tuple[str, ...]:
    summary = row.summary
    if summary is None:
        return *([NOT_MEASURED] * 6), " ".join(row.damage.split())
    return (
        summary.plan.name,
        machine_in_words(summary.environment) or NOT_MEASURED,
        str(summary.environment.get("stack") or NOT_MEASURED),
        f"{sum(cell.trials for cell in summary.cells)}",
        _yes(summary.complete),
        _yes(summary.passed),
        resumed_in_words(summary),
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"
