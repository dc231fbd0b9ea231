"""Checks that a stack supports the faults of a plan, before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sinkbench.errors import PlanError, StackError
from sinkbench.plan.cells import Cell
from sinkbench.plan.connectors import read_connector
from sinkbench.plan.faults import COMMAND, FILL, ISOLATE, OF_NETWORK, OF_SERVICES, PROMOTE, REFUSE, SINK, PlanFault
from sinkbench.plan.plan import FaultsPlan, Plan
from sinkbench.sinks import SMALL_DISK, needed, sink_kind
from sinkbench.stack import Say, Stack
from sinkbench.suggest import did_you_mean
from sinkbench.topology import service_of
from sinkbench.trial.workloads.around import proxy_targets_used

_ELSEWHERE = "restart, pause, rename, join, refuse, fill of some sinks, poison, command and none"


def check_faults(plan: Plan, cells: Sequence[Cell], stack: Stack, connectors: Path) -> None:
    """Raises PlanError, with line and pipeline, if the stack does not support a cell's fault. Uses no service."""
    for cell in cells:
        fault = cell.fault
        if fault is None:
            continue
        ways = sink_kind(cell.sink).refuses
        if fault.what == REFUSE and fault.reason not in ways:
            how = f" so, only for: {', '.join(ways)}" if ways else ""
            raise PlanError(
                f"{_where(plan, fault)}: '{fault.name}': the sink {cell.sink} cannot be set to refuse records{how};"
                " name under 'pipelines' those of other sinks"
            )
        if fault.what == REFUSE and fault.reason == "no connection" and stack.faults is None:
            raise PlanError(
                f"{_where(plan, fault)}: '{fault.name}' cannot be done on stack {stack.name}: it closes the connections"
                " of everybody; only those of services that sinkbench has started may be closed"
            )
        if fault.what == FILL:
            _check_disk(plan, cell, fault, stack)
        if fault.what == PROMOTE:
            _check_promotion(plan, cell, fault, stack)
        if fault.what in OF_NETWORK:
            _check_network(plan, cell, fault, stack, read_connector(connectors / f"{cell.pipeline}.json"))
        if fault.what not in OF_SERVICES:
            continue
        if stack.faults is None:
            raise PlanError(
                f"{_where(plan, fault)}: '{fault.name}' cannot be done on stack {stack.name}, whose services are other"
                f" people's; only {_ELSEWHERE} can be"
            )
        if fault.what == ISOLATE and stack.faults.isolation is None:
            raise PlanError(
                f"{_where(plan, fault)}: '{fault.name}' cannot be done on stack {stack.name}, whose services share one"
                " network; freeze it instead, or race in the containers"
            )
        if fault.node is not None:
            _check_node(plan, fault, fault.node, stack)
        services = [each.name for each in sink_kind(cell.sink).services]
        target = service_of(fault.hits)
        if target not in ("worker", "workers", "kafka", "connect", SINK) and target not in services:
            raise PlanError(
                f"{_where(plan, fault)}: '{fault.name}' would not touch {cell.label}, which does not write through"
                f" {fault.target}; name under 'pipelines' those that do"
            )


def prepare_faults(cells: Sequence[Cell], stack: Stack, say: Say) -> None:
    """Prepares the faults of these cells and reports their commands. Raises StackError."""
    commands = {cell.fault.name: cell.fault for cell in cells if cell.fault is not None and cell.fault.what == COMMAND}
    for name, fault in commands.items():
        say(f"this plan runs commands of its own for '{name}': {fault.command!r}, and then {fault.undo!r}")
    if any(cell.fault is not None and cell.fault.what in OF_NETWORK for cell in cells):
        needed(needed(stack.faults, "faults").proxies, "proxies").prepare(say)


def try_faults(cells: Sequence[Cell], stack: Stack) -> None:
    """Raises StackError if the proxy of network faults does not start. The stack must run."""
    if any(cell.fault is not None and cell.fault.what in OF_NETWORK for cell in cells):
        with needed(needed(stack.faults, "faults").proxies, "proxies").run():
            return


