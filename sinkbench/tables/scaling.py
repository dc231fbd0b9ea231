"""How pipelines scale with their tasks, as a table and a line for each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sinkbench.metrics.format import formatted, whole
from sinkbench.results import Fit, Scaling
from sinkbench.tables.text import new_table


def scaling_table(scalings: Sequence[Scaling]) -> Table:
    """One row per number of tasks of each pipeline; without the fit if the data do not support the law."""
    table = new_table("scaling", "tasks", "measured\nrecords/s", "fitted\nrecords/s", "one more\nworker")
    for each in scalings:
        for place, point in enumerate(each.points):
            fitted, added = (point.fitted, point.added_worker) if each.supported else (None, None)
            name = "" if place else each.label
            row = [name, f"{point.tasks}", whole(point.measured), whole(fitted), formatted(added, "+,.0f")]
            table.add_row(*map(Text, row))
    return table


def scaling_line(scaling: Scaling) -> str:
    """The law's parameters and its peak, or why the data do not support a fit."""
    name = scaling.label
    if not scaling.supported or not (scaling.one_task and scaling.contention and scaling.coherency):
        return f"{name}: the data do not support a fit: {scaling.why}"
    numbers = (
        f"one task {_estimate(scaling.one_task, ',.0f')} records/s,"
        f" contention {_estimate(scaling.contention, '.2g')}, coherency {_estimate(scaling.coherency, '.2g')}"
    )
    if scaling.peak_tasks is not None:
        fewest = scaling.points[0].tasks
        if scaling.peak_tasks.estimate <= fewest:
            return f"{name}: {numbers}; the rate is highest at {fewest} tasks or fewer"
        return f"{name}: {numbers}; the rate peaks at {_estimate(scaling.peak_tasks, '.0f')} tasks"
    few = "" if scaling.coherency.interval else " (too few trials for an interval)"
    return f"{name}: {numbers}; no peak within the data{few}"


def _estimate(fit: Fit, form: str) -> str:
    found = fit.interval
    return f"{fit.estimate:{form}}" + (f" ({found.low:{form}} to {found.high:{form}})" if found else "")
