"""What a cell's records cost, from what it takes of cores, memory and disk, and from a user's prices."""

from __future__ import annotations

from sinkbench.analysis.rates import usable_rate
from sinkbench.results import CellSummary, Cost, Prices, RunSummary, Spread

__all__ = ["cost_of", "with_prices"]

_HOUR_SECONDS = 3_600.0
_MILLION = 1e6
_GB = 1e9


def with_prices(summary: RunSummary, prices: Prices | None) -> RunSummary:
    """The run with the cost of each of its cells by these prices; without any cost if there are none."""
    costs = [None if prices is None else cost_of(cell, prices) for cell in summary.cells]
    cells = [cell.model_copy(update={"cost": cost}) for cell, cost in zip(summary.cells, costs, strict=True)]
    return summary.model_copy(update={"prices": prices, "cells": cells})


def cost_of(cell: CellSummary, prices: Prices) -> Cost | None:
    """The cost of a million records of a cell, in the currency of the prices.

        cpu    = core_hour x CPU seconds of all services for a million records / 3600
        memory = memory_gb_hour x peak memory in bytes / 10^9 x seconds for a million records / 3600
        disk   = disk_gb_month x bytes on disk of a million records / 10^9 x kept_months

    where the seconds for a million records are 10^6 / (records per second), and each figure is the median of the cell's
    trials. The cost is the sum of the parts that have a price.

    Returns:
        None of a cell that did not pass, or whose rate may not be quoted; nor has a re-scaled cell a cost, whose rate
        is that after the change and whose CPU time that of the whole drain. A part without a price, or whose figure was
        not measured, is None; so is the sum if a part that has a price is.
    """
    rate = usable_rate(cell)
    if not cell.passed or cell.rescale is not None or rate is None or not rate.median:
        return None
    hours = _MILLION / rate.median / _HOUR_SECONDS
    cpu = _of(prices.core_hour, cell.total_cpu_seconds_per_million, 1 / _HOUR_SECONDS)
    memory = _of(prices.memory_gb_hour, cell.total_peak_memory_bytes, hours / _GB)
    disk = _of(prices.disk_gb_month, cell.disk_bytes_per_record, _MILLION / _GB * prices.kept_months)
    asked = [
        (prices.core_hour, cpu),
        (prices.memory_gb_hour, memory),
        (prices.disk_gb_month, disk),
    ]
    parts = [part for price, part in asked if price is not None]
    known = [part for part in parts if part is not None]
    total = sum(known) if known and len(known) == len(parts) else None
    return Cost(per_million=total, cpu=cpu, memory=memory, disk=disk)


def _of(price: float | None, figure: Spread | None, factor: float) -> float | None:
    return None if price is None or figure is None else price * figure.median * factor
