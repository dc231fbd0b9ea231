"""The compose project's containers as nodes of a stack: names, states and addresses. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sinkbench.errors import StackError
from sinkbench.stack import Endpoints, ServiceState
from sinkbench.stack.assembly import endpoints_of
from sinkbench.stack.engine import Container
from sinkbench.stack.registry import NOWHERE, Place
from sinkbench.stack.security import Security
from sinkbench.topology import Topology, service_of

PORTS = {"kafka": 9092, "elasticsearch": 9200, "postgres": 5432, "pgbouncer": 6432, "connect": 8083, "loadgen": 8090}
"""The port of each service in the project's network, for all its nodes; in starting order, without the controller."""
SCALED = ("connect", "loadgen")
METRICS_PORT, LOCALHOST = 9404, "127.0.0.1"
DOWN = "run `sinkbench down --stack compose` first"


def names_of(containers: Sequence[Container]) -> dict[str, Container]:
    """Returns the containers by service name; those of scaled services are numbered: kafka-2, connect-1."""
    return {
        f"{each.service}-{each.number}" if each.service in SCALED else each.service: each
        for service in PORTS
        for each in containers
        if service_of(each.service) == service
    }


def states_of(named: Mapping[str, Container], topology: Topology) -> list[ServiceState]:
    """Returns the state of each container, and of each expected node without one; a scaled service may have any number.
    Unhealthy and isolated containers count as dead."""
    states = []
    for name, each in named.items():
        state, detail = "running", each.status
        if each.state == "running" and each.isolated:
            state, detail = "dead", f"{each.status}, without its network"
        elif each.state != "running" or each.health == "unhealthy":
            ended = each.state in ("created", "exited") and each.exit_code in (None, 0, 130, 143)
            state = "stopped" if ended else "dead"
        states.append(ServiceState(name, state, None, detail, each.exit_code))
    there = {each.service for each in named.values()}
    wanted = [name for s in PORTS for name in ([s] if s in SCALED else [node.name for node in topology.of(s)])]
    return states + [ServiceState(name, "stopped", None, "no container") for name in wanted if name not in there]


def other_nodes(names: Collection[str], topology: Topology) -> str | None:
    """Returns which of these are no nodes of the topology, None if all are; those of a service may all be absent."""
    for service in ("kafka", "elasticsearch", "postgres"):
        asked = [node.name for node in topology.of(service)]
        found = [name for name in names if service_of(name) == service]
        if found and set(found) != set(asked):
            return f"there are {', '.join(found)}, and the topology {topology.name} has {', '.join(asked)}"
    return None


def check_security(found: Mapping[str, Container], wanted: bool) -> None:
    """Raises StackError if a container requires TLS and a password and `wanted` is False, or vice versa."""
    for name, container in found.items():
        if container.secured and not wanted:
            raise StackError(f"{name} wants TLS and a password; set SINKBENCH_SECURITY=on, or {DOWN}")
        if wanted and not container.secured:
            raise StackError(f"{name} has no TLS and no users, and SINKBENCH_SECURITY=on; unset it, or {DOWN}")


@dataclass(frozen=True)
class Reach:
    """How this process reaches the containers: by name in the project's network if it is `inside`, else by ports on
    127.0.0.1. No node waits for those in `gone`."""

    named: Mapping[str, Container]
    inside: bool
    layout: Topology
    security: Security | None = None
    gone: frozenset[str] = frozenset()

    @property
    def place(self) -> Place:
        """Raises StackError if a running service publishes no port."""
        workers = self._of("connect")
        return Place(
            layout=self.layout,
            address=lambda node, port: self._at(node.name),
            security=self.security,
            workers={name: self._at(name) for name in workers},
            metrics={
                name: (each.hostname, METRICS_PORT) if self.inside else (LOCALHOST, each.ports[METRICS_PORT])
                for name, each in workers.items()
                if self.inside or METRICS_PORT in each.ports
            },
            gone=self.gone,
        )

    @property
    def endpoints(self) -> Endpoints:
        place, port = self.place, PORTS["connect"]
        return replace(
            endpoints_of(place),
            worker_ids={f"{self._own_name(each)}:{port}": name for name, each in self._of("connect").items()},
            loadgens={name: place.url(self._at(name)) for name in self._of("loadgen")},
            loadgen_access=place.access("loadgen"),
            loadgen_kafka=",".join(f"{node.name}:{PORTS['kafka']}" for node in self.layout.of("kafka")),
        )

    def _of(self, service: str) -> dict[str, Container]:
        return {name: each for name, each in self.named.items() if each.service == service and each.reachable}

    def _own_name(self, container: Container) -> str:
        # The hostname is not known in advance, so no certificate can be valid for it.
        return container.hostname if self.security is None else container.name

    def _at(self, name: str) -> tuple[str, int]:
        container, service = self.named.get(name), service_of(name)
        port = PORTS[service]
        if container is None or not container.reachable:
            return (name, port) if self.inside else (LOCALHOST, NOWHERE)
        if self.inside:
            return (self._own_name(container) if service in SCALED else name), port
        # Kafka redirects clients to the address that it advertises, so its port is the same inside and outside.
        published = next(iter(container.ports.values()), None) if service == "kafka" else container.ports.get(port)
        if published is None:
            raise StackError(f"{name}: its port {port} is not published on 127.0.0.1; see docker-compose.yml")
        return LOCALHOST, published
