"""How the services of a local stack are reached, by its settings alone."""

from __future__ import annotations

from collections.abc import Set

from sinkbench.services.access import Access
from sinkbench.settings import Settings
from sinkbench.stack import Endpoint, Endpoints
from sinkbench.stack.dsn import dsn, shown_dsn
from sinkbench.stack.home import INDEX, Home
from sinkbench.stack.nodes import HOST, joined
from sinkbench.stack.security import ACCOUNT, SERVICES, Security, kept_security
from sinkbench.topology import SHIPPED, Topology

__all__ = ["endpoints_of", "options_of_an_index"]


def endpoints_of(settings: Settings, gone: Set[str] = frozenset(), primary: str | None = None) -> Endpoints:
    """The endpoints of all nodes.

    Args:
        settings: of the stack.
        gone: those that no other has to wait for until it is ready.
        primary: which node of PostgreSQL is the primary now; None: the first.
    """
    topology, port, security = settings.layout, settings.port, _security(settings)
    workers = topology.of("connect")
    rest = {node.name: f"{HOST}:{port('connect_port', node.number)}" for node in workers}
    brokers = {node.name: f"{HOST}:{port('kafka_port', node.number)}" for node in topology.of("kafka")}
    return Endpoints(
        kafka=joined(settings, "kafka_port", "kafka"),
        connect={name: f"{_scheme(security)}://{address}" for name, address in rest.items()},
        worker_ids={address: name for name, address in rest.items()},
        sinks={
            "elasticsearch": _elasticsearch(settings, gone, security),
            "postgres": _postgres(settings, primary, security),
            "pgbouncer": Endpoint(
                dsn(security, HOST, port("pgbouncer_port"), "pgbouncer"),
                shown=shown_dsn(security, HOST, port("pgbouncer_port")),
            ),
        },
        kafka_settings={} if security is None else security.kafka_settings,
        connect_access=Access() if security is None else security.access("connect"),
        brokers=brokers if len(brokers) > 1 else {},
        replication=topology.kafka.replication,
        connect_metrics={
            node.name: f"http://{HOST}:{port('connect_metrics_port', node.number)}/metrics" for node in workers
        },
    )


def _security(settings: Settings) -> Security | None:
    if settings.security == "off":
        return None
    folder = Home(settings).security
    # One that was never started has no passwords yet, and nobody who would ask for them.
    return kept_security(folder) or Security(folder, dict.fromkeys(SERVICES, ""))


def _scheme(security: Security | None) -> str:
    return "http" if security is None else "https"


def _elasticsearch(settings: Settings, gone: Set[str], security: Security | None) -> Endpoint:
    topology = settings.layout
    access = Access() if security is None else security.access("elasticsearch")
    options = {"index": INDEX, **options_of_an_index(topology)}
    nodes = topology.of("elasticsearch")
    together = {**options, "nodes": str(len({node.name for node in nodes} - gone))}
    found = {
        node.name: Endpoint(
            f"{_scheme(security)}://{HOST}:{settings.port('elasticsearch_port', node.number)}",
            access=access,
            options=together,
        )
        for node in nodes
    }
    first = found[nodes[0].name]
    return Endpoint(first.address, access=access, options=options, nodes=found if len(found) > 1 else {})


def options_of_an_index(topology: Topology) -> dict[str, str]:
    """Shards and replicas of an index without a target file, as options of Elasticsearch's endpoint."""
    # In the small one elasticsearch/index.json says it, which somebody may have changed.
    if topology.name == SHIPPED[0]:
        return {}
    return {"shards": str(topology.elasticsearch.shards), "replicas": str(topology.elasticsearch.replicas)}


def _postgres(settings: Settings, primary: str | None, security: Security | None) -> Endpoint:
    nodes = settings.layout.of("postgres")
    ports = {node.name: settings.port("postgres_port", node.number) for node in nodes}
    found = {
        name: Endpoint(
            dsn(security, HOST, port, ACCOUNT),
            shown=shown_dsn(security, HOST, port),
            options={} if name == (primary or nodes[0].name) else {"role": "replica"},
        )
        for name, port in ports.items()
    }
    if len(found) == 1:
        return found[nodes[0].name]
    # Whoever connects finds the primary of that moment.
    hosts, all_ports = ",".join([HOST] * len(ports)), ",".join(map(str, ports.values()))
    return Endpoint(
        f"{dsn(security, hosts, all_ports, ACCOUNT)} target_session_attrs=read-write",
        shown=shown_dsn(security, hosts, all_ports),
        nodes=found,
    )
