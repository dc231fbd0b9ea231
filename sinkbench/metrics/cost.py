"""The cost of a cell's records, from its use of cores, memory and disk, and the user's prices."""

from sinkbench.analysis.rates import usable_median
from sinkbench.analysis.words import money
from sinkbench.metrics.metric import Export, Metric, column, find, number
from sinkbench.results import CellSummary, Cost, Prices, RunSummary

COSTS = "costs"
_HOUR_SECONDS = 3_600.0


def with_prices(summary: RunSummary, prices: Prices | None) -> RunSummary:
    """A stored run with other prices, or without costs."""
    costs = [None if prices is None else cost_of(cell, prices) for cell in summary.cells]
    cells = [cell.model_copy(update={"cost": cost}) for cell, cost in zip(summary.cells, costs, strict=True)]
    return summary.model_copy(update={"prices": prices, "cells": cells})


def cost_of(cell: CellSummary, prices: Prices) -> Cost | None:
    """The cost of a million records, in the currency of the prices; None for a cell that did not pass, was re-scaled,
    or has no quotable rate.

        cpu    = core_hour x CPU seconds of all services for a million records / 3600
        memory = memory_gb_hour x peak memory in bytes / 10^9 x (10^6 / records per second) / 3600
        disk   = disk_gb_month x bytes on disk of a million records / 10^9 x kept_months

    Each figure is the cell's median; the sum is of the parts with a price, None if one was not measured."""
    rate = usable_median(cell)
    if not cell.passed or cell.rescale is not None or not rate:
        return None
    hours = 1e6 / rate / _HOUR_SECONDS
    asked = [
        (prices.core_hour, find(cell, "total_cpu_seconds_per_million.median"), 1 / _HOUR_SECONDS),
        (prices.memory_gb_hour, find(cell, "total_peak_memory_bytes.median"), hours / 1e9),
        (prices.disk_gb_month, find(cell, "disk_bytes_per_record.median"), 1e-3 * prices.kept_months),
    ]
    parts = [None if price is None or figure is None else price * figure * factor for price, figure, factor in asked]
    priced = [part for (price, *_), part in zip(asked, parts, strict=True) if price is not None]
    total = sum(part for part in priced if part is not None) if priced and None not in priced else None
    return Cost(per_million=total, cpu=parts[0], memory=parts[1], disk=parts[2])


METRICS = (
    Metric(
        "Cost per million records",
        columns=[
            column(COSTS, 10, "tasks", "tasks", str),
            column(COSTS, 20, "per million\nrecords", "cost.per_million", money),
            column(COSTS, 30, "for\ncores", "cost.cpu", money),
            column(COSTS, 40, "for\nmemory", "cost.memory", money),
            column(COSTS, 50, "for\ndisk", "cost.disk", money),
        ],
        place=110,
        exports=[
            Export("currency", "VARCHAR", lambda _, run: find(run, "prices.currency")),
            number("cost_per_million", "cost.per_million"),
            *(number(f"{name}_cost_per_million", f"cost.{name}") for name in ("cpu", "memory", "disk")),
        ],
    ),
)
