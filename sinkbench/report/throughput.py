"""How much each cell stored: against its tasks, where a pipeline has several numbers of them, and side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sinkbench.columns import NOT_MEASURED
from sinkbench.report.parts import Chart, Figure, Table
from sinkbench.report.plots import Dot, Line, dots, lines
from sinkbench.results import CellSummary, RatePerSecond, RunSummary, Scaling
from sinkbench.scalability import Law
from sinkbench.table import cell_name

__all__ = ["against_tasks", "labels_with_tasks", "side_by_side"]

_CURVE_POINTS = 60


def labels_with_tasks(cells: Sequence[CellSummary]) -> dict[str, list[CellSummary]]:
    """The cells of each label that was run at several numbers of tasks, the fewest first."""
    found: dict[str, list[CellSummary]] = {}
    for cell in cells:
        found.setdefault(cell.label, []).append(cell)
    return {
        label: sorted(each, key=lambda cell: cell.tasks)
        for label, each in found.items()
        if len({cell.tasks for cell in each}) > 1
    }


def against_tasks(summary: RunSummary) -> Figure | None:
    """Rates against tasks with their intervals and the fitted law; None if no pipeline has several numbers of tasks."""
    several = labels_with_tasks(_rated(summary))
    if not several:
        return None
    laws = {scaling.label: scaling for scaling in summary.scaling}
    series = [_line(label, cells, laws.get(label)) for label, cells in several.items()]
    shown = [cell for cells in several.values() for cell in cells]
    tasks = sorted({float(cell.tasks) for cell in shown})
    return Figure(
        caption=(
            "Records stored a second against the number of tasks. A point is the median of the valid trials, its bar "
            f"{_what_bars_are(shown)}. A line is the fitted scaling law; a pipeline whose data do not support a fit "
            "has points alone."
        ),
        charts=[
            Chart(
                label=_label(several),
                svg=lines("tasks", series, "tasks", "records/s", joined=False, x_ticks=tasks),
            )
        ],
        table=_table(summary, shown, "Records stored a second, by tasks", laws),
    )


def side_by_side(summary: RunSummary) -> Figure | None:
    """A row for each cell with its rate; None if fewer than two have one, or `against_tasks` shows them all."""
    rated = _rated(summary)
    if len(rated) < 2 or sum(map(len, labels_with_tasks(rated).values())) == len(rated):
        return None
    rows = [(cell_name(cell, summary), [Dot("median", rate.median, *_span(rate))]) for cell, rate in _with_rates(rated)]
    return Figure(
        caption=(
            f"Records stored a second by each cell: a point is the median of its valid trials, its bar "
            f"{_what_bars_are(rated)}."
        ),
        charts=[
            Chart(
                label="Records stored a second by cell: "
                + ", ".join(f"{cell_name(cell, summary)} {rate.median:,.0f}" for cell, rate in _with_rates(rated)),
                svg=dots("cells", rows, "records/s"),
            )
        ],
        table=_table(summary, rated, "Records stored a second, by cell", {}),
    )


def _rated(summary: RunSummary) -> list[CellSummary]:
    """The cells that keep their tasks and have a rate that may be used."""
    return [
        cell
        for cell in summary.cells
        if cell.rescale is None and not cell.invalid and cell.records_per_second is not None and cell.mode != "sustain"
    ]


def _with_rates(cells: Sequence[CellSummary]) -> list[tuple[CellSummary, RatePerSecond]]:
    return [(cell, cell.records_per_second) for cell in cells if cell.records_per_second is not None]


def _span(rate: RatePerSecond) -> tuple[float, float]:
    return (rate.low, rate.high) if rate.interval is None else (rate.interval.low, rate.interval.high)


def _what_bars_are(cells: Sequence[CellSummary]) -> str:
    with_interval = [rate.interval is not None for _, rate in _with_rates(cells)]
    if all(with_interval):
        return "their 95 % interval"
    if any(with_interval):
        return "their 95 % interval, or the span of the lowest and the highest where they are too few for one"
    return "the span of the lowest and the highest, which are too few for an interval"


def _line(label: str, cells: Sequence[CellSummary], scaling: Scaling | None) -> Line:
    rates = _with_rates(cells)
    spans = [_span(rate) for _, rate in rates]
    return Line(
        label,
        x=[cell.tasks for cell, _ in rates],
        y=[rate.median for _, rate in rates],
        low=[low for low, _ in spans],
        high=[high for _, high in spans],
        curve=[] if scaling is None else _curve(scaling, cells[0].tasks, cells[-1].tasks),
    )


def _curve(scaling: Scaling, first: int, last: int) -> list[tuple[float, float]]:
    if not (scaling.supported and scaling.one_task and scaling.contention and scaling.coherency):
        return []
    law = Law(scaling.one_task.estimate, scaling.contention.estimate, scaling.coherency.estimate)
    return [(tasks, law.rate(tasks)) for tasks in np.linspace(first, last, _CURVE_POINTS).tolist()]


def _label(several: dict[str, list[CellSummary]]) -> str:
    parts = []
    for label, cells in several.items():
        rates = [(rate.median, cell.tasks) for cell, rate in _with_rates(cells)]
        most, tasks = max(rates)
        parts.append(f"{label} is fastest at {tasks} tasks with {most:,.0f}")
    return f"Records stored a second against tasks: {'; '.join(parts)}"


def _table(summary: RunSummary, cells: Sequence[CellSummary], caption: str, laws: dict[str, Scaling]) -> Table:
    fitted = {
        (label, point.tasks): point.fitted
        for label, scaling in laws.items()
        if scaling.supported
        for point in scaling.points
    }
    rows = []
    for cell, rate in _with_rates(cells):
        low, high = _span(rate)
        law = fitted.get((cell.label, cell.tasks))
        rows.append(
            (
                cell_name(cell, summary),
                f"{cell.tasks}",
                f"{rate.median:,.0f}",
                f"{low:,.0f}",
                f"{high:,.0f}",
                "lowest and highest trial"
                if rate.interval is None
                else f"{100 * rate.interval.confidence:.0f} % interval",
                f"{len(rate.values)}",
                *([NOT_MEASURED if law is None else f"{law:,.0f}"] if laws else []),
            )
        )
    headers = ("cell", "tasks", "records/s", "from", "to", "which is the", "trials", *(["fitted"] if laws else []))
    return Table(headers, rows, caption, frozenset({1, 2, 3, 4, 6, 7}))
