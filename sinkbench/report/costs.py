"""What the cells took: connections, CPU time by service, the share of the sink's limit, and where their tasks ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sinkbench.columns import NOT_MEASURED
from sinkbench.limits.efficiency import percent
from sinkbench.report.parts import Chart, Figure, Table
from sinkbench.report.plots import Dot, Line, Mark, bars, dots, lines
from sinkbench.report.throughput import labels_with_tasks
from sinkbench.results import CellSummary, Connections, RunSummary
from sinkbench.table import cell_name

__all__ = ["by_scale", "connections", "cpu", "efficiency", "placement"]

# A bar that is so many times shorter than the longest beside it cannot be read.
_FAR = 20
_LOADGEN = "loadgen"


def connections(summary: RunSummary) -> Figure | None:
    """The most connections of each cell, with the limit of PostgreSQL; None if none was seen."""
    cells = [cell for cell in summary.cells if _counts(cell.connections)]
    if not cells:
        return None
    limits = [cell.connections.server_limit for cell in cells if cell.connections.server_limit is not None]
    limit = min(limits, default=None)
    mark = None if limit is None else Mark(limit, f"PostgreSQL accepts {limit}")
    several = labels_with_tasks([cell for cell in cells if cell.rescale is None])
    shown = sum(map(len, several.values()))
    charts = []
    if several:
        tasks = sorted({float(cell.tasks) for each in several.values() for cell in each})
        charts.append(
            Chart(
                label=f"Connections against tasks: {_told(cells, summary)}",
                svg=lines("conns", _lines(several), "tasks", "connections at once", mark, x_ticks=tasks),
            )
        )
    if shown < len(cells):
        rest = [cell for cell in cells if not any(cell is each for kept in several.values() for each in kept)]
        rows = [
            (cell_name(cell, summary), [Dot(what, count) for what, count in _counts(cell.connections).items()])
            for cell in rest
        ]
        charts.append(
            Chart(
                label=f"Connections by cell: {_told(rest, summary)}",
                svg=dots("conns-cells", rows, "connections at once", mark, whole=True),
            )
        )
    kinds = (
        "Where a pool is between them, those that the clients opened and those that the database served differ. "
        if any(len(_counts(cell.connections)) > 1 for cell in cells)
        else ""
    )
    return Figure(
        caption=f"The most connections that were open at once. {kinds}"
        + ("" if limit is None else f"PostgreSQL refuses more than {limit}."),
        charts=charts,
        table=Table(
            headers=("cell", "tasks", "of the clients", "to the database", "limit of PostgreSQL"),
            rows=[
                (
                    cell_name(cell, summary),
                    f"{cell.tasks}",
                    _whole(cell.connections.clients_peak),
                    _whole(cell.connections.server_peak),
                    _whole(cell.connections.server_limit),
                )
                for cell in cells
            ],
            caption="The most connections at once",
            numbers=frozenset({1, 2, 3, 4}),
        ),
    )


def cpu(summary: RunSummary) -> Figure | None:
    """CPU seconds per million records, stacked by service; None if they were not measured."""
    rows = [(cell_name(cell, summary), _services(cell)) for cell in summary.cells if any(_services(cell).values())]
    if not rows:
        return None
    sums: dict[str, float] = {}
    for _, services in rows:
        for name, seconds in services.items():
            sums[name] = sums.get(name, 0.0) + seconds
    names = sorted(sums, key=lambda name: -sums[name])
    scales = by_scale(rows)
    own = " Cells that took many times as much have a chart, and a scale, of their own." if len(scales) > 1 else ""
    return Figure(
        caption=f"Seconds of one core for a million records, by service.{own}",
        charts=[
            Chart(
                label="CPU seconds per million records: "
                + ", ".join(f"{name} {sum(services.values()):,.0f}" for name, services in each),
                svg=bars(f"cpu-{place}", each, "CPU s per million records", _seconds, names=names),
            )
            for place, each in enumerate(scales)
        ],
        table=Table(
            headers=("cell", *names, "all"),
            rows=[
                (
                    label,
                    *(_seconds(services[name]) if name in services else NOT_MEASURED for name in names),
                    _seconds(sum(services.values())),
                )
                for label, services in rows
            ],
            caption="CPU seconds per million records, by service",
            numbers=frozenset(range(1, len(names) + 2)),
        ),
    )


def efficiency(summary: RunSummary) -> Figure | None:
    """The share of its sink's limit that each cell reached; None if no limit was measured."""
    known = [
        (cell_name(cell, summary), cell, cell.efficiency)
        for cell in summary.cells
        if cell.efficiency is not None and not cell.invalid
    ]
    if not known:
        return None
    return Figure(
        caption=(
            "Each cell's rate as a share of what its sink stored of the same records from a plain client, "
            "without Kafka and Connect."
        ),
        charts=[
            Chart(
                label="Share of the sink's limit: " + ", ".join(f"{name} {percent(share)}" for name, _, share in known),
                svg=bars(
                    "efficiency",
                    [(name, {"of the sink's limit": 100 * share}) for name, _, share in known],
                    "% of the sink's limit",
                    lambda value: percent(value / 100),
                    Mark(100, "the sink's limit"),
                ),
            )
        ],
        table=Table(
            headers=("cell", "sink", "limit, records/s", "share"),
            rows=[
                (name, cell.sink, _whole(cell.limit_records_per_second), percent(share)) for name, cell, share in known
            ],
            caption="Share of the sink's limit",
            numbers=frozenset({2, 3}),
        ),
    )