def _check_disk(plan: Plan, cell: Cell, fault: PlanFault, stack: Stack) -> None:
    where, how = f"{_where(plan, fault)}: '{fault.name}'", sink_kind(cell.sink).full_disk
    if how is None:
        raise PlanError(f"{where}: the sink {cell.sink} has no disk to fill; name under 'pipelines' those of others")
    if how == SMALL_DISK:
        disks = None if stack.faults is None else stack.faults.small_disks(cell.sink)
        if disks is None:
            raise PlanError(
                f"{where} cannot be done to {cell.label} on stack {stack.name}{_topology(stack)}: a small disk needs"
                f" the stack local with one node of {cell.sink}; race there, with SINKBENCH_TOPOLOGY=small"
            )
        try:
            disks.check()
        except StackError as error:
            raise PlanError(f"{where} cannot be done to {cell.label}: {error}") from None


def _check_promotion(plan: Plan, cell: Cell, fault: PlanFault, stack: Stack) -> None:
    where = f"{_where(plan, fault)}: '{fault.name}'"
    if not any(service.roles for service in sink_kind(cell.sink).services):
        raise PlanError(
            f"{where}: the sink {cell.sink} has no replica that could be promoted; name under 'pipelines' those of"
            " others"
        )
    if stack.faults is None or stack.faults.promotion(cell.sink) is None:
        raise PlanError(
            f"{where} cannot be done to {cell.label} on stack {stack.name}{_topology(stack)}, which has no replica that"
            f" could be promoted; race on the stack local with SINKBENCH_TOPOLOGY=published, or with a topology of"
            f" yours with {cell.sink}: {{nodes: 2}}"
        )


def _topology(stack: Stack) -> str:
    return "" if stack.layout is None else f" with the topology {stack.layout.name}"


def _check_node(plan: Plan, fault: PlanFault, node: str, stack: Stack) -> None:
    where = f"{_where(plan, fault, 'target')}: '{fault.name}'"
    if stack.layout is None:
        service = service_of(node)
        those = "worker" if service == "connect" else "kafka" if service == "kafka" else SINK
        raise PlanError(f"{where}: stack {stack.name} knows no nodes by name; hit {those} instead")
    names = [each.name for each in stack.layout.nodes]
    if node not in names:
        raise PlanError(f"{where}: the topology {stack.layout.name} has no node {node}{did_you_mean(node, names)}")


def _check_network(plan: Plan, cell: Cell, fault: PlanFault, stack: Stack, file: Mapping[str, object]) -> None:
    """Raises PlanError if no proxy fits between the workers and the cell's sink."""
    where = f"{_where(plan, fault)}: '{fault.name}'"
    proxies = None if stack.faults is None else stack.faults.proxies
    if proxies is None:
        raise PlanError(
            f"{where} cannot be done on stack {stack.name} from here: only a race on the stack local, or on the"
            " containers' host, can have the proxy that it needs; race there, or leave the fault out"
        )
    services = {each.name for each in sink_kind(cell.sink).services}
    proxy_targets = {name: each for name, each in proxies.targets.items() if name in services}
    if not proxy_targets_used({**file, **cell.overrides}, cell.sink, proxy_targets):
        known = " or ".join(
            " and ".join(f"${{env:{one}}}" for one in each.variables) for each in proxy_targets.values()
        )
        how = f"take it from {known}, or name others under 'pipelines'" if known else "name others under 'pipelines'"
        raise PlanError(
            f"{where} cannot be done to {cell.label}, whose connector file has an address of its own; {how}"
        )
    try:
        proxies.check()
    except StackError as error:
        raise PlanError(f"{where}: {error}") from None


def _where(plan: Plan, fault: PlanFault, *key: str) -> str:
    faults = plan.faults if isinstance(plan, FaultsPlan) else (fault,)
    return plan.where("faults", faults.index(fault), *key)
