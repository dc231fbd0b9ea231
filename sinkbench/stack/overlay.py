"""What a topology changes of `docker-compose.yml`: an overlay, which `docker compose -f` reads after that file.

Pure: settings in, text out. Every further node `extends` its service, so that the file stays the only description of a
container. `docker-compose.published.yml` is what comes out for the published topology; `scripts/reference` writes it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq, TaggedScalar
from ruamel.yaml.scalarstring import DoubleQuotedScalarString
from ruamel.yaml.tag import Tag

from sinkbench.settings import Settings
from sinkbench.stack.nodes import node_environment
from sinkbench.topology import BESIDE_HEAP, SHIPPED, Node, Topology, bytes_of

__all__ = [
    "BASE",
    "DATA",
    "LEAST_FILES",
    "PORTS",
    "PUBLISHED",
    "as_text",
    "overlay",
    "plain",
    "published_overlay",
    "told_inside",
]

BASE = "docker-compose.yml"
PUBLISHED = "docker-compose.published.yml"
# As long as its settings are the defaults, whoever has no sinkbench uses this one.
_PUBLISHED_HEAD = f"""\
# What the published topology changes of {BASE}; see docs/topologies.md. `scripts/reference` makes this file from
# topologies/published.yaml. Ports of further nodes are those of the defaults: `sinkbench up --stack compose` with
# SINKBENCH_TOPOLOGY=published knows the others.
#
#   docker compose -f {BASE} -f {PUBLISHED} up
"""
_HEAD = f"# What the topology {{name}} changes of {BASE}. sinkbench writes it anew with every command.\n"

PORTS = {"kafka": 9092, "elasticsearch": 9200, "postgres": 5432, "pgbouncer": 6432, "connect": 8083, "loadgen": 8090}
"""The port of each service on the project's network, of all its nodes."""
_OF_SETTINGS = {
    **{"kafka_port": PORTS["kafka"], "kafka_controller_port": 9093},
    **{"elasticsearch_port": PORTS["elasticsearch"], "elasticsearch_transport_port": 9300},
    "postgres_port": PORTS["postgres"],
}
LEAST_FILES = 65_535
"""How many files a node of Elasticsearch must be able to open before it joins others, off loopback."""
DATA = {
    "kafka": "/var/lib/kafka",
    "elasticsearch": "/var/lib/elasticsearch",
    "postgres": "/var/lib/postgresql/sinkbench",
}
"""Where the data lie in a container, by the service: `docker-compose.yml` says the same."""
_CHECKOUT_INSIDE = PurePosixPath("/opt/sinkbench")


def published_overlay(settings: Settings) -> str:
    """The text of `docker-compose.published.yml`, by settings with the published topology."""
    return _PUBLISHED_HEAD + as_text(_overlay(settings, BASE, None))


def overlay(settings: Settings, checkout: Path) -> str:
    """The text of the overlay of the settings' topology, for a file anywhere.

    Args:
        settings: what is in force, with a topology.
        checkout: the folder with `docker-compose.yml`, from where a topology's file is looked for, too.
    """
    own = None if settings.topology in SHIPPED else (checkout / settings.topology).absolute()
    found = _overlay(settings, str((checkout / BASE).absolute()), own)
    return _HEAD.format(name=settings.layout.name) + as_text(found)


def _overlay(settings: Settings, base: str, own: Path | None) -> dict[str, Any]:
    topology = settings.layout
    services: dict[str, Any] = {}
    volumes: dict[str, None] = {}
    for service in DATA:
        nodes = topology.of(service)
        names = [node.name for node in nodes]
        # A cluster keeps in its data who belongs to it, so another one has other volumes.
        mark = hashlib.sha256(" ".join(names).encode()).hexdigest()[:8]
        for node in nodes:
            changed = _sized(settings, service)
            if len(nodes) > 1:
                changed["environment"] = {**changed.get("environment", {}), **_environment(settings, node)}
                changed["volumes"] = [f"{node.name}-{mark}:{DATA[service]}"]
                volumes[f"{node.name}-{mark}"] = None
                if service == "elasticsearch":
                    changed["ulimits"] = {"nofile": LEAST_FILES}
            if node.number > 1:
                changed = {**_further(settings, base, node), **changed}
            if changed:
                services[node.name] = changed
    brokers, stores = topology.of("kafka"), topology.of("elasticsearch")
    told = told_inside(settings.layout)
    to_workers = {
        **({name: told[name] for name in ("KAFKA_BOOTSTRAP", "CONNECT_REPLICATION")} if len(brokers) > 1 else {}),
        **({name: told[name] for name in ("ELASTICSEARCH_HOSTS", "ELASTICSEARCH_URLS")} if len(stores) > 1 else {}),
        **({"POSTGRES_HOSTS": told["POSTGRES_HOSTS"]} if len(topology.of("postgres")) > 1 else {}),
    }
    sized = _sized(settings, "connect")
    services["connect"] = {
        "scale": _variable("WORKERS", settings.workers),
        **_depends(brokers[1:]),
        **sized,
        **_unless_empty("environment", {**sized.get("environment", {}), **to_workers}),
    }
    if len(brokers) > 1:
        services["loadgen"] = {
            **_depends(brokers[1:]),
            "environment": {"KAFKA_BOOTSTRAP": told["KAFKA_BOOTSTRAP"]},
        }
    services["controller"] = {
        **_depends([*stores[1:], *topology.of("postgres")[1:]]),
        **_controller(topology.name, own),
    }
    return {"services": services, **_unless_empty("volumes", volumes)}


