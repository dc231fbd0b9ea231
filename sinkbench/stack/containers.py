"""The containers of the compose project as services of a stack: their names, states and allowances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sinkbench.stack import Allowance, ServiceState
from sinkbench.stack.engine import Container

__all__ = ["SCALED", "SERVICES", "by_service", "names_of", "state_of"]

# In starting order. The controller is no part of the stack that it races on.
SERVICES = ("kafka", "elasticsearch", "postgres", "pgbouncer", "connect", "loadgen")
# Services that may have several containers.
SCALED = ("connect", "loadgen")


def names_of(containers: Sequence[Container]) -> dict[str, Container]:
    """The containers by service name, those of scaled services numbered: kafka, connect-1, connect-2."""
    return {
        f"{each.service}-{each.number}" if each.service in SCALED else each.service: each
        for service in SERVICES
        for each in containers
        if each.service == service
    }


def by_service(allowances: Mapping[str, Allowance]) -> dict[str, Allowance]:
    """Allowances by service, where all its containers have the same; else by container, as connect-2."""
    found: dict[str, Allowance] = {}
    for name, allowance in allowances.items():
        service = name.rsplit("-", 1)[0]
        alike = all(each == allowance for other, each in allowances.items() if other.rsplit("-", 1)[0] == service)
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
    return ServiceState(name, "stopped" if ended_by_itself else "dead", None, container.status)
