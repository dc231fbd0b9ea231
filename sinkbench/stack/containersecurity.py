"""The service `security` of docker-compose.secure.yml: makes the security files of all containers at each `up`.
Services see only their own volume. The authority and the passwords are kept; the nodes' certificate is new each time.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from loadgen.clientconfig import format_client_config
from sinkbench.stack.certificates import Signed, issue, make_authority
from sinkbench.stack.securing import LOCAL_NAMES, PASSWORD_BYTES, write_file
from sinkbench.stack.security import ACCOUNT, OF_CONTAINERS, Security, kept_security
from sinkbench.stack.securityfiles import files_of_processes
from sinkbench.topology import MOST_WORKERS

INSIDE = Path("/security")
_FILES = {
    "kafka": ("ca.pem", "bundle.pem", "client.properties"),
    "connect": ("ca.pem", "node.p12", "ca.p12", "users-connect", "camel.properties", "curl-connect"),
    "elasticsearch": ("ca.pem", "node.pem", "node.key", "users-elasticsearch", "curl-elasticsearch"),
    "postgres": ("ca.pem", "node.pem", "node.key"),
    "pgbouncer": ("ca.pem", "node.pem", "node.key"),
    "loadgen": ("ca.pem", "node.pem", "node.key", "users-loadgen", "client.properties"),
    "controller": ("ca.pem", "passwords"),
}
# The variables of each service, by prefix.
_VARIABLES = {
    "kafka": ("KAFKA_",),
    "connect": ("CAMEL_", "CONNECT_", "ELASTICSEARCH_", "KAFKA_", "POSTGRES_"),
    "elasticsearch": ("ELASTICSEARCH_", "TLS_"),
    "postgres": ("POSTGRES_", "TLS_"),
    "pgbouncer": ("POSTGRES_", "TLS_"),
    "loadgen": ("LOADGEN_",),
}
MOST_LOADGENS = 4


def names_of_containers(nodes: Sequence[str], project: str) -> list[str]:
    """Returns all names of containers: those for the host, services, and single containers of scaled services."""
    scaled = {"connect": MOST_WORKERS, "loadgen": MOST_LOADGENS}
    own = [f"{project}-{service}-{number}" for service, most in scaled.items() for number in range(1, most + 1)]
    return [*LOCAL_NAMES, *nodes, *scaled, *own]


def files_of_containers(security: Security, signed: Signed, authority: bytes) -> dict[str, dict[str, bytes]]:
    """Returns what each service's containers read, by service and file name."""
    inside, passwords = replace(security, folder=INSIDE), security.passwords
    found = {
        **files_of_processes(inside, signed, authority),
        "ca.pem": authority,
        "users-loadgen": f"{ACCOUNT}:{passwords['loadgen']}\n".encode(),
        "client.properties": format_client_config(inside.kafka_settings).encode(),
        "curl-connect": _for_curl(inside.ca, passwords["connect"]),
        "curl-elasticsearch": _for_curl(inside.ca, passwords["elasticsearch"]),
        "passwords": inside.lines.encode(),
    }
    variables = {
        **inside.environment,
        "LOADGEN_CLIENT_CONFIG": str(INSIDE / "client.properties"),
        "LOADGEN_TLS_CERTIFICATE": str(INSIDE / "node.pem"),
        "LOADGEN_TLS_KEY": str(INSIDE / "node.key"),
        "LOADGEN_USERS": str(INSIDE / "users-loadgen"),
    }
    files = {service: {name: found[name] for name in names} for service, names in _FILES.items()}
    for service, prefixes in _VARIABLES.items():
        own = {name: value for name, value in variables.items() if name.startswith(prefixes)}
        files[service]["environment"] = "".join(f"{name}={shlex.quote(each)}\n" for name, each in own.items()).encode()
    return files


def _for_curl(ca: Path, password: str) -> bytes:
    """A file for `curl --config`. An engine may give containers a proxy for other addresses than their own."""
    return f'cacert = "{ca}"\nuser = "{ACCOUNT}:{password}"\nnoproxy = "*"\n'.encode()


def make_all(folder: Path, nodes: Sequence[str], project: str) -> None:
    """Writes the files of all services to their folders below `folder`; passwords that exist are kept."""
    kept = kept_security(folder / "controller", OF_CONTAINERS)
    passwords = {name: secrets.token_urlsafe(PASSWORD_BYTES) for name in OF_CONTAINERS}
    security = kept or Security(folder, passwords)
    for service in ("authority", *_FILES):
        (folder / service).mkdir(exist_ok=True)
    certificate, key = (folder / "authority" / name for name in ("ca.pem", "ca.key"))
    now = datetime.now(UTC)
    if not (certificate.exists() and key.exists()):
        made = make_authority(now)
        write_file(key, made.key)
        write_file(certificate, made.certificate)
    authority = Signed(certificate.read_bytes(), key.read_bytes())
    signed = issue(authority, names_of_containers(nodes, project), now)
    for service, files in files_of_containers(security, signed, authority.certificate).items():
        for name, content in files.items():
            # Accounts differ between services; access is limited by who has the volume.
            write_file(folder / service / name, content, mode=0o644)


if __name__ == "__main__":
    make_all(INSIDE, sys.argv[1:], os.environ["COMPOSE_PROJECT_NAME"])
