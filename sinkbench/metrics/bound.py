"""How much a pipeline can gain by its CPU time, if all services share the same cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from sinkbench.analysis.limits import fastest
from sinkbench.analysis.rates import usable_median
from sinkbench.analysis.samples import CONTROLLER
from sinkbench.results import CellSummary, RunSummary

_MILLION = 1e6
# The drivers that run all services on one machine.
_SHARED = ("local", "compose")


@dataclass(frozen=True)
class Bound:
    """The upper bound of a cell's efficiency on shared cores; CPU times are seconds per million records.

    Attributes:
        share: the efficiency it cannot exceed: `cpu_bound`, or `efficiency` if higher; above 1 the limit comes first.
        cores_cpu: what all cores provide at the limit's rate.
        limit_cpu: what the limit used; None if unknown. Not part of the bound.
        dearest, dearest_cpu: the service that used most.
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
        """The share of the limit that remains, by what CPU time and limit allow; at least 0."""
        return max(0.0, min(self.share, 1.0) - self.efficiency)


def cpu_bound(cores_cpu: float, pipeline_cpu: float) -> float | None:
    """The share of a limit's rate R that a pipeline cannot exceed on shared cores; None if one of the two is 0.

    C cores give C CPU seconds per second, so a pipeline that uses P of them (`pipeline_cpu`) per million records stores
    at most C / P million records per second: the utilization law, U = X D, at U = C (Denning and Buzen 1978, "The
    operational analysis of queueing network models"). The share is (C / R) / P; `cores_cpu` is C / R.
    """
    return cores_cpu / pipeline_cpu if cores_cpu and pipeline_cpu else None


def bound_of(cell: CellSummary, summary: RunSummary) -> Bound | None:
    """The bound of a cell's efficiency; None if it did not pass, was re-scaled (its rate and CPU time cover different
    times), lacks a figure, or services may run on several machines.

    CPU time covers 10 % to 90 % of the records, the rate the time after the warm-up, and both are medians over blocks.
    So a pipeline that uses all cores may come out slightly above the bound; then what it reached is the bound.
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
    """The cores that all services share; None if there may be several machines, or the number is unknown."""
    cores, container = environment.get("cpu_count"), environment.get("container")
    if environment.get("stack") not in _SHARED or not isinstance(cores, int | float) or cores <= 0:
        return None
    # On the local stack the services run in the controller's container, if there is one.
    allowed = container.get("cpus") if isinstance(container, dict) and environment["stack"] == "local" else None
    return float(min(cores, allowed)) if isinstance(allowed, int | float) and allowed > 0 else float(cores)


def _limit_cpu(summary: RunSummary, sink: str) -> float | None:
    """The CPU seconds of a sink's fastest limit, clients included; None if a process could not be read."""
    limit = fastest(summary.limits, sink)
    taken = {} if limit is None else limit.cpu_seconds_per_million
    # Without sinkbench itself, as in the pipelines' sums.
    used = [seconds for name, seconds in taken.items() if name != CONTROLLER]
    return sum(seconds for seconds in used if seconds is not None) if used and None not in used else None


def _services(cell: CellSummary) -> dict[str, float]:
    used = cell.cpu_seconds_per_million.items()
    return {name: seconds for name, seconds in used if seconds is not None and name != CONTROLLER}
