"""The prices used for costs, in words."""

from __future__ import annotations

from sinkbench.metrics.names import cell_name
from sinkbench.results import RunSummary


def price_lines(summary: RunSummary) -> list[str]:
    """The prices used for costs, in a line, and why cells have no cost; empty for a run without prices."""
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


def _unpriced(summary: RunSummary) -> list[str]:
    names = [cell_name(cell, summary) for cell in summary.cells if cell.cost is None or cell.cost.per_million is None]
    if not names:
        return []
    why = "the cell did not pass, its rate may not be quoted, its tasks changed, or a figure was not measured"
    return [f"No cost, since {why}: {', '.join(names)}."]
