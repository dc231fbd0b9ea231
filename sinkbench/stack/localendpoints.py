"""How the services of a local stack are reached, by its settings alone."""

from __future__ import annotations

from collections.abc import Set

from sinkbench.settings import Settings
from sinkbench.stack import Endpoint, Endpoints
from sinkbench.stack.home import ACCOUNT, INDEX
from sinkbench.stack.nodes import HOST, joined
from sinkbench.topology import SHIPPED, Topology

__all__ = ["endpoints_of", "options_of_an_index"]


def endpoints_of(settings: Settings, gone: Set[str] = frozenset(), primary: str | None = None) -> Endpoints:
    """The endpoints of all nodes.

    Args:
        settings: of the stack.
        gone: those that no other has to wait for until it is ready.
        primary: which node of PostgreSQL is the primary now; None: the first.
    """
    topology, port = settings.layout, settings.port
    workers = topology.of("connect")
    rest = {node.name: f"{HOST}:{port('connect_port', node.number)}" for node in workers}
    brokers = {node.name: f"{HOST}:{port('kafka_port', node.number)}" for node in topology.of("kafka")}
    return Endpoints(
        kafka=joined(settings, "kafka_port", "kafka"),
        connect={name: f"http://{address}" for name, address in rest.items()},
        worker_ids={address: name for name, address in rest.items()},
        sinks={
            "elasticsearch": _elasticsearch(settings, gone),
            "postgres": _postgres(settings, primary),
            "pgbouncer": Endpoint(
                _dsn(port("pgbouncer_port"), "pgbouncer"), shown=_dsn(port("pgbouncer_port"), ACCOUNT)
            ),
        },
        brokers=brokers if len(brokers) > 1 else {},
        replication=topology.kafka.replication,
        connect_metrics={
            node.name: f"http://{HOST}:{port('connect_metrics_port', node.number)}/metrics" for node in workers
        },
    )


def _elasticsearch(settings: Settings, gone: Set[str]) -> Endpoint:
    topology = settings.layout
    options = {"index": INDEX, **options_of_an_index(topology)}
    nodes = topology.of("elasticsearch")
    together = {**options, "nodes": str(len({node.name for node in nodes} - gone))}
    found = {
        node.name: Endpoint(f"http://{HOST}:{settings.port('elasticsearch_port', node.number)}", options=together)
        for node in nodes
    }
    first = found[nodes[0].name]
    return Endpoint(first.address, options=options, nodes=found if len(found) > 1 else {})


def options_of_an_index(topology: Topology) -> dict[str, str]:
    """Shards and replicas of an index without a target file, as options of Elasticsearch's endpoint."""
    # In the small one elasticsearch/index.json says it, which somebody may have changed.
    if topology.name == SHIPPED[0]:
        return {}
    return {"shards": str(topology.elasticsearch.shards), "replicas": str(topology.elasticsearch.replicas)}


def _postgres(settings: Settings, primary: str | None) -> Endpoint:
    nodes = settings.layout.of("postgres")
    ports = {node.name: settings.port("postgres_port", node.number) for node in nodes}
    if len(ports) == 1:
        return Endpoint(_dsn(ports[nodes[0].name], ACCOUNT))
    found = {
        name: Endpoint(_dsn(port, ACCOUNT), options={} if name == (primary or nodes[0].name) else {"role": "replica"})
        for name, port in ports.items()
    }
    # Whoever connects finds the primary of that moment.
    hosts, all_ports = ",".join([HOST] * len(ports)), ",".join(map(str, ports.values()))
    return Endpoint(f"{_dsn(all_ports, ACCOUNT, hosts)} target_session_attrs=read-write", nodes=found)


def _dsn(port: int | str, database: str, host: str = HOST) -> str:
    return f"host={host} user={ACCOUNT} password={ACCOUNT} port={port} dbname={database}"
