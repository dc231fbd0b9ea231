"""How the services in containers are reached: by name in the project's network, else by ports on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sinkbench.errors import StackError
from sinkbench.stack.assembly import endpoints_of
from sinkbench.stack.containers import SCALED
from sinkbench.stack.endpoint import Endpoints
from sinkbench.stack.engine import Container
from sinkbench.stack.security import Security
from sinkbench.stack.spec import NOWHERE, Place
from sinkbench.topology import Topology, service_of

PORTS = {"kafka": 9092, "elasticsearch": 9200, "postgres": 5432, "pgbouncer": 6432, "connect": 8083, "loadgen": 8090}
"""The port of each service in the project's network, the same for all nodes."""
METRICS_PORT = 9404
LOCALHOST = "127.0.0.1"


@dataclass(frozen=True)
class Reach:
    """Where the containers are for this process, one of them if `inside`. No node waits for those in `gone`."""

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
        place = self.place
        loadgens = {name: "{}:{}".format(*self._at(name)) for name in self._of("loadgen")}
        return replace(
            endpoints_of(place),
            worker_ids={
                f"{self._own_name(each)}:{PORTS['connect']}": name for name, each in self._of("connect").items()
            },
            loadgens={name: f"{place.scheme}://{address}" for name, address in loadgens.items()},
            loadgen_access=place.access("loadgen"),
            loadgen_kafka=",".join(f"{node.name}:{PORTS['kafka']}" for node in self.layout.of("kafka")),
        )

    def _of(self, service: str) -> dict[str, Container]:
        return {name: each for name, each in self._running.items() if each.service == service}

    @property
    def _running(self) -> dict[str, Container]:
        return {name: each for name, each in self.named.items() if each.state == "running" and not each.isolated}

    def _own_name(self, container: Container) -> str:
        # The hostname is not known in advance, so no certificate can be valid for it.
        return container.hostname if self.security is None else container.name

    def _at(self, name: str) -> tuple[str, int]:
        container, service = self._running.get(name), service_of(name)
        port = PORTS[service]
        if self.inside:
            return (self._own_name(container) if service in SCALED and container else name), port
        if container is None:
            return LOCALHOST, NOWHERE
        # Kafka redirects clients to the address that it advertises, so its port is the same inside and outside.
        published = next(iter(container.ports.values()), None) if service == "kafka" else container.ports.get(port)
        if published is None:
            raise StackError(f"{name}: its port {port} is not published on 127.0.0.1; see docker-compose.yml")
        return LOCALHOST, published
