"""Tables with one row per cell; the figures declare the columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Column as RichColumn
from rich.table import Table
from rich.text import Text

from sinkbench.analysis.rates import usable_median
from sinkbench.analysis.samples import by_service
from sinkbench.analysis.words import NOT_MEASURED, seconds_each, tenths, whole
from sinkbench.metrics import METRICS
from sinkbench.metrics.audit import CHANGES
from sinkbench.metrics.connections import LOADS, POOLS
from sinkbench.metrics.cost import COSTS
from sinkbench.metrics.durability import DURABILITY
from sinkbench.metrics.memory import RESOURCES
from sinkbench.metrics.metric import Column, find, known
from sinkbench.metrics.names import folded, marked_name
from sinkbench.metrics.queries import READS
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.recovery import RECOVERIES, RESCALES, STATUS
from sinkbench.results import CellSummary, RunSummary
from sinkbench.tables.text import new_table, width_of, words

_LONGEST_NAME = 32
# What a table that is too wide does without, in turn; the first ones only if all rows, and the lines around, say it.
_IF_ALIKE = ("dupl.", "twice", "lost", "tasks\n(per\nworker)")
_SPARE = (*_IF_ALIKE, "p99.9\nms", "peak\nconns", "most\nlag", "95 %\ninterval")


@dataclass(frozen=True)
class CellTable:
    """A table with one row per cell; `has` says whether a cell is in it, `needs` whether a run has it at all, `fits`
    whether it drops columns where it is too wide."""

    first: str | Callable[[RunSummary], str] = "pipeline"
    name: Callable[[CellSummary, RunSummary], str] = lambda cell, _: cell.label
    has: Callable[[CellSummary], object] = lambda _: True
    needs: Callable[[RunSummary], object] = lambda _: True
    caption: str = ""
    fits: bool = False


def _marked(cell: CellSummary, summary: RunSummary) -> str:
    return folded(marked_name(cell, summary), _LONGEST_NAME)


TABLES = {
    CELLS: CellTable(name=lambda cell, _: folded(cell.label, _LONGEST_NAME), has=lambda cell: cell.rescale is None),
    LOADS: CellTable(fits=True),
    RESCALES: CellTable("rescale", has=lambda cell: cell.rescale is not None, fits=True),
    RECOVERIES: CellTable(),
    STATUS: CellTable(),
    READS: CellTable(needs=known("reads_per_second")),
    CHANGES: CellTable("changes", _marked, lambda cell: cell.bloat or find(cell, "audit.stale") is not None),
    POOLS: CellTable("pooler", _marked, lambda cell: cell.pool is not None),
    DURABILITY: CellTable("durability", _marked, needs=known("durability")),
    RESOURCES: CellTable(
        "memory and disk",
        _marked,
        needs=known("peak_memory", "disk_bytes_per_record", "fetched_bytes_per_record"),
        caption="All bytes are for each record.",
    ),
    COSTS: CellTable(
        lambda run: f"cost in {find(run, 'prices.currency')}", _marked, needs=lambda run: run.prices is not None
    ),
}


def cell_table(key: str, summary: RunSummary, width: int = 140) -> Table | None:
    """The table of that name; None if the run has no data for it."""
    kind = TABLES[key]
    cells = [cell for cell in summary.cells if kind.has(cell)]
    if not cells or not kind.needs(summary):
        return None
    names, columns = [kind.name(cell, summary) for cell in cells], columns_of(key, summary)
    table = _table(kind, summary, names, columns, cells)
    if kind.fits and width_of(table) > width:
        names = [name.replace("/", "/\n", 1) for name in names]
        texts = {column.head: {column.text(cell, summary) for cell in cells} for column in columns}
        empty = [head for head, found in texts.items() if found == {NOT_MEASURED}]
        spare = [head for head in _SPARE if head not in _IF_ALIKE or len(texts.get(head, "")) == 1]
        for dropped in ("", *empty, *spare):
            columns = [column for column in columns if column.head != dropped]
            table = _table(kind, summary, names, columns, cells)
            if width_of(table) <= width:
                break
    if kind.caption:
        table.caption, table.caption_justify = Text(kind.caption), "left"
    return table


def _table(
    kind: CellTable, run: RunSummary, names: Sequence[str], columns: Sequence[Column], cells: Sequence[CellSummary]
) -> Table:
    rows = [(name, *(column.text(cell, run) for column in columns)) for name, cell in zip(names, cells, strict=True)]
    # As a Text, since rich would take brackets in a user's currency as markup.
    first = kind.first if isinstance(kind.first, str) else Text(kind.first(run))
    return new_table(first, *(_rich(column, run) for column in columns), rows=rows)


def columns_of(key: str, summary: RunSummary) -> Sequence[Column]:
    """The columns that a run shows of a table, from left to right."""
    found = [column for metric in METRICS for column in metric.columns if column.table == key and column.shown(summary)]
    return sorted(found, key=lambda column: column.place)


def cpu_table(summary: RunSummary) -> Table | None:
    """CPU seconds per million records by service, and what JIT and GC took of them; None if not measured."""
    cells = [(cell, cpu_by_service(cell)) for cell in summary.cells]
    most = {name: max(found.get(name, 0.0) for _, found in cells) for _, each in cells for name in each}
    names = sorted(most, key=lambda name: (-most[name], name))
    if not names:
        return None
    shares = [column for column in columns_of(CELLS, summary) if column.head in ("JIT", "GC")]
    rows = []
    for cell, found in cells:
        total = find(cell, "total_cpu_seconds_per_million.median")
        texts = map(seconds_each, (total, *(found.get(name) for name in names)))
        rows.append((marked_name(cell, summary), *texts, *(column.text(cell, summary) for column in shares)))
    return new_table("CPU s per million", "all", *names, *(str(column.head) for column in shares), rows=rows)


def required_table(summary: RunSummary, rate: float) -> Table:
    """What each cell has beyond a required rate, in records per second, and what it takes at that rate."""
    rows = []
    medians = [None if cell.mode in ("sustain", "faults") else usable_median(cell) for cell in summary.cells]
    for cell, median in sorted(zip(summary.cells, medians, strict=True), key=lambda each: -(each[1] or 0)):
        figures = ("total_cpu_seconds_per_million", "disk_bytes_per_record")
        cpu, disk = (find(cell, f"{figure}.median") for figure in figures)
        headroom = NOT_MEASURED if median is None else f"{median / rate:.2f} times" if median >= rate else "TOO SLOW"
        cores = tenths(None if cpu is None else cpu * rate / 1e6)
        gigabytes = tenths(None if disk is None else disk * rate * 86_400 / 1e9, 99.5)
        rows.append((marked_name(cell, summary), whole(median), headroom, cores, gigabytes))
    return new_table("pipeline", "records/s", "headroom", "cores at\nthat rate", "disk GB\na day", rows=rows)


def cpu_by_service(cell: CellSummary) -> dict[str, float]:
    """CPU seconds per million records of each service that was seen, all load generators as one."""
    known = ((name, seconds) for name, seconds in cell.cpu_seconds_per_million.items() if seconds is not None)
    return {name: seconds or 0.0 for name, seconds in by_service(known).items()}


def _rich(column: Column, summary: RunSummary) -> str | RichColumn:
    head = column.head if isinstance(column.head, str) else column.head(summary)
    if column.kind == "list":
        return RichColumn(head, overflow="fold", min_width=14 if column.table == CELLS else 11)
    return words(head) if column.kind == "words" else head
