"""A run under constant loads as a table: the rates offered, the lag and the latency."""

from __future__ import annotations

from statistics import mean

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sinkbench.analysis.rates import usable_rate
from sinkbench.results import LatencyMs, RunSummary
from sinkbench.tables.answers import at_least_in_words
from sinkbench.tables.columns import connections, counted, in_short
from sinkbench.tables.format import milliseconds, whole
from sinkbench.tables.text import new_table, words

__all__ = ["is_load", "load_lines", "load_table"]

_BOUNDLESS = 1_000


def is_load(summary: RunSummary) -> bool:
    """Whether the run offered constant loads: modes sustain and capacity."""
    return bool(summary.cells) and summary.cells[0].mode != "drain"


def load_table(summary: RunSummary, width: int | None = None) -> Table:
    """One row a cell, in the plan's order; an invalid cell shows no rate.

    Names are broken after their sink if the table would need more than `width` columns.
    """
    table = _table(summary, "/")
    too_wide = width is not None and Console(width=_BOUNDLESS).measure(table).maximum > width
    return _table(summary, "/\n") if too_wide else table


def _table(summary: RunSummary, after_sink: str) -> Table:
    searched = summary.cells[0].mode == "capacity"
    finds = any(cell.searchable_ms is not None for cell in summary.cells)
    table = new_table(
        "pipeline",
        "tasks\n(per\nworker)",
        "capacity\nrecords/s" if searched else "offered\nrecords/s",
        "stored\nrecords/s",
        "lag\ngrows/s",
        "most\nlag",
        *("latency\np50 ms", "p95\nms", "p99\nms", "p99.9\nms"),
        *(["found\np99 ms"] if finds else []),
        *("peak\nconns", "lost", "dupl.", words("verdict")),
    )
    for cell in summary.cells:
        rate = usable_rate(cell)
        row = [
            cell.label.replace("/", after_sink, 1),
            f"{cell.tasks} ({cell.tasks_per_worker:g})",
            (at_least_in_words(cell) if searched else None) or whole(cell.offered_records_per_second),
            whole(None if rate is None else mean(rate.values)),
            *(whole(getattr(cell.lag, name, None)) for name in ("growth_per_second", "largest")),
            *(milliseconds(getattr(cell.latency_ms, name, None)) for name in ("p50", "p95", "p99", "p999")),
            *([milliseconds(getattr(cell.searchable_ms, "p99", None))] if finds else []),
            connections(cell),
            *counted(cell),
            in_short(cell),
        ]
        table.add_row(*map(Text, row))
    return table


def load_lines(summary: RunSummary) -> list[str]:
    """What each cell's latency rests on, and what the search for its capacity offered."""
    lines = []
    for cell in summary.cells:
        for what, latency in (("stored", cell.latency_ms), ("found by a search", cell.searchable_ms)):
            if latency is not None and latency.count:
                lines.append(f"{cell.cell}: due until {what}: {_rests_on(latency)}")
        if cell.search:
            steps = ", ".join(
                f"{step.offered:,.0f} {'again ' if step.confirms else ''}{step.outcome}" for step in cell.search
            )
            lines.append(f"{cell.cell}: the search offered {steps}")
    if any(cell.searchable_ms is not None for cell in summary.cells):
        lines.append("found: until a search finds the record; in a database it is found once it is committed.")
    return lines


def _rests_on(latency: LatencyMs) -> str:
    parts = [f"{latency.count:,} records" + (f", one in {latency.one_in}" if latency.one_in > 1 else "")]
    if latency.max is not None:
        parts.append(f"longest {milliseconds(latency.max)} ms")
    if latency.resolution_ms is not None:
        parts.append(f"known to within {milliseconds(latency.resolution_ms)} ms")
    if latency.negative:
        parts.append(f"{latency.negative:,} more stored before they were due{_why_early(latency)}")
    if latency.unknown:
        parts.append(f"of {latency.unknown:,} more it is not known")
    return ", ".join(parts)


def _why_early(latency: LatencyMs) -> str:
    if latency.earliest is None:
        return ""
    by = f", by {milliseconds(latency.earliest)} ms at most"
    # One time in 20 is known less well than the resolution says.
    if latency.earliest <= 2 * (latency.resolution_ms or 0.0):
        return f"{by}, which is about as well as it is known"
    return f"{by}, so the clocks disagree"
