"""The rate of each cell: over the number of tasks if there are several, and side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.scalability import Law
from sinkbench.metrics.format import NOT_MEASURED, percent, whole
from sinkbench.metrics.names import cell_name
from sinkbench.report.parts import Chart, Figure, Table
from sinkbench.report.plots import Dot, LineSeries, dots, lines
from sinkbench.results import CellSummary, RatePerSecond, RunSummary, Scaling

_CURVE_POINTS = 60
_QUOTED, _CAPACITY, _AT_LEAST, _NOT_PASSED = (
    "median of the valid trials",
    "capacity",
    "at least: not warm, or not steady",
    "of a cell that did not pass",
)


def labels_with_tasks(cells: Sequence[CellSummary]) -> dict[str, list[CellSummary]]:
    """The cells of each label with several numbers of tasks, the fewest first."""
    found: dict[str, list[CellSummary]] = {}
    for cell in cells:
        found.setdefault(cell.label, []).append(cell)
    return {
        label: sorted(each, key=lambda cell: cell.tasks)
        for label, each in found.items()
        if len({cell.tasks for cell in each}) > 1
    }


def against_tasks(summary: RunSummary) -> Figure | None:
    """Rates over tasks with the fitted law; None if no pipeline has several numbers of tasks."""
    several = labels_with_tasks(_rated(summary))
    if not several:
        return None
    laws = {scaling.label: scaling for scaling in summary.scaling}
    series = [_line(label, cells, laws.get(label)) for label, cells in several.items()]
    shown = [cell for cells in several.values() for cell in cells]
    tasks = sorted({float(cell.tasks) for cell in shown})
    svg = lines("tasks", series, "tasks", "records/s", joined=False, x_ticks=tasks)
    return Figure(
        "Records stored a second against the number of tasks. A point is the median of the valid trials, its bar "
        f"{_what_bars_are(shown)}. A line is the fitted scaling law; a pipeline whose data do not support a fit "
        "has points alone.",
        [Chart(_label(several), svg)],
        _table(summary, shown, "Records stored a second, by tasks", laws),
        meaning="Scaling law" if any(each.curve for each in series) else "Records per second",
    )


def side_by_side(summary: RunSummary) -> Figure | None:
    """A row per cell; None if fewer than two have a rate, or `against_tasks` shows them all."""
    rated = _rated(summary)
    if len(rated) < 2 or all_against_tasks(summary):
        return None
    named = [(cell_name(cell, summary), rate) for cell, rate in _with_rates(rated)]
    told = ", ".join(f"{name} {rate.median:,.0f}" for name, rate in named)
    svg = dots("cells", [(name, [Dot("median", rate.median, *_span(rate))]) for name, rate in named], "records/s")
    return Figure(
        "Records stored a second by each cell: a point is the median of its valid trials, its bar "
        f"{_what_bars_are(rated)}.",
        [Chart(f"Records stored a second by cell: {told}", svg)],
        _table(summary, rated, "Records stored a second, by cell", {}),
        meaning="Records per second",
    )


def overview(summary: RunSummary, cells: Sequence[CellSummary]) -> Figure | None:
    """A row for each of `cells` with a rate or a lower bound of it; None if there is none. What is not quotable
    looks different, and is marked."""
    rows = [(cell_name(cell, summary), cell, found) for cell in cells if (found := _dot(cell)) is not None]
    if not rows:
        return None
    svg = dots(
        "rates",
        [(name, [dot]) for name, _, dot in rows],
        "records/s",
        texts=[_in_words(dot) for _, _, dot in rows],
        names=(_QUOTED, _AT_LEAST, _NOT_PASSED, _CAPACITY),
    )
    kinds = {dot.name for _, _, dot in rows}
    quoted = [cell for _, cell, dot in rows if dot.name in (_QUOTED, _NOT_PASSED) and dot.low is not None]
    said = ["Records stored a second by each cell."]
    if quoted:
        said.append(f"A point is the median of its valid trials{_with_bars(quoted)}.")
    if _CAPACITY in kinds:
        said.append("A point is the highest rate at which the lag stayed bounded, the outcome of one search.")
    if _AT_LEAST in kinds:
        said.append(
            "An arrow is a cell that was not warm or not steady: it stores at least as much, and is in no ratio."
        )
    table = Table(
        ("cell", "tasks", "records/s", "from", "to", "trials"),
        [(name, f"{cell.tasks}", _in_words(dot), *_numbers(cell, dot)) for name, cell, dot in rows],
        "Records stored a second, by cell",
        numbers=range(1, 6),
    )
    told = ", ".join(f"{name} {_in_words(dot)}" for name, _, dot in rows)
    chart = Chart(f"Records stored a second by cell: {told}", svg)
    meanings = {_QUOTED: "Records per second", _CAPACITY: "Capacity", _AT_LEAST: "Warm and steady"}
    meaning = next((said for kind, said in meanings.items() if kind in kinds), "Records per second")
    return Figure(" ".join(said), [chart], table, meaning=meaning)


def all_against_tasks(summary: RunSummary) -> bool:
    """Whether `against_tasks` shows every cell that has a rate."""
    rated = _rated(summary)
    return sum(map(len, labels_with_tasks(rated).values())) == len(rated)


def _dot(cell: CellSummary) -> Dot | None:
    """A cell's rate or lower bound; None if it has none, is re-scaled or stores what is offered."""
    if cell.rescale is not None or cell.mode == "sustain" or cell.invalid:
        return None
    if cell.at_least is not None:
        least = cell.at_least.figures.get("records_per_second")
        return None if least is None else Dot(_AT_LEAST, least, least=True)
    rate = cell.records_per_second
    if rate is None:
        return None
    if cell.mode == "capacity":
        # One search: the rates of the confirming trials are not its range.
        return Dot(_CAPACITY if cell.passed else _NOT_PASSED, rate.median)
    return Dot(_QUOTED if cell.passed else _NOT_PASSED, rate.median, *_span(rate))


