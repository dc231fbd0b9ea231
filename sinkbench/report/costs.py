"""What the cells used: connections, CPU time by service, the share of the sink's limit, and their tasks by worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sinkbench.analysis.samples import CONTROLLER
from sinkbench.metrics.connections import connection_counts
from sinkbench.metrics.format import NOT_MEASURED, seconds_each, whole
from sinkbench.metrics.limit import efficiency_and_spread
from sinkbench.metrics.metric import find
from sinkbench.metrics.names import cell_name, marked_name
from sinkbench.report.parts import Chart, Figure, Table
from sinkbench.report.plots import Dot, LineSeries, Mark, bars, dots, lines
from sinkbench.report.throughput import labels_with_tasks
from sinkbench.results import CellSummary, Connections, RunSummary

# A bar that is 20 times shorter than the longest is not legible.
_FAR = 20
_LOADGEN = "loadgen"
_POOLED = "Where a pool is between them, those that the clients opened and those that the database served differ. "


def connections(summary: RunSummary) -> Figure | None:
    """The most connections of each cell, with the limit of the database; None without data."""
    cells = [cell for cell in summary.cells if _counts(cell.connections)]
    if not cells:
        return None
    limits = [cell.connections.server_limit for cell in cells if cell.connections.server_limit is not None]
    limit = min(limits, default=None)
    mark = None if limit is None else Mark(limit, f"the database accepts {limit}")
    several = labels_with_tasks([cell for cell in cells if cell.rescale is None])
    shown = [cell for each in several.values() for cell in each]
    charts = []
    if several:
        tasks = sorted({float(cell.tasks) for cell in shown})
        svg = lines("conns", _lines(several), "tasks", "connections at once", mark, x_ticks=tasks)
        charts.append(Chart(f"Connections against tasks: {_told(cells, summary)}", svg))
    if rest := [cell for cell in cells if cell not in shown]:
        dotted = [
            (cell_name(cell, summary), [Dot(what, count) for what, count in _counts(cell.connections).items()])
            for cell in rest
        ]
        svg = dots("conns-cells", dotted, "connections at once", mark, whole=True)
        charts.append(Chart(f"Connections by cell: {_told(rest, summary)}", svg))
    caption = "The most connections that were open at once. "
    if any(len(_counts(cell.connections)) > 1 for cell in cells):
        caption += _POOLED
    if limit is not None:
        caption += f"The database refuses more than {limit}."
    headers = ("cell", "tasks", "of the clients", "to the database", "limit of the database")
    rows = [(cell_name(cell, summary), f"{cell.tasks}", *_connections(cell.connections)) for cell in cells]
    table = Table(headers, rows, "The most connections at once", numbers=range(1, 5))
    return Figure(caption, charts, table, meaning="Peak connections")


def cpu(summary: RunSummary, cells: Sequence[CellSummary], key: str = "cpu") -> Figure | None:
    """CPU seconds per million records of `cells`, stacked by service; None if not measured. sinkbench's own are only
    in the table and in no sum. Cells without a quotable rate are marked; `key` is that of the picture."""
    shown = [cell for cell in cells if any(_services(cell).values())]
    if not shown:
        return None
    rows = [(marked_name(cell, summary), _services(cell)) for cell in shown]
    sums = {
        name: seconds_each(find(cell, "total_cpu_seconds_per_million.median"))
        for (name, _), cell in zip(rows, shown, strict=True)
    }
    seen = dict.fromkeys(name for _, services in rows for name in services)
    names = sorted(seen, key=lambda name: -sum(services.get(name, 0.0) for _, services in rows))
    scales = by_scale(rows)
    own = " Cells that took many times as much have a chart, and a scale, of their own." if len(scales) > 1 else ""
    charts = []
    for place, each in enumerate(scales):
        ends = [sums[name] for name, _ in each]
        told = ", ".join(f"{name} {end}" for (name, _), end in zip(each, ends, strict=True))
        svg = bars(f"{key}-{place}", each, "CPU s per million records", names=names, ends=ends)
        charts.append(Chart(f"CPU seconds per million records: {told}", svg))
    texts = [
        (
            label,
            *(seconds_each(services.get(name)) for name in names),
            sums[label],
            _interval(cell),
            seconds_each(cell.cpu_seconds_per_million.get(CONTROLLER)),
        )
        for (label, services), cell in zip(rows, shown, strict=True)
    ]
    caption = "CPU seconds per million records, by service"
    headers = ("cell", *names, "all", "95 % interval", CONTROLLER)
    table = Table(headers, texts, caption, numbers=range(1, len(headers)))
    caption = f"Seconds of one core for a million records, by service.{own}"
    return Figure(caption, charts, table, meaning="CPU seconds per million records")


def efficiency(summary: RunSummary) -> Figure | None:
    """The share of its sink's limit that each cell reached, failed cells marked; None without limits."""
    known = [
        (marked_name(cell, summary), cell, cell.efficiency)
        for cell in summary.cells
        if cell.efficiency is not None and not cell.invalid
    ]
    if not known:
        return None
    told = ", ".join(f"{name} {' '.join(efficiency_and_spread(cell))}" for name, cell, _ in known)
    svg = dots(
        "efficiency",
        [(name, [Dot("of the sink's limit", 100 * share, *_share_span(cell))]) for name, cell, share in known],
        "% of the sink's limit",
        Mark(100, "the sink's limit"),
    )
    rows = [
        (
            name,
            cell.sink,
            whole(cell.limit_records_per_second),
            *[*efficiency_and_spread(cell), NOT_MEASURED][:2],
            "once a run" if cell.efficiency_by_block is None else f"{len(cell.efficiency_by_block.values)}",
        )
        for name, cell, _ in known
    ]
    headers = ("cell", "sink", "limit, records/s", "share", "interval", "blocks")
    caption = (
        "Each cell's rate as a share of what its sink stored of the same records from a plain client, without Kafka "
        "and Connect"
    )
    # A limit that was measured once has no blocks.
    in_blocks = [cell.efficiency_by_block is not None for _, cell, _ in known]
    if any(in_blocks):
        caption += ", in the same block" + ("" if all(in_blocks) else " where the limit was measured in blocks")
        caption += ". In brackets are the lowest and the highest of too few blocks for an interval"
    return Figure(
        f"{caption}.",
        [Chart(f"Share of the sink's limit: {told}", svg)],
        Table(headers, rows, "Share of the sink's limit", numbers=(2, 3, 4, 5)),
        meaning="Efficiency",
    )


