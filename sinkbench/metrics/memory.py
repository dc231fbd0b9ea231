"""The most memory that services used in a trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from sinkbench.analysis.rates import median_known
from sinkbench.analysis.samples import memory_peaks, total_memory_peak
from sinkbench.metrics.format import NOT_MEASURED, megabytes
from sinkbench.metrics.metric import ByService, Column, Fields, Metric, bounds, column, number
from sinkbench.metrics.names import SHORT_NAMES
from sinkbench.metrics.taken import Taken
from sinkbench.metrics.tasks import tasks
from sinkbench.results import CellSummary, JvmCpu, Memory

_LEAST_BYTES = 5e5
_Figures = TypeVar("_Figures", JvmCpu, Memory)


def by_service(figures: type[_Figures], trials: Sequence[Mapping[str, _Figures]]) -> dict[str, _Figures]:
    seen = {name: [each[name] for each in trials if name in each] for name in dict.fromkeys(chain(*trials))}
    return {
        name: figures(**{field: median_known(getattr(each, field) for each in found) for field in figures.model_fields})
        for name, found in seen.items()
    }


def megabytes_by_service(figures: Iterable[tuple[str, float | None]]) -> str:
    """As `connect:2,897 es:1,200`, largest first, without zeros."""
    known = sorted((-value, name) for name, value in figures if value is not None and value >= _LEAST_BYTES)
    return " ".join(f"{SHORT_NAMES.get(name, name)}:{megabytes(-less)}" for less, name in known) or NOT_MEASURED


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
            column(RESOURCES, 20, "peak\nMB", "total_peak_memory_bytes.median", megabytes),
            Column(
                RESOURCES,
                30,
                "MB by\nservice",
                lambda cell, _: megabytes_by_service(_resident(cell).items()),
                "list",
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
            )
        ],
        services=[ByService("peak_heap_bytes", _heaps)],
    ),
)
