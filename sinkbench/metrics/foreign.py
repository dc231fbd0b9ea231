"""CPU time outside the pipeline: other programs, other machines, and sinkbench itself."""

from __future__ import annotations

from sinkbench.analysis.rates import most
from sinkbench.analysis.samples import MUCH_FOREIGN, foreign_cores, monitoring_overhead_cores
from sinkbench.metrics.metric import Fields, Metric, number, over
from sinkbench.metrics.seen import Seen, rounded
from sinkbench.results import CellSummary, RunSummary

_NAMES = ("foreign_cores", "stolen_cores", "monitoring_overhead_cores")


def much_foreign(cell: CellSummary, summary: RunSummary) -> float | None:
    """Cores used by others during a cell, if above `MUCH_FOREIGN` of the machine; else None."""
    cores = summary.environment.get("cpu_count")
    if cell.foreign_cores is None or not isinstance(cores, int | float) or not cores:
        return None
    return cell.foreign_cores if cell.foreign_cores > MUCH_FOREIGN * cores else None


def _of_trial(seen: Seen) -> Fields:
    if not seen.drained:
        return {}
    foreign, stolen = foreign_cores(seen.samples, seen.records) or (None, None)
    overhead = monitoring_overhead_cores(seen.samples, seen.records)
    return dict(zip(_NAMES, (rounded(foreign), rounded(stolen), rounded(overhead, 4)), strict=True))


METRICS = (
    Metric(
        "Foreign load",
        of_trial=_of_trial,
        of_cell=over(most, *_NAMES, of="valid"),
        place=120,
        exports=[*map(number, _NAMES)],
    ),
)
