"""The compose project's containers as services of a stack: names, states and allowances. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sinkbench.errors import StackError
from sinkbench.stack.engine import Container
from sinkbench.stack.protocol import Allowance, ServiceState
from sinkbench.topology import Topology, service_of

# In starting order. The controller is not part of the stack that it benchmarks.
SERVICES = ("kafka", "elasticsearch", "postgres", "pgbouncer", "connect", "loadgen")
SCALED = ("connect", "loadgen")
CLUSTERED = ("kafka", "elasticsearch", "postgres")
DOWN = "run `sinkbench down --stack compose` first"


def names_of(containers: Sequence[Container]) -> dict[str, Container]:
    """Returns the containers by service name; those of scaled services are numbered: kafka-2, connect-1."""
    return {
        f"{each.service}-{each.number}" if each.service in SCALED else each.service: each
        for service in SERVICES
        for each in containers
        if service_of(each.service) == service
    }


def absent(named: Mapping[str, Container], topology: Topology) -> list[str]:
    """Returns the names of expected containers that are missing; a scaled service may have any number."""
    there = {each.service for each in named.values()}
    wanted = [
        name
        for service in SERVICES
        for name in ([service] if service in SCALED else [node.name for node in topology.of(service)])
    ]
    return [name for name in wanted if name not in there]


def check_nodes(names: Collection[str], topology: Topology, where: str, fix: str) -> None:
    """Raises StackError if `where` has other nodes than the topology; those of a service may all be absent."""
    for service in CLUSTERED:
        asked = [node.name for node in topology.of(service)]
        found = [name for name in names if service_of(name) == service]
        if found and set(found) != set(asked):
            raise StackError(
                f"{where} there are {', '.join(found)}, and the topology {topology.name} has {', '.join(asked)}; {fix}"
            )


def check_security(found: Mapping[str, Container], wanted: bool) -> None:
    """Raises StackError if a container requires TLS and a password and `wanted` is False, or vice versa."""
    for name, container in found.items():
        if container.secured and not wanted:
            raise StackError(f"{name} wants TLS and a password; set SINKBENCH_SECURITY=on, or {DOWN}")
        if wanted and not container.secured:
            raise StackError(f"{name} has no TLS and no users, and SINKBENCH_SECURITY=on; unset it, or {DOWN}")


def by_service(allowances: Mapping[str, Allowance]) -> dict[str, Allowance]:
    """Returns one allowance per service if its containers agree, else one per container, as connect-2."""
    found: dict[str, Allowance] = {}
    for name, allowance in allowances.items():
        service = service_of(name)
        alike = all(each == allowance for other, each in allowances.items() if service_of(other) == service)
        found[service if alike else name] = allowance
    return found


def state_of(name: str, container: Container) -> ServiceState:
    """Returns a container's state as a service's; unhealthy and isolated containers count as dead."""
    if container.state == "running" and container.isolated:
        return ServiceState(name, "dead", None, f"{container.status}, without its network")
    if container.state == "running":
        state = "dead" if container.health == "unhealthy" else "running"
        return ServiceState(name, state, None, container.status)
    ended_by_itself = container.state in ("created", "exited") and container.exit_code in (None, 0, 130, 143)
    state = "stopped" if ended_by_itself else "dead"
    return ServiceState(name, state, None, container.status, container.exit_code)
