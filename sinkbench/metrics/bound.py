"""What the CPU time of a pipeline leaves it to gain, where all services share the same cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from sinkbench.analysis.limits import fastest
from sinkbench.analysis.rates import usable_median
from sinkbench.analysis.samples import CONTROLLER
from sinkbench.results import CellSummary, RunSummary

_MILLION = 1e6
# The drivers that put all services on one machine.
_SHARED = ("local", "compose")


@dataclass(frozen=True)
class Bound:
    """What bounds the efficiency of a cell on shared cores; CPU times are seconds for a million records.

    Attributes:
        efficiency: the share of its sink's limit that the cell reached.
        share: `cpu_bound`, or `efficiency` where that is higher: the share that it cannot exceed; above 1 the limit
            itself comes first.
        cores_cpu: what all cores have to give at the limit's rate.
        limit_cpu: what the limit took of it; None if that is not known. It decides nothing.
        pipeline_cpu: what all services took together in the cell's trials.
        dearest, dearest_cpu: the service that took most of it.
    """

    efficiency: float
    share: float
    cores_cpu: float
    limit_cpu: float | None
    pipeline_cpu: float
    dearest: str
    dearest_cpu: float

    @property
    def left(self) -> float:
        """The share of the limit between what was reached and what CPU time and limit allow; at least 0."""
        return max(0.0, min(self.share, 1.0) - self.efficiency)


def cpu_bound(cores_cpu: float, pipeline_cpu: float) -> float | None:
    """The share of a limit's rate that a pipeline cannot exceed on the cores that all services share.

    C cores give C CPU seconds a second, so a pipeline that takes P of them for a million records stores at most C / P
    million records a second: the utilization law, U = X D, at U = C (Denning and Buzen 1978, "The operational analysis
    of queueing network models"). Divided by the limit's rate R that is (C / R) / P.

    Args:
        cores_cpu: C / R, the CPU seconds that all cores give while a million records are stored at the limit's rate.
        pipeline_cpu: P, those of all services of the pipeline together.

    Returns:
        That share, above 1 where the cores could carry more than the limit; None if one of the two is 0.
    """
    return cores_cpu / pipeline_cpu if cores_cpu and pipeline_cpu else None


def bound_of(cell: CellSummary, summary: RunSummary) -> Bound | None:
    """What bounds the efficiency of a cell of that run.

    What the limit itself takes of the cores decides nothing: a pipeline may fill cores that the limit left idle. The
    CPU time is that of 10 % to 90 % of the records and the rate that after the warm-up, and both are medians over
    blocks. So a pipeline that fills the cores may come out a little above; then what it has reached is the bound.

    Returns:
        None if the cell did not pass or has no efficiency, its CPU time or the number of cores is not known, or the
        services may have machines of their own. Nor has a re-scaled cell one: its rate is that after the change, its
        CPU time that of the whole drain.
    """
    cores, rate, efficiency = _shared_cores(summary.environment), cell.limit_records_per_second, cell.efficiency
    used, taken = cell.total_cpu_seconds_per_million, _services(cell)
    if not cell.passed or cell.rescale is not None or usable_median(cell) is None:
        return None
    if cores is None or not rate or efficiency is None or used is None or not taken:
        return None
    cores_cpu = cores * _MILLION / rate
    share = cpu_bound(cores_cpu, used.median)
    if share is None:
        return None
    dearest = max(taken, key=lambda name: taken[name])
    limit_cpu = _limit_cpu(summary, cell.sink)
    return Bound(efficiency, max(share, efficiency), cores_cpu, limit_cpu, used.median, dearest, taken[dearest])


def _shared_cores(environment: Mapping[str, JsonValue]) -> float | None:
    """The cores that all services share; None if they may have several machines, or it is not known."""
    cores, container = environment.get("cpu_count"), environment.get("container")
    if environment.get("stack") not in _SHARED or not isinstance(cores, int | float) or cores <= 0:
        return None
    # On the local stack the services are in the controller's container, if it is in one.
    allowed = container.get("cpus") if isinstance(container, dict) and environment["stack"] == "local" else None
    return float(min(cores, allowed)) if isinstance(allowed, int | float) and allowed > 0 else float(cores)


def _limit_cpu(summary: RunSummary, sink: str) -> float | None:
    """The CPU seconds of a sink's fastest limit, clients included; None if those of one process are not known."""
    limit = fastest(summary.limits, sink)
    taken = {} if limit is None else limit.cpu_seconds_per_million
    # As in the pipelines' sums, sinkbench itself is not in it.
    used = [seconds for name, seconds in taken.items() if name != CONTROLLER]
    return sum(seconds for seconds in used if seconds is not None) if used and None not in used else None


def _services(cell: CellSummary) -> dict[str, float]:
    used = cell.cpu_seconds_per_million.items()
    return {name: seconds for name, seconds in used if seconds is not None and name != CONTROLLER}
