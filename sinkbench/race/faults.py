"""Whether the faults of a plan can be done on a stack, before anything is started."""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.errors import PlanError
from sinkbench.plan.cells import Cell
from sinkbench.plan.faults import OF_SERVICES, REFUSE, SINK, PlanFault
from sinkbench.plan.plan import Plan
from sinkbench.sinks import sink_kind
from sinkbench.stack import Stack

__all__ = ["check_faults"]


def check_faults(plan: Plan, cells: Sequence[Cell], stack: Stack) -> None:
    """Makes sure that each cell's fault can be done. No service is asked.

    Raises:
        PlanError: one cannot; names its line, the pipeline, and what can be done there.
    """
    for cell in cells:
        fault = cell.fault
        if fault is None:
            continue
        if fault.what == REFUSE and not sink_kind(cell.sink).refuses:
            raise PlanError(
                f"{_where(plan, fault)}: '{fault.name}': the sink {cell.sink} cannot be told to refuse records; name"
                f" under 'pipelines' those of other sinks"
            )
        if fault.what not in OF_SERVICES:
            continue
        if not stack.breakable:
            raise PlanError(
                f"{_where(plan, fault)}: '{fault.name}' cannot be done on stack {stack.name}, whose services belong to"
                " somebody else; only restart, pause, rename, join, refuse, poison and none can be"
            )
        services = [each.name for each in sink_kind(cell.sink).services]
        if fault.whom not in (None, "worker", "workers", "kafka", SINK) and fault.whom not in services:
            raise PlanError(
                f"{_where(plan, fault)}: '{fault.name}' would not touch {cell.label}, which does not write through"
                f" {fault.whom}; name under 'pipelines' those that do"
            )


def _where(plan: Plan, fault: PlanFault) -> str:
    return plan.where("faults", plan.faults.index(fault))
