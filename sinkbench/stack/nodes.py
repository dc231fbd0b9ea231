"""What the nodes of a local stack start with: the environment of each, what it needs first, and supervisord's sections.

Pure: settings in, values out. What the variables mean is said in each service's `run`.
"""

from __future__ import annotations

import configparser
import io
from collections.abc import Callable, Mapping

from sinkbench.errors import StackError
from sinkbench.settings import HOST, Settings
from sinkbench.topology import Node, Topology, needed_bytes

__all__ = [
    "HOST",
    "check_memory",
    "environment_of",
    "joined",
    "needs",
    "node_environment",
    "shared_environment",
    "supervisor_config",
]

# As the quorum has it since there is one broker: Kafka listens for itself where Java finds this name.
CONTROLLER_HOST = "localhost"
# Brokers that stop together may be left without a quorum that lets the last one go; a kill then loses nothing.
QUORUM_STOP_SECONDS = "15"
PROGRAM = "program:"


def needs(topology: Topology, node: Node, primary: str | None = None) -> frozenset[str]:
    """The nodes that must be ready before this one starts. `primary` is PostgreSQL's; None: the first of its nodes.

    A worker makes topics with replicas on every broker, and a replica copies the primary. PgBouncer would start without
    PostgreSQL, but answers with errors.
    """
    if node.service == "connect":
        return frozenset(each.name for each in topology.of("kafka"))
    primary = primary or topology.of("postgres")[0].name
    if node.service == "pgbouncer" or (node.service == "postgres" and node.name != primary):
        return frozenset({primary})
    return frozenset()


def joined(settings: Settings, port: str, service: str) -> str:
    """host:port of every node of a service, by the setting of its port, separated by commas."""
    return ",".join(f"{HOST}:{settings.port(port, node.number)}" for node in settings.layout.of(service))


def shared_environment(settings: Settings) -> dict[str, str]:
    """What all services of a local stack are told of its nodes."""

    def address(node: Node, port: str) -> str:
        host = CONTROLLER_HOST if port == "kafka_controller_port" else HOST
        return f"{host}:{settings.port(port, node.number)}"

    scheme = "https" if settings.security == "on" else "http"
    return {"KAFKA_CONTROLLER_HOST": CONTROLLER_HOST, **node_environment(settings.layout, address, scheme)}


def node_environment(topology: Topology, address: Callable[[Node, str], str], scheme: str = "http") -> dict[str, str]:
    """What services are told of the nodes, wherever they run.

    Args:
        topology: which nodes there are.
        address: host:port of a node as the others reach it, by the setting of its port ("kafka_port").
        scheme: of Elasticsearch's addresses.
    """

    def of(port: str, service: str) -> list[str]:
        return [address(node, port) for node in topology.of(service)]

    brokers = enumerate(of("kafka_controller_port", "kafka"), start=1)
    hosts = of("elasticsearch_port", "elasticsearch")
    several = len(hosts) > 1
    return {
        "KAFKA_BOOTSTRAP": ",".join(of("kafka_port", "kafka")),
        "KAFKA_VOTERS": ",".join(f"{number}@{where}" for number, where in brokers),
        "KAFKA_REPLICATION": str(topology.kafka.replication),
        "KAFKA_MIN_INSYNC_REPLICAS": str(topology.kafka.min_insync_replicas),
        "CONNECT_REPLICATION": str(topology.kafka.replication),
        "ELASTICSEARCH_HOSTS": ",".join(hosts),
        # For connectors that want whole addresses.
        "ELASTICSEARCH_URLS": ",".join(f"{scheme}://{host}" for host in hosts),
        "ELASTICSEARCH_SEEDS": ",".join(of("elasticsearch_transport_port", "elasticsearch")) if several else "",
        "ELASTICSEARCH_MASTERS": ",".join(topology.elasticsearch.nodes) if several else "",
        # For connectors that look for the primary among all nodes.
        "POSTGRES_HOSTS": ",".join(of("postgres_port", "postgres")),
        "POSTGRES_STANDBYS": ",".join(topology.postgres.nodes[1:]),
        "POSTGRES_SYNCHRONOUS": "on" if topology.postgres.synchronous else "",
    }


