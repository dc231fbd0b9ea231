"""What the cells of a run take besides CPU time: memory, disk and network, and what that costs, as tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rich.table import Column, Table
from rich.text import Text

from sinkbench.results import CellSummary, RunSummary, Spread
from sinkbench.tables.answers import cell_name
from sinkbench.tables.columns import SHORT_NAMES, in_short
from sinkbench.tables.format import NOT_MEASURED, megabytes, money, whole
from sinkbench.tables.text import new_table

__all__ = ["cost_table", "marked_name", "price_lines", "resource_table"]

_WHOLE_WIDTH = 100
_LONGEST_NAME = 32
_LEAST_BYTES = 5e5


def resource_table(summary: RunSummary, width: int = 140) -> Table | None:
    """One row a cell with what it took of memory and disk; None if nothing of it was measured.

    Below 100 columns of `width` it has no figures by service. A cell whose figures may not be compared says so.
    """
    if not any(map(_took, summary.cells)):
        return None
    roomy = width >= _WHOLE_WIDTH
    fetched = any(cell.fetched_bytes_per_record is not None for cell in summary.cells)
    table = new_table(
        "memory and disk",
        *("tasks", "peak\nMB"),
        *([_folded("MB by\nservice"), _folded("heap\nMB")] if roomy else []),
        "bytes\non disk",
        *(["bytes\nfrom\nKafka"] if fetched else []),
    )
    table.caption = Text("All bytes are for each record.")
    table.caption_justify = "left"
    for cell in summary.cells:
        row = [
            _folded_name(marked_name(cell, summary)),
            f"{cell.tasks}",
            megabytes(median_of(cell.total_peak_memory_bytes)),
            *([_resident(cell), _heaps(cell)] if roomy else []),
            whole(median_of(cell.disk_bytes_per_record)),
            *([whole(cell.fetched_bytes_per_record)] if fetched else []),
        ]
        table.add_row(*map(Text, row))
    return table


def cost_table(summary: RunSummary) -> Table | None:
    """One row a cell with the cost of a million records and its parts; None of a run without prices."""
    prices = summary.prices
    if prices is None:
        return None
    table = new_table("", "tasks", "per million\nrecords", "for\ncores", "for\nmemory", "for\ndisk")
    # As a Text, since rich would take brackets in a user's currency as markup.
    table.columns[0].header = Text(f"cost in {prices.currency}")
    for cell in summary.cells:
        cost = cell.cost
        parts = (None,) * 4 if cost is None else (cost.per_million, cost.cpu, cost.memory, cost.disk)
        table.add_row(*map(Text, (_folded_name(cell_name(cell, summary)), f"{cell.tasks}", *map(money, parts))))
    return table


def price_lines(summary: RunSummary) -> list[str]:
    """The prices that the costs are made of, in a line, and why cells have no cost; none of a run without prices."""
    prices = summary.prices
    if prices is None:
        return []
    months = "1 month" if prices.kept_months == 1 else f"{prices.kept_months:g} months"
    said = {
        "cores": (prices.core_hour, "a core-hour"),
        "memory": (prices.memory_gb_hour, "a GB-hour of memory"),
        "disk": (prices.disk_gb_month, f"a GB-month of disk, on which records are kept for {months}"),
    }
    given = ", ".join(f"{price:g} {prices.currency} {what}" for price, what in said.values() if price is not None)
    missing = [part for part, (price, _) in said.items() if price is None]
    left_out = f"; {' and '.join(missing)} in no cost" if missing else ""
    return [f"Prices: {given}{left_out}.", *_unpriced(summary)]


def marked_name(cell: CellSummary, summary: RunSummary) -> str:
    """A cell's name, and in brackets why its figures may not be compared."""
    if cell.passed and cell.at_least is None:
        return cell_name(cell, summary)
    word = in_short(cell.model_copy(update={"notes": []})).replace("\n", ", ")
    return f"{cell_name(cell, summary)} ({word})"


def _unpriced(summary: RunSummary) -> list[str]:
    """Which cells have no cost although there are prices, in a line."""
    names = [cell_name(cell, summary) for cell in summary.cells if cell.cost is None or cell.cost.per_million is None]
    if not names:
        return []
    why = "the cell did not pass, its rate may not be quoted, its tasks changed, or a figure was not measured"
    return [f"No cost, since {why}: {', '.join(names)}."]


def _took(cell: CellSummary) -> bool:
    figures = (cell.total_peak_memory_bytes, cell.disk_bytes_per_record, cell.fetched_bytes_per_record)
    return bool(cell.peak_memory) or any(each is not None for each in figures)


def _folded(header: str) -> Column:
    return Column(header, overflow="fold", min_width=11)


def _folded_name(name: str) -> str:
    """A name on as many lines as it needs, since rich would cut it off in a narrow table."""
    return "\n".join(textwrap.wrap(name, _LONGEST_NAME, break_on_hyphens=False)) or name


def median_of(figure: Spread | None) -> float | None:
    """The median of a figure, if there is one."""
    return None if figure is None else figure.median


def _resident(cell: CellSummary) -> str:
    """What each service held, the most first, as far as it is not 0."""
    return _named((name, each.resident_bytes) for name, each in cell.peak_memory.items())


def _heaps(cell: CellSummary) -> str:
    return _named((name, each.heap_bytes) for name, each in cell.peak_memory.items())


def _named(figures: Iterable[tuple[str, float | None]]) -> str:
    known = sorted((-value, name) for name, value in figures if value is not None and value >= _LEAST_BYTES)
    return " ".join(f"{SHORT_NAMES.get(name, name)}:{megabytes(-less)}" for less, name in known) or NOT_MEASURED
