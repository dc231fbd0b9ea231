"""How the containers' services are reached, by what the engine tells of them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from sinkbench.errors import StackError
from sinkbench.services.access import Access
from sinkbench.stack.containers import SCALED, names_of
from sinkbench.stack.dsn import dsn, shown_dsn
from sinkbench.stack.endpoint import Endpoint, Endpoints
from sinkbench.stack.engine import Container
from sinkbench.stack.home import INDEX
from sinkbench.stack.localendpoints import options_of_an_index
from sinkbench.stack.security import ACCOUNT, Security
from sinkbench.topology import Topology, service_of

__all__ = ["PORTS", "endpoints_of"]

PORTS = {"kafka": 9092, "elasticsearch": 9200, "postgres": 5432, "pgbouncer": 6432, "connect": 8083, "loadgen": 8090}
"""The port of each service on the project's network, of all its nodes."""
METRICS_PORT = 9404
_NOWHERE = 0


def endpoints_of(
    containers: Sequence[Container],
    inside: bool,
    topology: Topology | None = None,
    gone: Set[str] = frozenset(),
    security: Security | None = None,
) -> Endpoints:
    """How to reach the services: `inside` the project's network by name, else by ports on 127.0.0.1.

    One without its network cannot be reached, and is as one that does not run.

    Args:
        containers: those of the project.
        inside: whether this process is in one of them.
        topology: which nodes there are to be; without it, those of the small one.
        gone: nodes that no other has to wait for until it is ready.
        security: what they want before they answer; None if they answer everybody.

    Raises StackError if a running service publishes no port.
    """
    topology = topology or Topology()
    scheme = "http" if security is None else "https"
    named = names_of([each for each in containers if each.state == "running" and not each.isolated])
    workers = {name: each for name, each in named.items() if each.service == "connect"}
    loadgens = {name: each for name, each in named.items() if each.service == "loadgen"}

    def scaled_name(container: Container) -> str:
        # A certificate cannot be for the other one, which nobody knows before.
        return container.hostname if security is None else container.name

    def address(name: str) -> tuple[str, int]:
        container, service = named.get(name), service_of(name)
        port = PORTS[service]
        if inside:
            return (scaled_name(container) if service in SCALED and container is not None else name), port
        if container is None:
            return "127.0.0.1", _NOWHERE
        # Kafka redirects its clients to the address that it advertises, so its port is the same on both sides.
        published = next(iter(container.ports.values()), None) if service == "kafka" else container.ports.get(port)
        if published is None:
            raise StackError(f"{name}: its port {port} is not published on 127.0.0.1; see docker-compose.yml")
        return "127.0.0.1", published

    def access(service: str) -> Access:
        return Access() if security is None else security.access(service)

    def metrics(container: Container) -> str | None:
        host, port = (container.hostname, METRICS_PORT) if inside else ("127.0.0.1", container.ports.get(METRICS_PORT))
        return None if port is None else f"http://{host}:{port}/metrics"

    def url(name: str) -> str:
        host, port = address(name)
        return f"{scheme}://{host}:{port}"

    def database(name: str, of: str = ACCOUNT) -> Endpoint:
        where = address(name)
        shown = shown_dsn(security, *where) if security is not None or of != ACCOUNT else ""
        return Endpoint(dsn(security, *where, of), shown=shown)

    def elasticsearch() -> Endpoint:
        names = topology.elasticsearch.nodes
        options = {"index": INDEX, **options_of_an_index(topology)}
        together = {**options, "nodes": str(len(set(names) - gone))}
        nodes = {name: Endpoint(url(name), access=access("elasticsearch"), options=together) for name in names}
        return replace(nodes[names[0]], options=options, nodes=nodes if len(nodes) > 1 else {})

    def postgres() -> Endpoint:
        first, *replicas = topology.postgres.nodes
        nodes = {
            first: database(first),
            **{name: replace(database(name), options={"role": "replica"}) for name in replicas},
        }
        return replace(nodes[first], nodes=nodes if replicas else {})

    brokers = {name: address(name) for name in topology.kafka.nodes}
    # A client would take a port that is none for a mistake of its settings.
    reached = [each for each in brokers.values() if each[1] != _NOWHERE] or list(brokers.values())[:1]
    return Endpoints(
        kafka=",".join(f"{host}:{port}" for host, port in reached),
        brokers={name: f"{host}:{port}" for name, (host, port) in brokers.items()} if len(brokers) > 1 else {},
        replication=topology.kafka.replication,
        connect={name: url(name) for name in workers},
        worker_ids={f"{scaled_name(each)}:{PORTS['connect']}": name for name, each in workers.items()},
        sinks={
            "elasticsearch": elasticsearch(),
            "postgres": postgres(),
            "pgbouncer": database("pgbouncer", "pgbouncer"),
        },
        kafka_settings={} if security is None else security.kafka_settings,
        connect_access=access("connect"),
        connect_metrics={name: shown for name, each in workers.items() if (shown := metrics(each)) is not None},
        loadgens={name: url(name) for name in loadgens},
        loadgen_access=access("loadgen"),
        loadgen_kafka=",".join(f"{name}:{PORTS['kafka']}" for name in topology.kafka.nodes),
    )
