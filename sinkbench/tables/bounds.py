"""How much a pipeline can gain up to its sink's limit, in words and as rows."""

from __future__ import annotations

from sinkbench.metrics.bound import Bound, bound_of
from sinkbench.metrics.format import percent, seconds_each
from sinkbench.metrics.names import cell_name
from sinkbench.results import RunSummary

BOUND_HEADERS = (
    "cell",
    "of limit",
    "CPU bounds it to",
    "left to gain",
    "all cores' CPU s per million at the limit",
    "limit's CPU s per million",
    "pipeline's CPU s per million",
    "most of it",
)


def bound_lines(summary: RunSummary) -> list[str]:
    """A line for each cell with a known bound: its share of the sink's limit, and what its CPU time allows."""
    return [f"{name}: {_in_words(found)}" for name, found in _known(summary)]


def bound_rows(summary: RunSummary) -> list[tuple[str, ...]]:
    """The same as rows below `BOUND_HEADERS`, with the CPU time of the limit itself if known."""
    return [
        (
            name,
            percent(found.efficiency),
            percent(found.share),
            percent(found.left),
            seconds_each(found.cores_cpu),
            seconds_each(found.limit_cpu),
            seconds_each(found.pipeline_cpu),
            f"{found.dearest}, {seconds_each(found.dearest_cpu)}",
        )
        for name, found in _known(summary)
    ]


def _known(summary: RunSummary) -> list[tuple[str, Bound]]:
    found = ((cell_name(cell, summary), bound_of(cell, summary)) for cell in summary.cells)
    return [(name, bound) for name, bound in found if bound is not None]


def _in_words(found: Bound) -> str:
    reached = f"{percent(found.efficiency)} of its sink's limit"
    if found.share >= 1:
        return f"{reached}; its CPU time would allow all of it"
    part = f"{seconds_each(found.dearest_cpu)} of {seconds_each(found.pipeline_cpu)} CPU s per million records"
    can = f"with the CPU time that it takes it can reach {percent(found.share)} at most"
    return f"{reached}; {can} ({found.dearest} takes most: {part})"