def environment_of(settings: Settings, node: Node) -> dict[str, str]:
    """What this node alone is told; empty of one whose service has one node only, or says it otherwise.

    In the folder of its data, %(ENV_SINKBENCH_DATA)s is left for supervisord to fill in.
    """
    data = f"%(ENV_SINKBENCH_DATA)s/{node.name}"

    def port(name: str) -> str:
        return str(settings.port(name, node.number))

    if node.service == "kafka":
        return {
            "KAFKA_NODE": str(node.number),
            "KAFKA_DATA": data,
            "KAFKA_PORT": port("kafka_port"),
            "KAFKA_CONTROLLER_PORT": port("kafka_controller_port"),
        }
    if node.service == "elasticsearch":
        return {
            "ELASTICSEARCH_NODE": node.name,
            "ELASTICSEARCH_DATA": data,
            "ELASTICSEARCH_PORT": port("elasticsearch_port"),
            "ELASTICSEARCH_TRANSPORT_PORT": port("elasticsearch_transport_port"),
        }
    if node.service == "postgres":
        primary = {"POSTGRES_PRIMARY_HOST": HOST, "POSTGRES_PRIMARY_PORT": str(settings.port("postgres_port"))}
        return {
            "POSTGRES_NODE": node.name,
            "POSTGRES_DATA": data,
            "POSTGRES_PORT": port("postgres_port"),
            **(primary if node.number > 1 else {}),
        }
    return {}


def supervisor_config(template: str, settings: Settings) -> str:
    """The text of supervisord's configuration: a section for every node, made of its service's in the template.

    Workers stay one program of several processes, and so one group. Comments are left out.
    """
    found, made = _parser(), _parser()
    found.read_string(template)
    topology = settings.layout
    of_programs = {node.service for node in topology.nodes if node.service != "connect"}
    for section in found.sections():
        service = section.removeprefix(PROGRAM)
        if not section.startswith(PROGRAM) or service not in of_programs:
            made[section] = dict(found[section])
            continue
        for node in topology.of(service):
            options = dict(found[section])
            options["stdout_logfile"] = options["stdout_logfile"].replace(f"/{service}.log", f"/{node.name}.log")
            if own := environment_of(settings, node):
                options["environment"] = ",".join(f'{name}="{value}"' for name, value in own.items())
            if service == "kafka" and len(topology.of("kafka")) > 1:
                options["stopwaitsecs"] = QUORUM_STOP_SECONDS
            made[PROGRAM + node.name] = options
    text = io.StringIO()
    made.write(text)
    return text.getvalue()


def _parser() -> configparser.RawConfigParser:
    # As supervisord reads it.
    return configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=False)


def check_memory(topology: Topology, available_bytes: int) -> None:
    """Raises StackError if the topology, none of which runs yet, takes more memory than is available."""
    needed = needed_bytes(topology)
    if needed <= available_bytes:
        return
    heaps: Mapping[str, str] = topology.heaps()
    counted = ", ".join(f"{len(topology.of(service))} x {heap} for {service}" for service, heap in heaps.items())
    otherwise = "" if topology.is_single else ", or set SINKBENCH_TOPOLOGY=small"
    raise StackError(
        f"the topology {topology.name} needs {needed / 1e9:.1f} GB of memory (heaps: {counted}; and what stands beside"
        f" them), and {available_bytes / 1e9:.1f} GB are available; end other programs, lower SINKBENCH_KAFKA_HEAP,"
        f" SINKBENCH_CONNECT_HEAP, SINKBENCH_ELASTICSEARCH_HEAP or SINKBENCH_WORKERS{otherwise}"
    )