def placement(summary: RunSummary) -> Figure | None:
    """How many tasks each worker had; None if that is not known."""
    known = [(cell_name(cell, summary), cell.placement) for cell in summary.cells if cell.placement]
    if not known:
        return None
    workers = sorted({worker for _, counts in known for worker in counts})
    return Figure(
        caption="Tasks on each worker.",
        charts=[
            Chart(
                label="Tasks by worker: "
                + "; ".join(
                    f"{name}: {', '.join(f'{w} {n}' for w, n in sorted(counts.items()))}" for name, counts in known
                ),
                svg=bars(
                    "placement",
                    [(name, {worker: float(count) for worker, count in counts.items()}) for name, counts in known],
                    "tasks",
                    names=workers,
                    whole=True,
                ),
            )
        ],
        table=Table(
            headers=("cell", *workers),
            rows=[(name, *(_whole(counts.get(worker)) for worker in workers)) for name, counts in known],
            caption="Tasks by worker",
            numbers=frozenset(range(1, len(workers) + 1)),
        ),
    )


def by_scale(rows: Sequence[tuple[str, Mapping[str, float]]]) -> list[list[tuple[str, Mapping[str, float]]]]:
    """Bars that can share a scale, in groups: none is more than 20 times as long as another. Each keeps its order."""
    order = sorted(range(len(rows)), key=lambda place: sum(rows[place][1].values()))
    groups: list[list[int]] = []
    for place in order:
        total = sum(rows[place][1].values())
        if groups and total <= _FAR * max(sum(rows[groups[-1][0]][1].values()), 1e-9):
            groups[-1].append(place)
        else:
            groups.append([place])
    return [[rows[place] for place in sorted(group)] for group in groups]


def _counts(found: Connections) -> dict[str, int]:
    """What there is to show: one number where there is no pool, else both."""
    clients, servers = found.clients_peak, found.server_peak
    if clients is not None and servers is not None and clients != servers:
        return {"of the clients": clients, "to the database": servers}
    known = clients if clients is not None else servers
    return {} if known is None else {"of the clients": known}


def _lines(several: Mapping[str, Sequence[CellSummary]]) -> list[Line]:
    made = []
    for label, cells in several.items():
        kinds = list(dict.fromkeys(kind for cell in cells for kind in _counts(cell.connections)))
        for kind in kinds:
            points = [(cell.tasks, counts[kind]) for cell in cells if kind in (counts := _counts(cell.connections))]
            name = label if len(kinds) == 1 else f"{label}, {kind}"
            made.append(Line(name, [tasks for tasks, _ in points], [count for _, count in points]))
    return made


def _told(cells: Sequence[CellSummary], summary: RunSummary) -> str:
    counts = ((cell_name(cell, summary), _counts(cell.connections).items()) for cell in cells)
    return "; ".join(f"{name} {' and '.join(f'{count} {kind}' for kind, count in found)}" for name, found in counts)


def _services(cell: CellSummary) -> dict[str, float]:
    """The CPU seconds of each service; those of all load generators together."""
    sums: dict[str, float] = {}
    for name, seconds in cell.cpu_seconds_per_million.items():
        if seconds is not None:
            service = _LOADGEN if name.startswith(_LOADGEN) else name
            sums[service] = sums.get(service, 0.0) + seconds
    return sums


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 9.5 else f"{seconds:.1f}"


def _whole(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:,.0f}"
