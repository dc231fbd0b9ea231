"""The size of a stored record on the sink's disk, and the part of it that came from Kafka."""

from __future__ import annotations

from sinkbench.analysis.rates import median_known
from sinkbench.metrics.memory import RESOURCES
from sinkbench.metrics.metric import Fields, Metric, column, number, over
from sinkbench.metrics.seen import Seen
from sinkbench.metrics.taken import Taken

FEWEST_RECORDS = 100_000
"""Of fewer records the sink's preallocated files and unmerged segments are most of what it takes."""


def disk_bytes(taken: Taken) -> list[float | None]:
    """Of each trial that is used; None if it had too few records."""
    return [trial.disk_bytes_per_record if trial.records >= FEWEST_RECORDS else None for trial in taken.used]


def _fetched(seen: Seen) -> Fields:
    fetched = seen.task_metrics.get("tasks_fetched_bytes_total") if seen.read_all else None
    return {"fetched_bytes_per_record": None if fetched is None else round(fetched / seen.records, 1)}


METRICS = (
    Metric(
        "Bytes on disk",
        "What the index or table takes on the sink's disk after a flush, per stored record.",
        of_trial=lambda seen: {
            "disk_bytes_per_record": seen.disk_bytes_per_record if seen.records >= FEWEST_RECORDS else None
        },
        of_cell=lambda taken: {"disk_bytes_per_record": taken.spread(disk_bytes(taken))},
        columns=[column(RESOURCES, 50, "bytes\non disk", "disk_bytes_per_record.median")],
        heads=["A bytes/record", "B bytes/record"],
        place=90,
        exports=[number("disk_bytes_per_record", "disk_bytes_per_record.median")],
    ),
    Metric(
        "Bytes from Kafka",
        "What the tasks' consumers received from Kafka, per record.",
        of_trial=_fetched,
        of_cell=over(median_known, "fetched_bytes_per_record"),
        columns=[column(RESOURCES, 60, "bytes\nfrom\nKafka", "fetched_bytes_per_record", always=False)],
        place=100,
        exports=[number("fetched_bytes_per_record")],
    ),
)