def _further(settings: Settings, base: str, node: Node) -> dict[str, Any]:
    """What a node that is not the first has instead of what it inherits."""
    port = settings.port(f"{node.service}_port", node.number)
    inside = port if node.service == "kafka" else PORTS[node.service]
    return {
        "extends": {"file": plain(base), "service": node.service},
        # The first one's image.
        "build": TaggedScalar("null", tag=Tag(suffix="!reset")),
        "pull_policy": "never",
        "ports": _instead([DoubleQuotedScalarString(f"127.0.0.1:{port}:{inside}")]),
        **(_depends([settings.layout.of("postgres")[0]]) if node.service == "postgres" else {}),
    }


def told_inside(topology: Topology, scheme: str = "http") -> dict[str, str]:
    """What services are told of the nodes on the project's network; `scheme` is that of Elasticsearch's addresses."""
    return node_environment(topology, lambda node, port: f"{node.name}:{_OF_SETTINGS[port]}", scheme)


def _environment(settings: Settings, node: Node) -> dict[str, Any]:
    """What one of several nodes is told beside what its service is. What the variables mean is said in each `run`."""
    told = told_inside(settings.layout)
    if node.service == "kafka":
        return {
            "KAFKA_NODE": node.number,
            "KAFKA_ADVERTISED_HOST": node.name,
            "KAFKA_CONTROLLER_HOST": node.name,
            **({"KAFKA_HOST_PORT": settings.port("kafka_port", node.number)} if node.number > 1 else {}),
            "KAFKA_VOTERS": told["KAFKA_VOTERS"],
            "KAFKA_REPLICATION": int(told["KAFKA_REPLICATION"]),
            "KAFKA_MIN_INSYNC_REPLICAS": int(told["KAFKA_MIN_INSYNC_REPLICAS"]),
        }
    if node.service == "elasticsearch":
        return {
            "ELASTICSEARCH_NODE": node.name,
            **{name: told[name] for name in ("ELASTICSEARCH_SEEDS", "ELASTICSEARCH_MASTERS")},
        }
    primary = {
        "POSTGRES_PRIMARY_HOST": settings.layout.of("postgres")[0].name,
        "POSTGRES_PRIMARY_PORT": PORTS["postgres"],
    }
    return {
        "POSTGRES_NODE": node.name,
        "POSTGRES_STANDBYS": told["POSTGRES_STANDBYS"],
        # Else some readers of YAML take it for a boolean.
        "POSTGRES_SYNCHRONOUS": DoubleQuotedScalarString(told["POSTGRES_SYNCHRONOUS"]),
        **(primary if node.number > 1 else {}),
    }


def _sized(settings: Settings, service: str) -> dict[str, Any]:
    """The topology's heap, if it is not the default, and a limit of memory that it fits in."""
    fields = type(settings).model_fields
    heap, usual = settings.layout.heaps().get(service), fields.get(f"{service}_heap")
    if heap is None or usual is None or heap == usual.default:
        return {}
    name, limit = service.upper(), round(BESIDE_HEAP * bytes_of(heap))
    small = limit <= bytes_of(fields[f"{service}_memory"].default)
    fits = {} if small else {"mem_limit": _variable(f"{name}_MEMORY", f"{-(-limit >> 20)}m")}
    return {"environment": {f"{name}_HEAP": _variable(f"{name}_HEAP", heap)}, **fits}


def _controller(name: str, own: Path | None) -> dict[str, Any]:
    """How the controller's container knows the topology."""
    if own is None:
        return {"environment": {"SINKBENCH_TOPOLOGY": name}}
    inside = PurePosixPath("topology") / own.name
    mounted = {"type": "bind", "source": plain(str(own)), "target": plain(str(_CHECKOUT_INSIDE / inside))}
    return {
        "environment": {"SINKBENCH_TOPOLOGY": plain(str(inside))},
        "volumes": [{**mounted, "read_only": True}],
    }


def _depends(nodes: Iterable[Node]) -> dict[str, Any]:
    return _unless_empty("depends_on", {node.name: {"condition": "service_healthy"} for node in nodes})


def _unless_empty(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(found)} if found else {}


def _variable(name: str, default: object) -> str:
    return f"${{SINKBENCH_{name}:-{default}}}"


def plain(text: str) -> str:
    """A text in which compose finds no variable."""
    return text.replace("$", "$$")


def _instead(items: list[Any]) -> CommentedSeq:
    """A list that takes the place of the inherited one; others are added to it."""
    found = CommentedSeq(items)
    found.yaml_set_ctag(Tag(suffix="!override"))
    found.fa.set_flow_style()
    return found


def as_text(found: Mapping[str, Any]) -> str:
    """An overlay as YAML."""
    yaml = YAML()
    yaml.width = 1000
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    yaml.dump(dict(found), text)
    return text.getvalue()
