"""The charts of a report's sections: CPU time by service, and rates by the number of tasks."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.samples import CONTROLLER
from sinkbench.analysis.scalability import Law
from sinkbench.analysis.words import counted, milliseconds, seconds_each
from sinkbench.metrics.metric import find
from sinkbench.metrics.names import marked_name
from sinkbench.report.parts import Chart, Figure
from sinkbench.report.plots import LineSeries, bars, lines
from sinkbench.results import RunSummary, Scaling
from sinkbench.tables.percell import cpu_by_service

_CURVE_POINTS = 60
Points = Sequence[tuple[float, float, float, float]]


def cpu(summary: RunSummary) -> Figure | None:
    """CPU seconds per million records of each cell, stacked by service; None if not measured."""
    rows = []
    for cell in summary.cells:
        used = {name: seconds for name, seconds in cpu_by_service(cell).items() if name != CONTROLLER}
        end = seconds_each(find(cell, "total_cpu_seconds_per_million.median"))
        rows += [(marked_name(cell, summary), used, end)] if any(used.values()) else []
    if not rows:
        return None
    services = dict.fromkeys(name for _, parts, _ in rows for name in parts)
    order = sorted(services, key=lambda name: -sum(parts.get(name, 0.0) for _, parts, _ in rows))
    told = ", ".join(f"{name} {end}" for name, _, end in rows)
    svg = bars("cpu", rows, "CPU s per million records", order)
    charts = [Chart(f"CPU seconds per million records: {told}", svg)]
    return Figure("Seconds of one core for a million records, by service.", charts, "CPU seconds per million records")


def against_tasks(summary: RunSummary) -> Figure | None:
    """Rates over tasks with the fitted law; None if no pipeline has several numbers of tasks."""
    several: dict[str, list[tuple[float, float, float, float]]] = {}
    for cell in sorted(summary.cells, key=lambda cell: cell.tasks):
        rate = usable_rate(cell)
        if rate is not None and cell.rescale is None and cell.mode not in ("sustain", "faults"):
            ends = rate.interval or rate
            several.setdefault(cell.label, []).append((cell.tasks, rate.median, ends.low, ends.high))
    laws = {scaling.label: scaling for scaling in summary.scaling}
    series = [LineSeries(label, each, _curve(each, laws.get(label))) for label, each in _at_several(several)]
    if not series:
        return None
    most = {each.name: max((rate, tasks) for tasks, rate, *_ in each.points) for each in series}
    told = [f"{label} is fastest at {at} tasks, {rate:,.0f}" for label, (rate, at) in most.items()]
    svg = lines("tasks", series, "tasks", "records/s")
    return Figure(
        "Records stored a second by the number of tasks. A bar is the 95 % interval, or min-max of fewer than five "
        "trials; a curve is the fitted law, where the data support it.",
        [Chart(f"Records stored a second against tasks: {'; '.join(told)}", svg)],
        "Scaling law",
    )


def against_load(summary: RunSummary) -> Figure | None:
    """The latency over the offered rate; None if no pipeline has it at several rates."""
    several: dict[str, list[tuple[float, float, float, float]]] = {}
    for cell in sorted(summary.cells, key=lambda cell: cell.offered_records_per_second or 0.0):
        rate, p50, p99 = map(partial(find, cell), ("offered_records_per_second", "latency_ms.p50", "latency_ms.p99"))
        if None not in (rate, p50, p99) and cell.fault is None and cell.reads_per_second is None:
            several.setdefault(f"{cell.label}, {counted(cell.tasks, 'task')}", []).append((rate, p99, p50, p99))
    series = [LineSeries(name, each, [(x, y) for x, y, *_ in each]) for name, each in _at_several(several)]
    if not series:
        return None
    curves = {each.name: [milliseconds(p99) for _, p99 in each.curve] for each in series}
    ends = [f"{name} from {each[0]} to {each[-1]} ms" for name, each in curves.items()]
    svg = lines("load", series, "offered records/s", "latency, ms")
    text = "The p99 of the latency by the offered rate; a bar goes down to the p50. What was not sustained has none."
    return Figure(text, [Chart(f"p99 of the latency against the load: {'; '.join(ends)}", svg)], "Latency")


def _at_several(found: Mapping[str, Points]) -> list[tuple[str, Points]]:
    return [(name, points) for name, points in found.items() if len({x for x, *_ in points}) > 1]


def _curve(points: Points, found: Scaling | None) -> list[tuple[float, float]]:
    if not (found and found.supported and found.one_task and found.contention and found.coherency):
        return []
    law = Law(found.one_task.estimate, found.contention.estimate, found.coherency.estimate)
    return [(count, law.rate(count)) for count in np.linspace(points[0][0], points[-1][0], _CURVE_POINTS).tolist()]
