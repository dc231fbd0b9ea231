"""The time from when a record was due to when it was stored, and when it could be found."""

from __future__ import annotations

from sinkbench.analysis.latency import merged
from sinkbench.metrics.connections import LOADS
from sinkbench.metrics.format import milliseconds
from sinkbench.metrics.metric import Column, Metric, find, number, over

_HEADS = {"p50": "latency\np50 ms", "p95": "p95\nms", "p99": "p99\nms", "p999": "p99.9\nms"}


def _column(place: int, quantile: str, head: str) -> Column:
    return Column(LOADS, place, head, lambda cell, _: milliseconds(find(cell, f"latency_ms.{quantile}")))


METRICS = (
    Metric(
        "Latency",
        "The time from when a record was due until it was stored.",
        of_cell=over(merged, "latency_ms", of="valid"),
        columns=[_column(50 + place, *each) for place, each in enumerate(_HEADS.items())],
        place=230,
        exports=[number(f"latency_{name}_ms", f"latency_ms.{name}") for name in _HEADS],
    ),
    Metric(
        "Time until found",
        "The time from when a record was due until a search finds it.",
        of_cell=over(merged, "searchable_ms", of="valid"),
        columns=[
            Column(
                LOADS,
                60,
                "found\np99 ms",
                lambda cell, _: milliseconds(find(cell, "searchable_ms.p99")),
                shown=lambda view: view.any(lambda cell: cell.searchable_ms is not None),
            )
        ],
        place=240,
        exports=[number("searchable_p99_ms", "searchable_ms.p99")],
    ),
)
