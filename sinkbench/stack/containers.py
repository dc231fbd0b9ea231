"""The containers of the compose project as services of a stack: their names, states and allowances. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sinkbench.errors import StackError
from sinkbench.stack.engine import Container
from sinkbench.stack.protocol import Allowance, ServiceState
from sinkbench.topology import Topology, service_of

__all__ = [
    "DOWN",
    "SCALED",
    "SERVICES",
    "absent",
    "by_service",
    "check_nodes",
    "check_security",
    "names_of",
    "state_of",
]

# In starting order. The controller is no part of the stack that it races on.
SERVICES = ("kafka", "elasticsearch", "postgres", "pgbouncer", "connect", "loadgen")
# Services that may have several containers.
SCALED = ("connect", "loadgen")
CLUSTERED = ("kafka", "elasticsearch", "postgres")
DOWN = "run `sinkbench down --stack compose` first"


def names_of(containers: Sequence[Container]) -> dict[str, Container]:
    """The containers by their service in the compose files, those of scaled ones numbered: kafka-2, connect-1."""
    return {
        f"{each.service}-{each.number}" if each.service in SCALED else each.service: each
        for service in SERVICES
        for each in containers
        if service_of(each.service) == service
    }


def absent(named: Mapping[str, Container], topology: Topology) -> list[str]:
    """What should have a container and has none; of a scaled service any number may be there."""
    there = {each.service for each in named.values()}
    wanted = [
        name
        for service in SERVICES
        for name in ([service] if service in SCALED else [node.name for node in topology.of(service)])
    ]
    return [name for name in wanted if name not in there]


def check_nodes(names: Collection[str], topology: Topology, where: str, fix: str) -> None:
    """Raises StackError if `where` there are other nodes than the topology's; those of a service may all be absent."""
    for service in CLUSTERED:
        asked = [node.name for node in topology.of(service)]
        found = [name for name in names if service_of(name) == service]
        if found and set(found) != set(asked):
            raise StackError(
                f"{where} there are {', '.join(found)}, and the topology {topology.name} has {', '.join(asked)}; {fix}"
            )


def check_security(found: Mapping[str, Container], wanted: bool) -> None:
    """Raises StackError if a container wants TLS and a password, and `wanted` is False, or the other way round."""
    for name, container in found.items():
        if container.secured and not wanted:
            raise StackError(f"{name} wants TLS and a password; set SINKBENCH_SECURITY=on, or {DOWN}")
        if wanted and not container.secured:
            raise StackError(f"{name} has no TLS and no users, and SINKBENCH_SECURITY=on; unset it, or {DOWN}")


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
