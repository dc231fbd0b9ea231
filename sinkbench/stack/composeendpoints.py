"""How the containers' services are reached, by what the engine tells of them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from sinkbench.errors import StackError
from sinkbench.stack.assembly import endpoints_of as endpoints_at
from sinkbench.stack.containers import names_of
from sinkbench.stack.endpoint import Endpoints
from sinkbench.stack.engine import Container
from sinkbench.stack.security import Security
from sinkbench.stack.spec import NOWHERE, Place
from sinkbench.topology import Node, Topology

__all__ = ["PORTS", "endpoints_of", "place_of"]

PORTS = {"kafka": 9092, "elasticsearch": 9200, "postgres": 5432, "pgbouncer": 6432, "connect": 8083, "loadgen": 8090}
"""The port of each service on the project's network, of all its nodes."""
METRICS_PORT = 9404
LOCALHOST = "127.0.0.1"


def place_of(
    containers: Sequence[Container],
    inside: bool,
    topology: Topology | None = None,
    gone: Set[str] = frozenset(),
    security: Security | None = None,
) -> Place:
    """Where the services are: `inside` the project's network by name, else by ports on 127.0.0.1.

    One without its network cannot be reached, and is as one that does not run.

    Args:
        containers: those of the project.
        inside: whether this process is in one of them.
        topology: which nodes there are to be; without it, those of the small one.
        gone: nodes that no other has to wait for until it is ready.
        security: what they want before they answer; None if they answer without TLS and passwords.

    Raises StackError if a running service publishes no port.
    """
    named = names_of([each for each in containers if each.state == "running" and not each.isolated])
    workers = {name: each for name, each in named.items() if each.service == "connect"}

    def address(node: Node, port: str) -> tuple[str, int]:
        if inside:
            return node.name, PORTS[node.service]
        container = named.get(node.name)
        return (LOCALHOST, NOWHERE) if container is None else _published(node.name, container, node.service)

    return Place(
        layout=topology or Topology(),
        address=address,
        security=security,
        workers={name: _scaled(name, each, inside, security) for name, each in workers.items()},
        metrics={
            name: (each.hostname, METRICS_PORT) if inside else (LOCALHOST, each.ports[METRICS_PORT])
            for name, each in workers.items()
            if inside or METRICS_PORT in each.ports
        },
        gone=frozenset(gone),
    )


def endpoints_of(
    containers: Sequence[Container],
    inside: bool,
    topology: Topology | None = None,
    gone: Set[str] = frozenset(),
    security: Security | None = None,
) -> Endpoints:
    """How to reach the services; arguments as of `place_of`."""
    place = place_of(containers, inside, topology, gone, security)
    named = names_of([each for each in containers if each.state == "running" and not each.isolated])
    loadgens = {
        name: _scaled(name, each, inside, security) for name, each in named.items() if each.service == "loadgen"
    }
    return replace(
        endpoints_at(place),
        # The address that a worker has among the others.
        worker_ids={
            f"{_own_name(each, security)}:{PORTS['connect']}": name
            for name, each in named.items()
            if name in place.workers
        },
        loadgens={name: f"{place.scheme}://{host}:{port}" for name, (host, port) in loadgens.items()},
        loadgen_access=place.access("loadgen"),
        loadgen_kafka=",".join(f"{name}:{PORTS['kafka']}" for name in place.layout.kafka.nodes),
    )


def _own_name(container: Container, security: Security | None) -> str:
    # The host's name is not known before, so that no certificate can be for it.
    return container.hostname if security is None else container.name


def _scaled(name: str, container: Container, inside: bool, security: Security | None) -> tuple[str, int]:
    if inside:
        return _own_name(container, security), PORTS[container.service]
    return _published(name, container, container.service)


def _published(name: str, container: Container, service: str) -> tuple[str, int]:
    # Kafka redirects its clients to the address that it advertises, so its port is the same on both sides.
    found = next(iter(container.ports.values()), None) if service == "kafka" else container.ports.get(PORTS[service])
    if found is None:
        raise StackError(f"{name}: its port {PORTS[service]} is not published on 127.0.0.1; see docker-compose.yml")
    return LOCALHOST, found
