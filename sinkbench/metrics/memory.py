"""The most memory that services used in a trial, and the size of a stored record on disk and from Kafka."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

from sinkbench.analysis.intervals import spread_of
from sinkbench.analysis.rates import median_known
from sinkbench.analysis.samples import FEWEST_FOR_DISK, memory_peaks, total_memory_peak
from sinkbench.analysis.words import NOT_MEASURED, megabytes
from sinkbench.metrics.metric import ByService, Column, Fields, Metric, Seen, bounds, column, number, over
from sinkbench.metrics.names import SHORT_NAMES
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, JvmCpu, Memory, RunSummary

_LEAST_BYTES = 5e5
_Figures = TypeVar("_Figures", JvmCpu, Memory)


def by_service(figures: type[_Figures], trials: Sequence[Mapping[str, _Figures]]) -> dict[str, _Figures]:
    seen = {name: [each[name] for each in trials if name in each] for name in dict.fromkeys(chain(*trials))}
    return {
        name: figures(**{field: median_known(getattr(each, field) for each in found) for field in figures.model_fields})
        for name, found in seen.items()
    }


def _megabytes(field: str, cell: CellSummary, _: RunSummary) -> str:
    """As `connect:2,897 es:1,200`, largest first, without zeros."""
    services = _of_services(field, cell).items()
    known = sorted((-value, name) for name, value in services if value is not None and value >= _LEAST_BYTES)
    return " ".join(f"{SHORT_NAMES.get(name, name)}:{megabytes(-less)}" for less, name in known) or NOT_MEASURED


RESOURCES = "resources"


def _of_cell(taken: Taken) -> Fields:
    return {
        "peak_memory": by_service(Memory, [trial.peak_memory for trial in taken.used]),
        "total_peak_memory_bytes": taken.spread(trial.total_peak_memory_bytes for trial in taken.used),
    }


def _of_services(field: str, cell: CellSummary) -> dict[str, float | None]:
    return {name: getattr(each, field) for name, each in cell.peak_memory.items()}


def _disk(taken: Taken) -> Fields:
    """Over the trials that had enough records: others of the cell take nothing from them."""
    enough = {each.block: each.disk_bytes_per_record for each in taken.used if each.records >= FEWEST_FOR_DISK}
    return {"disk_bytes_per_record": spread_of({block: size for block, size in enough.items() if size is not None})}


def _fetched(seen: Seen) -> Fields:
    fetched = seen.task_metrics.get("tasks_fetched_bytes_total") if seen.read_all else None
    return {"fetched_bytes_per_record": None if fetched is None else round(fetched / seen.records, 1)}


METRICS = (
    Metric(
        "Peak memory",
        of_trial=lambda seen: {
            "peak_memory": memory_peaks(seen.samples, seen.path),
            "total_peak_memory_bytes": total_memory_peak(seen.samples, seen.path),
        },
        of_cell=_of_cell,
        columns=[
            column(RESOURCES, 10, "tasks", "tasks", str),
            column(RESOURCES, 20, "peak\nMB", "total_peak_memory_bytes.median", megabytes),
            Column(RESOURCES, 30, "MB by\nservice", partial(_megabytes, "resident_bytes"), "list"),
        ],
        heads=["A peak MB", "B peak MB"],
        place=80,
        exports=[
            number("total_peak_memory_bytes", "total_peak_memory_bytes.median"),
            *bounds("total_peak_memory_bytes", lambda cell, _: cell.total_peak_memory_bytes),
        ],
        services=[ByService("peak_memory_bytes", partial(_of_services, "resident_bytes"))],
    ),
    Metric(
        "Peak heap",
        columns=[Column(RESOURCES, 40, "heap\nMB", partial(_megabytes, "heap_bytes"), "list")],
        services=[ByService("peak_heap_bytes", partial(_of_services, "heap_bytes"))],
    ),
    Metric(
        "Bytes on disk",
        of_trial=lambda seen: {
            "disk_bytes_per_record": seen.disk_bytes_per_record if seen.records >= FEWEST_FOR_DISK else None
        },
        of_cell=_disk,
        columns=[column(RESOURCES, 50, "bytes\non disk", "disk_bytes_per_record.median")],
        heads=["A bytes/record", "B bytes/record"],
        place=90,
        exports=[number("disk_bytes_per_record", "disk_bytes_per_record.median")],
    ),
    Metric(
        "Bytes from Kafka",
        of_trial=_fetched,
        of_cell=over(median_known, "fetched_bytes_per_record"),
        columns=[column(RESOURCES, 60, "bytes\nfrom\nKafka", "fetched_bytes_per_record", always=False)],
        place=100,
        exports=[number("fetched_bytes_per_record")],
    ),
)
