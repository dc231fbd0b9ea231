"""What security changes of the containers: an overlay, which `docker compose -f` reads last, and the names in there.

Pure: values in, text and values out. No secret is in the overlay: the containers of each service see a folder of their
own, with files that `securing.py` makes, and their environment only says where that is.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from sinkbench.stack.engine import SECURITY_LABEL
from sinkbench.stack.overlay import BASE, DATA, PORTS, as_text, plain, told_inside
from sinkbench.topology import MOST_WORKERS, Topology

__all__ = [
    "INSIDE",
    "MOUNTED",
    "folder_of_containers",
    "names_of_containers",
    "nodes_by_name",
    "security_overlay",
    "told_of_security",
]

INSIDE: Final = Path("/security")
"""Where a container finds its files."""
MOUNTED: Final = "mounted"
"""The folder, among those that are kept, that has one for each service."""
MOST_LOADGENS = 8
_HEAD = f"# What security changes of {BASE}. sinkbench writes it anew with every command.\n"
_SCALED = {"connect": MOST_WORKERS, "loadgen": MOST_LOADGENS}

_CURL = ("CMD", "curl", "-fsS", "-o", "/dev/null", "-K")
_PSQL = (
    ". $$SECRETS && PGPASSWORD=$$POSTGRES_PASSWORD PGSSLMODE=verify-full PGSSLROOTCERT=$$TLS_CA"
    ' psql -qh 127.0.0.1 -p {port} -U $$POSTGRES_USER -d {database} -c "{command}" > /dev/null'
)
_ASK_LOADGEN = (
    "import ssl, urllib.request as u; "
    f"tls = u.HTTPSHandler(context=ssl.create_default_context(cafile='{INSIDE}/ca.pem')); "
    f"u.build_opener(u.ProxyHandler({{}}), tls).open('https://127.0.0.1:{PORTS['loadgen']}/health', timeout=4)"
)
# How each service is asked whether it is well; docker-compose.yml says the same without TLS.
_CHECKS: dict[str, list[str]] = {
    "kafka": ["CMD-SHELL", f"kcat -F {INSIDE}/client.properties -b $$KAFKA_ADVERTISED_HOST:$$KAFKA_PORT -L -m 4"],
    "connect": [*_CURL, f"{INSIDE}/curl-connect", f"https://127.0.0.1:{PORTS['connect']}/connectors"],
    "elasticsearch": [
        *(*_CURL, f"{INSIDE}/curl-elasticsearch"),
        f"https://127.0.0.1:{PORTS['elasticsearch']}/_cluster/health?wait_for_status=yellow&timeout=4s",
    ],
    "postgres": ["CMD-SHELL", _PSQL.format(port="$$POSTGRES_PORT", database="postgres", command="SELECT 1")],
    "pgbouncer": ["CMD-SHELL", _PSQL.format(port="$$PGBOUNCER_PORT", database="pgbouncer", command="SHOW VERSION")],
    "loadgen": ["CMD", "python", "-c", _ASK_LOADGEN],
}


def folder_of_containers(home: Path) -> Path:
    """Where certificates and passwords of containers are kept in SINKBENCH_HOME."""
    return home / "containers-secure"


def nodes_by_name(topology: Topology) -> tuple[str, ...]:
    """The nodes that others reach by a name of their own, on the project's network."""
    return tuple(node.name for node in topology.nodes if node.service not in _SCALED)


def names_of_containers(topology: Topology, project: str) -> tuple[str, ...]:
    """All names by which containers are reached on the project's network."""
    scaled = [name for service in _SCALED for name in _containers_of(service, project)]
    return (*nodes_by_name(topology), *scaled)


def _containers_of(service: str, project: str) -> list[str]:
    """The names of a scaled service's containers, as compose gives them."""
    return [service, *(f"{project}-{service}-{number}" for number in range(1, _SCALED[service] + 1))]


def told_of_security(topology: Topology, project: str) -> dict[str, dict[str, str]]:
    """What services are told of security beside files and passwords, by the service."""
    several = len(topology.of("elasticsearch")) > 1
    return {
        "connect": {
            # The name of its container, which it has a certificate for.
            "CONNECT_ADVERTISED_BY": "dns",
            "ELASTICSEARCH_URLS": told_inside(topology, "https")["ELASTICSEARCH_URLS"],
        },
        "elasticsearch": {"ELASTICSEARCH_TRANSPORT_LISTEN": "0.0.0.0"} if several else {},  # noqa: S104
        "loadgen": {
            "LOADGEN_PRIVATE_NETWORK": "",
            "LOADGEN_HOSTS": " ".join(_containers_of("loadgen", project)),
        },
    }


def security_overlay(topology: Topology, folder: Path, mark: str) -> str:
    """The text of the overlay, for a file anywhere.

    Args:
        topology: which nodes there are.
        folder: where the files are kept.
        mark: of the passwords.
    """
    services: dict[str, Any] = {}
    volumes: dict[str, None] = {}
    nodes = [(name, service) for service in DATA for name in (node.name for node in topology.of(service))]
    for name, service in [*nodes, ("pgbouncer", "pgbouncer"), ("connect", "connect"), ("loadgen", "loadgen")]:
        mounts: list[Any] = [_mounted(folder, service)]
        if service in DATA:
            # Data know the passwords, and a cluster keeps in them who belongs to it.
            of = " ".join([*(node.name for node in topology.of(service)), mark])
            volume = f"{name}-secure-{hashlib.sha256(of.encode()).hexdigest()[:8]}"
            mounts.append(f"{volume}:{DATA[service]}")
            volumes[volume] = None
        services[name] = {
            "environment": {"SECRETS": str(INSIDE / "environment")},
            "labels": {SECURITY_LABEL: DoubleQuotedScalarString(mark)},
            "volumes": mounts,
            "healthcheck": {"test": [DoubleQuotedScalarString(word) for word in _CHECKS[service]]},
        }
    services["controller"] = {
        "environment": {"SINKBENCH_SECURITY": DoubleQuotedScalarString("on")},
        "labels": {SECURITY_LABEL: DoubleQuotedScalarString(mark)},
        "volumes": [_mounted(folder, "controller")],
    }
    return _HEAD + as_text({"services": services, "volumes": volumes})


def _mounted(folder: Path, service: str) -> dict[str, Any]:
    return {
        "type": "bind",
        "source": plain(str(folder / MOUNTED / service)),
        "target": str(INSIDE),
        "read_only": True,
        # The engine would make an empty folder.
        "bind": {"create_host_path": False},
    }
