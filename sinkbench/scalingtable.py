"""How pipelines scale with their tasks, as a small table and a line of words each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sinkbench.columns import NOT_MEASURED, new_table
from sinkbench.results import Fit, Scaling

__all__ = ["scaling_line", "scaling_table"]


def scaling_table(scalings: Sequence[Scaling]) -> Table:
    """One row for each number of tasks of each pipeline: measured, fitted, and what one more worker would add.

    Where the law is not supported by the data, only what was measured is shown.
    """
    table = new_table("scaling")
    for header in ("tasks", "measured\nrecords/s", "fitted\nrecords/s", "one more\nworker"):
        table.add_column(header, justify="right", no_wrap=True)
    for each in scalings:
        for place, point in enumerate(each.points):
            fitted = point.fitted if each.supported else None
            added = point.added_worker if each.supported else None
            row = [
                "" if place else each.label,
                f"{point.tasks}",
                f"{point.measured:,.0f}",
                NOT_MEASURED if fitted is None else f"{fitted:,.0f}",
                NOT_MEASURED if added is None else f"{added:+,.0f}",
            ]
            table.add_row(*map(Text, row))
    return table


def scaling_line(scaling: Scaling) -> str:
    """What the fit says in one line: the law's numbers and its peak, or why the data do not support a fit."""
    name = scaling.label
    if not scaling.supported or not (scaling.one_task and scaling.contention and scaling.coherency):
        return f"{name}: the data do not support a fit: {scaling.why}"
    numbers = (
        f"one task {_amount(scaling.one_task)} records/s, contention {_small(scaling.contention)},"
        f" coherency {_small(scaling.coherency)}"
    )
    if scaling.peak_tasks is not None:
        fewest = scaling.points[0].tasks
        if scaling.peak_tasks.estimate <= fewest:
            return f"{name}: {numbers}; the rate is highest at {fewest} tasks or fewer"
        return f"{name}: {numbers}; the rate peaks at {_tasks(scaling.peak_tasks)} tasks"
    few = "" if scaling.coherency.interval else " (too few trials for an interval)"
    return f"{name}: {numbers}; no peak within the data{few}"


def _amount(fit: Fit) -> str:
    found = fit.interval
    return f"{fit.estimate:,.0f}" + (f" ({found.low:,.0f} to {found.high:,.0f})" if found else "")


def _small(fit: Fit) -> str:
    found = fit.interval
    return f"{fit.estimate:.2g}" + (f" ({found.low:.2g} to {found.high:.2g})" if found else "")


def _tasks(fit: Fit) -> str:
    found = fit.interval
    return f"{fit.estimate:.0f}" + (f" ({found.low:.0f} to {found.high:.0f})" if found else "")
