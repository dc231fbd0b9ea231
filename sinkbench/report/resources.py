"""What the cells used besides CPU time, and the cost: memory, disk and money."""

from __future__ import annotations

from sinkbench.metrics.format import megabytes, money, whole
from sinkbench.metrics.metric import find
from sinkbench.metrics.names import marked_name
from sinkbench.report.costs import by_scale
from sinkbench.report.parts import Chart, Figure, Table
from sinkbench.report.plots import bars
from sinkbench.results import CellSummary, Cost, RunSummary

_PARTS = ("cores", "memory", "disk")
_EACH_RECORDS = {"bytes on disk a record": "Bytes on disk", "bytes from Kafka a record": "Bytes from Kafka"}


def memory(summary: RunSummary) -> Figure | Table | None:
    """The peak memory of each service, stacked, with heaps and the total in the table; None without data. If only
    heaps are known, as on shared clusters, only the table."""
    cells = [cell for cell in summary.cells if cell.peak_memory]
    services = list(dict.fromkeys(name for cell in cells for name in cell.peak_memory))
    heaps = [name for name in services if any(_heap(cell, name) is not None for cell in cells)]
    held = [(marked_name(cell, summary), parts) for cell in cells if (parts := _resident(cell))]
    seen = dict.fromkeys(name for _, parts in held for name in parts)
    names = sorted(seen, key=lambda name: -sum(parts.get(name, 0.0) for _, parts in held))
    if not names and not heaps:
        return None
    rows = [
        (
            marked_name(cell, summary),
            megabytes(find(cell, "total_peak_memory_bytes.median")),
            *(megabytes(cell.peak_memory[name].resident_bytes if name in cell.peak_memory else None) for name in names),
            *(megabytes(_heap(cell, name)) for name in heaps),
        )
        for cell in cells
    ]
    headers = ("cell", "peak MB", *names, *(f"heap of {name}" for name in heaps))
    table = Table(headers, rows, "Peak memory and heaps, in 10^6 bytes", numbers=range(1, len(headers)))
    if not names:
        return table
    told = "; ".join(f"{name} {sum(parts.values()):,.0f} MB" for name, parts in held)
    return Figure(
        "The most memory that each service of a cell's path held, in 10^6 bytes. They peak at different moments, so a "
        "bar may be longer than the peak of all together, which the table has.",
        [Chart(f"Peak memory by service: {told}", bars("memory", held, "MB", names=names))],
        table,
        meaning="Peak memory",
    )


def disk(summary: RunSummary) -> Figure | Table | None:
    """Bytes on disk, and from Kafka, per record of each cell; only the table if only the latter are known."""
    cells = [
        cell
        for cell in summary.cells
        if cell.disk_bytes_per_record is not None or cell.fetched_bytes_per_record is not None
    ]
    if not cells:
        return None
    rows = [
        (
            marked_name(cell, summary),
            whole(find(cell, "disk_bytes_per_record.median")),
            whole(cell.fetched_bytes_per_record),
        )
        for cell in cells
    ]
    headers = ("cell", *_EACH_RECORDS)
    caption = "Bytes a record on disk and from Kafka"
    table = Table(headers, rows, caption, numbers=(1, 2), meanings=_EACH_RECORDS)
    figures = [
        (marked_name(cell, summary), cell.disk_bytes_per_record.median)
        for cell in cells
        if cell.disk_bytes_per_record is not None
    ]
    if not figures:
        return table
    svg = bars("disk", [(name, {"bytes a record": value}) for name, value in figures], "bytes on disk a record")
    told = ", ".join(f"{name} {value:,.0f}" for name, value in figures)
    return Figure(
        "What a stored record takes on the sink's disk, with its indexes and without copies, after a flush.",
        [Chart(f"Bytes on disk a record: {told}", svg)],
        table,
        meaning="Bytes on disk",
    )


def cost(summary: RunSummary) -> Figure | None:
    """The cost of a million records of each cell, stacked by its parts; None without any."""
    known = [(marked_name(cell, summary), cell.cost) for cell in summary.cells if cell.cost is not None]
    stacked = [(name, _parts(each)) for name, each in known if each.per_million is not None]
    if summary.prices is None or not stacked:
        return None
    currency = summary.prices.currency
    charts = []
    for place, each in enumerate(by_scale(stacked)):
        told = ", ".join(f"{name} {money(sum(parts.values()))}" for name, parts in each)
        svg = bars(f"cost-{place}", each, f"{currency} per million records", money, names=_PARTS)
        charts.append(Chart(f"Cost of a million records in {currency}: {told}", svg))
    rows = [(name, *map(money, (each.per_million, each.cpu, each.memory, each.disk))) for name, each in known]
    headers = ("cell", "per million records", "for cores", "for memory", "for disk")
    own = " Cells that cost many times as much have a chart, and a scale, of their own." if len(charts) > 1 else ""
    return Figure(
        f"What a million records cost, in {currency}, by the prices below.{own}",
        charts,
        Table(headers, rows, f"Cost of a million records in {currency}", numbers=range(1, 5)),
        meaning="Cost per million records",
    )


def _parts(found: Cost) -> dict[str, float]:
    parts = zip(_PARTS, (found.cpu, found.memory, found.disk), strict=True)
    return {part: value for part, value in parts if value is not None}


def _resident(cell: CellSummary) -> dict[str, float]:
    held = ((name, each.resident_bytes) for name, each in cell.peak_memory.items())
    return {name: count / 1e6 for name, count in held if count is not None}


def _heap(cell: CellSummary, service: str) -> float | None:
    return cell.peak_memory[service].heap_bytes if service in cell.peak_memory else None