def _share_span(cell: CellSummary) -> tuple[float, float] | tuple[None, None]:
    """The ends of the bar of a cell's efficiency, in percent; none for a single value."""
    shares = cell.efficiency_by_block
    if shares is None or len(shares.values) < 2:
        return None, None
    ends = shares if shares.interval is None else shares.interval
    return 100 * ends.low, 100 * ends.high


def placement(summary: RunSummary) -> Figure | None:
    known = [(cell_name(cell, summary), cell.placement) for cell in summary.cells if cell.placement]
    if not known:
        return None
    workers = sorted({worker for _, counts in known for worker in counts})
    told = "; ".join(f"{name}: {', '.join(f'{w} {n}' for w, n in sorted(counts.items()))}" for name, counts in known)
    svg = bars("placement", known, "tasks", names=workers, whole=True)
    rows = [(name, *(whole(counts.get(worker)) for worker in workers)) for name, counts in known]
    table = Table(("cell", *workers), rows, "Tasks by worker", numbers=range(1, len(workers) + 1))
    return Figure("Tasks on each worker.", [Chart(f"Tasks by worker: {told}", svg)], table, meaning="Placement")


def by_scale(rows: Sequence[tuple[str, Mapping[str, float]]]) -> list[list[tuple[str, Mapping[str, float]]]]:
    """The bars in groups with a common scale: none is more than 20 times as long as another."""
    sums = [sum(parts.values()) for _, parts in rows]
    groups: list[list[int]] = []
    for place in sorted(range(len(rows)), key=sums.__getitem__):
        if groups and sums[place] <= _FAR * max(sums[groups[-1][0]], 1e-9):
            groups[-1].append(place)
        else:
            groups.append([place])
    return [[rows[place] for place in sorted(group)] for group in groups]


def _counts(found: Connections) -> dict[str, int]:
    return dict(zip(("of the clients", "to the database"), connection_counts(found), strict=False))


def _connections(found: Connections) -> tuple[str, str, str]:
    return whole(found.clients_peak), whole(found.server_peak), whole(found.server_limit)


def _lines(several: Mapping[str, Sequence[CellSummary]]) -> list[LineSeries]:
    made = []
    for label, cells in several.items():
        kinds = list(dict.fromkeys(kind for cell in cells for kind in _counts(cell.connections)))
        for kind in kinds:
            points = [(cell.tasks, counts[kind]) for cell in cells if kind in (counts := _counts(cell.connections))]
            name = label if len(kinds) == 1 else f"{label}, {kind}"
            made.append(LineSeries(name, [tasks for tasks, _ in points], [count for _, count in points]))
    return made


def _told(cells: Sequence[CellSummary], summary: RunSummary) -> str:
    counts = ((cell_name(cell, summary), _counts(cell.connections).items()) for cell in cells)
    return "; ".join(f"{name} {' and '.join(f'{count} {kind}' for kind, count in found)}" for name, found in counts)


def _services(cell: CellSummary) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, seconds in cell.cpu_seconds_per_million.items():
        if seconds is not None and name != CONTROLLER:
            service = _LOADGEN if name.startswith(_LOADGEN) else name
            sums[service] = sums.get(service, 0.0) + seconds
    return sums


def _interval(cell: CellSummary) -> str:
    total = cell.total_cpu_seconds_per_million
    if total is None or total.interval is None:
        return NOT_MEASURED
    return f"{seconds_each(total.interval.low)}-{seconds_each(total.interval.high)}"
