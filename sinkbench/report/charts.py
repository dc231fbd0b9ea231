"""The charts of a report's sections: CPU time by service, and rates by the number of tasks."""

from collections.abc import Sequence
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
from sinkbench.results import CellSummary, RatePerSecond, RunSummary, Scaling
from sinkbench.tables.percell import cpu_by_service

_CURVE_POINTS = 60


def cpu(summary: RunSummary) -> Figure | None:
    """CPU seconds per million records of each cell, stacked by service; None if not measured."""
    rows, ends = [], {}
    for cell in summary.cells:
        used = {name: seconds for name, seconds in cpu_by_service(cell).items() if name != CONTROLLER}
        ends[marked_name(cell, summary)] = seconds_each(find(cell, "total_cpu_seconds_per_million.median"))
        rows += [(marked_name(cell, summary), used)] if any(used.values()) else []
    if not rows:
        return None
    services = dict.fromkeys(name for _, parts in rows for name in parts)
    order = sorted(services, key=lambda name: -sum(parts.get(name, 0.0) for _, parts in rows))
    texts = [ends[name] for name, _ in rows]
    told = ", ".join(f"{name} {end}" for (name, _), end in zip(rows, texts, strict=True))
    svg = bars("cpu", rows, "CPU s per million records", order, texts)
    charts = [Chart(f"CPU seconds per million records: {told}", svg)]
    return Figure("Seconds of one core for a million records, by service.", charts, "CPU seconds per million records")


def against_tasks(summary: RunSummary) -> Figure | None:
    """Rates over tasks with the fitted law; None if no pipeline has several numbers of tasks."""
    several: dict[str, list[tuple[CellSummary, RatePerSecond]]] = {}
    for cell in sorted(summary.cells, key=lambda cell: cell.tasks):
        rate = usable_rate(cell)
        if rate is not None and cell.rescale is None and cell.mode not in ("sustain", "faults"):
            several.setdefault(cell.label, []).append((cell, rate))
    several = {label: each for label, each in several.items() if len({cell.tasks for cell, _ in each}) > 1}
    if not several:
        return None
    laws = {scaling.label: scaling for scaling in summary.scaling}
    series = [_line(label, each, laws.get(label)) for label, each in several.items()]
    tasks = sorted({float(cell.tasks) for each in several.values() for cell, _ in each})
    most = [max((rate.median, cell.tasks) for cell, rate in each) for each in several.values()]
    told = [f"{label} is fastest at {at} tasks, {rate:,.0f}" for label, (rate, at) in zip(several, most, strict=True)]
    svg = lines("tasks", series, "tasks", "records/s", tasks)
    return Figure(
        "Records stored a second by the number of tasks. A bar is the 95 % interval, or min-max of fewer than five "
        "trials; a curve is the fitted law, where the data support it.",
        [Chart(f"Records stored a second against tasks: {'; '.join(told)}", svg)],
        "Scaling law",
    )


def against_load(summary: RunSummary) -> Figure | None:
    """The latency over the offered rate; None if no pipeline has it at several rates."""
    several: dict[str, list[tuple[float, float, float]]] = {}
    for cell in sorted(summary.cells, key=lambda cell: cell.offered_records_per_second or 0.0):
        rate, p50, p99 = map(partial(find, cell), ("offered_records_per_second", "latency_ms.p50", "latency_ms.p99"))
        if None not in (rate, p50, p99) and cell.fault is None and cell.reads_per_second is None:
            several.setdefault(f"{cell.label}, {counted(cell.tasks, 'task')}", []).append((rate, p50, p99))
    several = {name: each for name, each in several.items() if len({rate for rate, *_ in each}) > 1}
    if not several:
        return None
    series = []
    for name, each in several.items():
        rates, lows, highs = (list(figures) for figures in zip(*each, strict=True))
        series.append(LineSeries(name, rates, highs, lows, highs, list(zip(rates, highs, strict=True))))
    every = sorted({rate for each in several.values() for rate, *_ in each})
    ends = [f"{each.name} from {milliseconds(each.y[0])} to {milliseconds(each.y[-1])} ms" for each in series]
    svg = lines("load", series, "offered records/s", "latency, ms", every)
    return Figure(
        "The p99 of the latency by the offered rate; a bar goes down to the p50. What was not sustained has none.",
        [Chart(f"p99 of the latency against the load: {'; '.join(ends)}", svg)],
        "Latency",
    )


def _line(label: str, rates: Sequence[tuple[CellSummary, RatePerSecond]], scaling: Scaling | None) -> LineSeries:
    ends = [rate if rate.interval is None else rate.interval for _, rate in rates]
    tasks = [cell.tasks for cell, _ in rates]
    curve: list[tuple[float, float]] = []
    if scaling and scaling.supported and scaling.one_task and scaling.contention and scaling.coherency:
        law = Law(scaling.one_task.estimate, scaling.contention.estimate, scaling.coherency.estimate)
        curve = [(count, law.rate(count)) for count in np.linspace(tasks[0], tasks[-1], _CURVE_POINTS).tolist()]
    medians = [rate.median for _, rate in rates]
    return LineSeries(label, tasks, medians, [each.low for each in ends], [each.high for each in ends], curve)
