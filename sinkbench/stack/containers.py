"""The containers of the compose project as services of a stack: their names, states and allowances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sinkbench.errors import StackError
from sinkbench.stack import Allowance, ServiceState
from sinkbench.stack.engine import Container
from sinkbench.stack.security import Security
from sinkbench.topology import Topology, service_of

__all__ = [
    "SCALED",
    "SERVICES",
    "by_service",
    "check_nodes",
    "check_security",
    "names_of",
    "of_other_nodes",
    "state_of",
]

# In starting order. The controller is no part of the stack that it races on.
SERVICES = ("kafka", "elasticsearch", "postgres", "pgbouncer", "connect", "loadgen")
# Services that may have several containers.
SCALED = ("connect", "loadgen")


def names_of(containers: Sequence[Container]) -> dict[str, Container]:
    """The containers by their service in the compose files, those of scaled ones numbered: kafka-2, connect-1."""
    return {
        f"{each.service}-{each.number}" if each.service in SCALED else each.service: each
        for service in SERVICES
        for each in containers
        if service_of(each.service) == service
    }


def of_other_nodes(containers: Sequence[Container], topology: Topology) -> dict[str, tuple[str, ...]]:
    """The nodes that are there, by service, where they are others than the topology's; no node is no other one."""
    there = names_of(containers)
    found = {
        service: tuple(name for name in there if service_of(name) == service)
        for service in ("kafka", "elasticsearch", "postgres")
    }
    return {
        service: names
        for service, names in found.items()
        if names and set(names) != {node.name for node in topology.of(service)}
    }


def check_nodes(containers: Sequence[Container], topology: Topology) -> None:
    """Raises StackError if the containers are those of another topology."""
    for service, names in of_other_nodes(containers, topology).items():
        asked = ", ".join(node.name for node in topology.of(service))
        raise StackError(
            f"the containers are those of another topology: there are {', '.join(names)}, and the topology"
            f" {topology.name} has {asked}; run `sinkbench down --stack compose` first, or set SINKBENCH_TOPOLOGY to"
            " that of the containers"
        )


def check_security(containers: Sequence[Container], security: Security | None) -> None:
    """Raises StackError if the containers want other passwords than these, or none: None is for none."""
    mark = None if security is None else security.mark
    for name, container in names_of(containers).items():
        if container.mark == mark:
            continue
        down = "run `sinkbench down --stack compose` first"
        if security is None:
            raise StackError(f"{name} wants TLS and a password; set SINKBENCH_SECURITY=on, or {down}")
        if container.mark is None:
            raise StackError(f"{name} has no TLS and no users, and SINKBENCH_SECURITY=on; leave it out, or {down}")
        raise StackError(
            f"{name} knows other passwords than those in {security.folder}; set SINKBENCH_HOME to where theirs are, or"
            f" {down}"
        )


def by_service(allowances: Mapping[str, Allowance]) -> dict[str, Allowance]:
    """Allowances by service, where all its containers have the same; else by container, as connect-2."""
    found: dict[str, Allowance] = {}
    for name, allowance in allowances.items():
        service = service_of(name)
        alike = all(each == allowance for other, each in allowances.items() if service_of(other) == service)
        found[service if alike else name] = allowance
    return found


def state_of(name: str, container: Container) -> ServiceState:
    """A container's state as a service's; one that is unhealthy, or has no network, counts as dead."""
    if container.state == "running" and container.isolated:
        return ServiceState(name, "dead", None, f"{container.status}, without its network")
    if container.state == "running":
        state = "dead" if container.health == "unhealthy" else "running"
        return ServiceState(name, state, None, container.status)
    ended_by_itself = container.state in ("created", "exited") and container.exit_code in (None, 0, 130, 143)
    state = "stopped" if ended_by_itself else "dead"
    return ServiceState(name, state, None, container.status, container.exit_code)
