"""CPU time that is no pipeline's: of other programs, of other machines, and of sinkbench itself."""

from __future__ import annotations

from sinkbench.analysis.rates import most
from sinkbench.analysis.samples import MUCH_FOREIGN
from sinkbench.metrics.metric import Metric, number, over
from sinkbench.results import CellSummary, RunSummary

_NAMES = ("foreign_cores", "stolen_cores", "monitoring_overhead_cores")


def much_foreign(cell: CellSummary, summary: RunSummary) -> float | None:
    """Cores that others took during a cell, if that is more than `MUCH_FOREIGN` of the machine; else None."""
    cores = summary.environment.get("cpu_count")
    if cell.foreign_cores is None or not isinstance(cores, int | float) or not cores:
        return None
    return cell.foreign_cores if cell.foreign_cores > MUCH_FOREIGN * cores else None


METRICS = (Metric("Foreign load", of_cell=over(most, *_NAMES), place=120, exports=[*map(number, _NAMES)]),)
