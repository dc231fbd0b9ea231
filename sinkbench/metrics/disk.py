"""The size of a stored record on the sink's disk, and the part of it that came from Kafka."""

from __future__ import annotations

from sinkbench.analysis.rates import median_known
from sinkbench.metrics.format import whole
from sinkbench.metrics.memory import RESOURCES
from sinkbench.metrics.metric import Column, Fields, Metric, find, number, over
from sinkbench.metrics.seen import Seen


def _fetched(seen: Seen) -> Fields:
    fetched = seen.task_metrics.get("tasks_fetched_bytes_total") if seen.read_all else None
    return {"fetched_bytes_per_record": None if fetched is None else round(fetched / seen.records, 1)}


METRICS = (
    Metric(
        "Bytes on disk",
        "What the index or table takes on the sink's disk after a flush, per stored record.",
        of_trial=lambda seen: {"disk_bytes_per_record": seen.disk_bytes_per_record},
        of_cell=lambda taken: {"disk_bytes_per_record": taken.spread(t.disk_bytes_per_record for t in taken.used)},
        columns=[
            Column(RESOURCES, 50, "bytes\non disk", lambda cell, _: whole(find(cell, "disk_bytes_per_record.median")))
        ],
        heads=["A bytes/record", "B bytes/record"],
        place=90,
        exports=[number("disk_bytes_per_record", "disk_bytes_per_record.median")],
    ),
    Metric(
        "Bytes from Kafka",
        "What the tasks' consumers received from Kafka, per record.",
        of_trial=_fetched,
        of_cell=over(median_known, "fetched_bytes_per_record"),
        columns=[
            Column(
                RESOURCES,
                60,
                "bytes\nfrom\nKafka",
                lambda cell, _: whole(cell.fetched_bytes_per_record),
                shown=lambda view: view.any(lambda cell: cell.fetched_bytes_per_record is not None),
            )
        ],
        place=100,
        exports=[number("fetched_bytes_per_record")],
    ),
)
