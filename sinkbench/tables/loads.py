"""The basis of latencies under constant loads, and the loads that capacity searches offered, in words."""

from __future__ import annotations

from sinkbench.metrics.format import milliseconds
from sinkbench.results import LatencyMs, RunSummary


def is_load(summary: RunSummary) -> bool:
    """Whether the run offered constant loads: modes sustain and capacity."""
    return bool(summary.cells) and summary.cells[0].mode != "drain"


def load_lines(summary: RunSummary) -> list[str]:
    """The basis of each cell's latency, and the loads that the search for its capacity offered."""
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
    # One time in 20 is less exact than the resolution.
    if latency.earliest <= 2 * (latency.resolution_ms or 0.0):
        return f"{by}, which is about as well as it is known"
    return f"{by}, so the clocks disagree"
