"""A run under constant loads as a table: what was offered, whether it was kept up with, and how late records came."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sinkbench.columns import NOT_MEASURED, connections, counted, in_short, new_table
from sinkbench.results import LatencyMs, RunSummary

__all__ = ["is_load", "load_lines", "load_table"]

_BOUNDLESS = 1_000


def is_load(summary: RunSummary) -> bool:
    """Whether the run offered constant loads, to see if they are kept up with, or to find the highest that is."""
    return bool(summary.cells) and summary.cells[0].mode != "drain"


def load_table(summary: RunSummary, width: int | None = None) -> Table:
    """One row a cell, in the plan's order. An invalid cell shows no figures; the lines below the table say why.

    A name is broken after its sink where the table has no more than `width` columns and would need them.
    """
    table = _table(summary, "/")
    too_wide = width is not None and Console(width=_BOUNDLESS).measure(table).maximum > width
    return _table(summary, "/\n") if too_wide else table


def _table(summary: RunSummary, after_sink: str) -> Table:
    searched = summary.cells[0].mode == "capacity"
    finds = any(cell.searchable_ms is not None for cell in summary.cells)
    table = new_table("pipeline")
    headers = [
        "tasks\n(per\nworker)",
        "capacity\nrecords/s" if searched else "offered\nrecords/s",
        "stored\nrecords/s",
        "lag\ngrows/s",
        "most\nlag",
        *("latency\np50 ms", "p95\nms", "p99\nms", "p99.9\nms"),
        *(["found\np99 ms"] if finds else []),
        *("peak\nconns", "lost", "dupl."),
    ]
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for cell in summary.cells:
        rate = None if cell.invalid else cell.records_per_second
        lag = cell.lag
        stored = None if rate is None else sum(rate.values) / len(rate.values)
        latency = cell.latency_ms
        row = [
            cell.label.replace("/", after_sink, 1),
            f"{cell.tasks} ({cell.tasks_per_worker:g})",
            _whole(cell.offered_records_per_second),
            _whole(stored),
            _whole(None if lag is None else lag.growth_per_second),
            _whole(None if lag is None else lag.largest),
            *(_ms(None if latency is None else getattr(latency, name)) for name in ("p50", "p95", "p99", "p999")),
            *([_ms(None if cell.searchable_ms is None else cell.searchable_ms.p99)] if finds else []),
            connections(cell),
            *counted(cell),
            in_short(cell),
        ]
        table.add_row(*(Text(text) for text in row))
    return table


def load_lines(summary: RunSummary) -> list[str]:
    """What each cell's latency rests on, and the way that the search for its capacity went."""
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
        lines.append("found: until a search finds the record; PostgreSQL's are found once they are committed.")
    return lines


def _rests_on(latency: LatencyMs) -> str:
    parts = [f"{latency.count:,} records" + (f", one in {latency.one_in}" if latency.one_in > 1 else "")]
    if latency.max is not None:
        parts.append(f"longest {_ms(latency.max)} ms")
    if latency.resolution_ms is not None:
        parts.append(f"known to within {_ms(latency.resolution_ms)} ms")
    if latency.negative:
        parts.append(f"{latency.negative:,} more stored before they were due{_why_early(latency)}")
    if latency.unknown:
        parts.append(f"of {latency.unknown:,} more it is not known")
    return ", ".join(parts)


def _why_early(latency: LatencyMs) -> str:
    if latency.earliest is None:
        return ""
    by = f", by {_ms(latency.earliest)} ms at most"
    # One time in 20 is known less well than the resolution says.
    if latency.earliest <= 2 * (latency.resolution_ms or 0.0):
        return f"{by}, which is about as well as it is known"
    return f"{by}, so the clocks disagree"


def _whole(value: float | None) -> str:
    # Not -0.
    return NOT_MEASURED if value is None else f"{round(value):,}"


def _ms(value: float | None) -> str:
    if value is None:
        return NOT_MEASURED
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