def _in_words(dot: Dot) -> str:
    return f"at least {whole(dot.value)}" if dot.least else whole(dot.value)


def _numbers(cell: CellSummary, dot: Dot) -> tuple[str, str, str]:
    rate = cell.records_per_second
    if rate is None or dot.low is None:
        return NOT_MEASURED, NOT_MEASURED, f"{cell.trials}"
    return whole(dot.low), whole(dot.high), f"{len(rate.values)}"


def _with_bars(cells: Sequence[CellSummary]) -> str:
    """The meaning of the bars of cells with a rate; empty if each has one trial."""
    if all(len(rate.values) == 1 for _, rate in _with_rates(cells)):
        return ", here of one"
    return f", its bar {_what_bars_are(cells)}"


def _rated(summary: RunSummary) -> list[CellSummary]:
    """The cells with a quotable rate, without re-scales and constant loads."""
    cells = (cell for cell in summary.cells if cell.rescale is None and cell.mode not in ("sustain", "faults"))
    return [cell for cell in cells if usable_rate(cell) is not None]


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


def _line(label: str, cells: Sequence[CellSummary], scaling: Scaling | None) -> LineSeries:
    rates = _with_rates(cells)
    return LineSeries(
        label,
        x=[cell.tasks for cell, _ in rates],
        y=[rate.median for _, rate in rates],
        low=[_span(rate)[0] for _, rate in rates],
        high=[_span(rate)[1] for _, rate in rates],
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
        most, tasks = max((rate.median, cell.tasks) for cell, rate in _with_rates(cells))
        parts.append(f"{label} is fastest at {tasks} tasks with {most:,.0f}")
    return f"Records stored a second against tasks: {'; '.join(parts)}"


def _table(summary: RunSummary, cells: Sequence[CellSummary], caption: str, laws: dict[str, Scaling]) -> Table:
    fitted = {
        (label, point.tasks): point.fitted
        for label, scaling in laws.items()
        if scaling.supported
        for point in scaling.points
    }
    rows = [
        (
            cell_name(cell, summary),
            f"{cell.tasks}",
            *(f"{value:,.0f}" for value in (rate.median, *_span(rate))),
            f"{percent(rate.interval.confidence)} interval" if rate.interval else "lowest and highest trial",
            f"{len(rate.values)}",
            *([whole(fitted.get((cell.label, cell.tasks)))] if laws else []),
        )
        for cell, rate in _with_rates(cells)
    ]
    headers = ("cell", "tasks", "records/s", "from", "to", "which is the", "trials", *(["fitted"] if laws else []))
    return Table(headers, rows, caption, numbers=(1, 2, 3, 4, 6, 7))
