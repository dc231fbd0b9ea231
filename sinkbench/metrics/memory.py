"""The most memory that services used in a trial."""

from __future__ import annotations

from sinkbench.analysis.memory import memory_peaks, total_memory_peak
from sinkbench.metrics.format import megabytes
from sinkbench.metrics.metric import ROOMY, ByService, Column, Fields, Metric, bounds, find, number
from sinkbench.metrics.services import by_service, megabytes_by_service
from sinkbench.metrics.taken import Taken
from sinkbench.metrics.tasks import tasks
from sinkbench.results import CellSummary, Memory

RESOURCES = "resources"


def _of_cell(taken: Taken) -> Fields:
    return {
        "peak_memory": by_service(Memory, [trial.peak_memory for trial in taken.used]),
        "total_peak_memory_bytes": taken.spread(trial.total_peak_memory_bytes for trial in taken.used),
    }


def _resident(cell: CellSummary) -> dict[str, float | None]:
    return {name: each.resident_bytes for name, each in cell.peak_memory.items()}


def _heaps(cell: CellSummary) -> dict[str, float | None]:
    return {name: each.heap_bytes for name, each in cell.peak_memory.items()}


METRICS = (
    Metric(
        "Peak memory",
        "The most memory that the services of a cell's path used together at one moment.",
        of_trial=lambda seen: {
            "peak_memory": memory_peaks(seen.samples, seen.path),
            "total_peak_memory_bytes": total_memory_peak(seen.samples, seen.path),
        },
        of_cell=_of_cell,
        columns=[
            Column(RESOURCES, 10, "tasks", tasks),
            Column(RESOURCES, 20, "peak\nMB", lambda cell, _: megabytes(find(cell, "total_peak_memory_bytes.median"))),
            Column(
                RESOURCES,
                30,
                "MB by\nservice",
                lambda cell, _: megabytes_by_service(_resident(cell).items()),
                "list",
                lambda view: view.width >= ROOMY,
            ),
        ],
        heads=["A peak MB", "B peak MB"],
        place=80,
        exports=[
            number("total_peak_memory_bytes", "total_peak_memory_bytes.median"),
            *bounds("total_peak_memory_bytes", lambda cell, _: cell.total_peak_memory_bytes),
        ],
        services=[ByService("peak_memory_bytes", _resident)],
    ),
    Metric(
        "Peak heap",
        "The most heap that the JVMs of a service used, with garbage not collected yet.",
        columns=[
            Column(
                RESOURCES,
                40,
                "heap\nMB",
                lambda cell, _: megabytes_by_service(_heaps(cell).items()),
                "list",
                lambda view: view.width >= ROOMY,
            )
        ],
        services=[ByService("peak_heap_bytes", _heaps)],
    ),
)
