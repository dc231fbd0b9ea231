"""The time from when a record was due to when it was stored, and when it could be found."""

from __future__ import annotations

from sinkbench.analysis.latency import merged
from sinkbench.metrics.connections import LOADS
from sinkbench.metrics.format import milliseconds
from sinkbench.metrics.metric import Metric, column, number, over

_HEADS = {"p50": "latency\np50 ms", "p95": "p95\nms", "p99": "p99\nms", "p999": "p99.9\nms"}


METRICS = (
    Metric(
        "Latency",
        "The time from when a record was due until it was stored.",
        of_cell=over(merged, "latency_ms", of="valid"),
        columns=[
            column(LOADS, 50 + place, head, f"latency_ms.{name}", milliseconds)
            for place, (name, head) in enumerate(_HEADS.items())
        ],
        place=230,
        exports=[number(f"latency_{name}_ms", f"latency_ms.{name}") for name in _HEADS],
    ),
    Metric(
        "Time until found",
        "The time from when a record was due until a search finds it.",
        of_cell=over(merged, "searchable_ms", of="valid"),
        columns=[
            column(LOADS, 60, "found\np99 ms", "searchable_ms.p99", milliseconds, always=False),
        ],
        place=240,
        exports=[number("searchable_p99_ms", "searchable_ms.p99")],
    ),
)
