"""Checks that a stack supports the faults of a plan, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sinkbench.errors import PlanError, StackError
from sinkbench.plan.cells import Cell
from sinkbench.plan.faults import COMMAND, FILL, ISOLATE, OF_NETWORK, OF_SERVICES, PROMOTE, REFUSE, SINK, PlanFault
from sinkbench.plan.files import read_connector
from sinkbench.plan.plan import FaultsPlan, Plan
from sinkbench.sinks import SMALL_DISK, needed, sink_kind
from sinkbench.stack import Say, Stack
from sinkbench.suggest import did_you_mean
from sinkbench.topology import service_of
from sinkbench.trial.workload import proxy_targets_used

_OTHERS = "; name under 'pipelines' those of other sinks"
_ELSEWHERE = "restart, pause, rename, join, refuse, fill of some sinks, poison, command and none"


def check_faults(plan: Plan, cells: Sequence[Cell], stack: Stack, connectors: Path) -> None:
    """Raises PlanError, with line and pipeline, if the stack does not support a cell's fault. Uses no service."""
    for cell in cells:
        if (fault := cell.fault) is None:
            continue
        try:
            refusal = next(_refusals(cell, fault, stack, connectors), None)
        except StackError as error:
            refusal = str(error)
        if refusal is not None:
            faults = plan.faults if isinstance(plan, FaultsPlan) else (fault,)
            where = plan.where("faults", faults.index(fault))
            raise PlanError(f"{where}: '{fault.name}' cannot be done to {cell.label}: {refusal}")


def _refusals(cell: Cell, fault: PlanFault, stack: Stack, connectors: Path) -> Iterator[str]:
    """Yields why the stack does not support a fault. Raises StackError if something that it needs is missing."""
    kind, layout = sink_kind(cell.sink), stack.layout
    on = f"on stack {stack.name}{'' if layout is None else f' with the topology {layout.name}'}"
    if fault.what == REFUSE and fault.reason not in kind.refuses:
        how = f" so, only for: {', '.join(kind.refuses)}" if kind.refuses else ""
        yield f"the sink {cell.sink} cannot be set to refuse records{how}{_OTHERS}"
    if fault.what == REFUSE and fault.reason == "no connection" and stack.faults is None:
        yield f"it closes the connections of everybody {on}; only those of sinkbench's own services may be closed"
    if fault.what == FILL and kind.full_disk is None:
        yield f"the sink {cell.sink} has no disk to fill{_OTHERS}"
    if fault.what == FILL and kind.full_disk == SMALL_DISK:
        disks = None if stack.faults is None else stack.faults.small_disks(cell.sink)
        if disks is None:
            yield f"none is small {on}; race on the stack local with one node of {cell.sink}: SINKBENCH_TOPOLOGY=small"
        else:
            disks.check()
    if fault.what == PROMOTE and not any(service.roles for service in kind.services):
        yield f"the sink {cell.sink} has no replica that could be promoted{_OTHERS}"
    if fault.what == PROMOTE and (stack.faults is None or stack.faults.promotion(cell.sink) is None):
        yield f"no replica could be promoted {on}; race on the stack local with SINKBENCH_TOPOLOGY=published"
    if fault.what in OF_NETWORK:
        yield from _without_proxy(cell, stack, connectors)
    if fault.what not in OF_SERVICES:
        return
    if stack.faults is None:
        yield f"the services {on} are other people's; only {_ELSEWHERE} can be"
    elif fault.what == ISOLATE and stack.faults.isolation is None:
        yield f"the services {on} share one network; freeze it instead, or race in the containers"
    target = service_of(fault.hits)
    if fault.node is not None and layout is None:
        yield f"stack {stack.name} knows no nodes by name; hit worker, kafka or {SINK} instead"
    if fault.node is not None and layout is not None:
        names = [each.name for each in layout.nodes]
        if fault.node not in names:
            yield f"the topology {layout.name} has no node {fault.node}{did_you_mean(fault.node, names)}"
    if target not in ("worker", "workers", "kafka", "connect", SINK, *(each.name for each in kind.services)):
        yield f"it does not write through {fault.target}; name under 'pipelines' those that do"


def _without_proxy(cell: Cell, stack: Stack, connectors: Path) -> Iterator[str]:
    """Yields why no proxy fits between the workers and the cell's sink. Raises StackError if none can be started."""
    proxies = None if stack.faults is None else stack.faults.proxies
    if proxies is None:
        yield f"stack {stack.name} has no proxies from here; race on the stack local, or on the containers' host"
        return
    services = {each.name for each in sink_kind(cell.sink).services}
    targets = {name: each for name, each in proxies.targets.items() if name in services}
    file = read_connector(connectors / f"{cell.pipeline}.json")
    if not proxy_targets_used({**file, **cell.overrides}, cell.sink, targets):
        known = " or ".join(" and ".join(f"${{env:{one}}}" for one in each.variables) for each in targets.values())
        how = f"take it from {known}, or name others under 'pipelines'" if known else "name others under 'pipelines'"
        yield f"its connector file has an address of its own; {how}"
    proxies.check()


def prepare_faults(cells: Sequence[Cell], stack: Stack, say: Say) -> None:
    """Prepares the faults of these cells and reports their commands. Raises StackError."""
    commands = {cell.fault.name: cell.fault for cell in cells if cell.fault is not None and cell.fault.what == COMMAND}
    for name, fault in commands.items():
        say(f"this plan runs commands of its own for '{name}': {fault.command!r}, and then {fault.undo!r}")
    if _use_proxies(cells):
        needed(needed(stack.faults, "faults").proxies, "proxies").prepare(say)


def try_faults(cells: Sequence[Cell], stack: Stack) -> None:
    """Raises StackError if the proxy of network faults does not start. The stack must run."""
    if _use_proxies(cells):
        with needed(needed(stack.faults, "faults").proxies, "proxies").run():
            return


def _use_proxies(cells: Sequence[Cell]) -> bool:
    return any(cell.fault is not None and cell.fault.what in OF_NETWORK for cell in cells)
