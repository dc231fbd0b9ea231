"""The service `security` of docker-compose.secure.yml: makes the security files of all containers at each `up`.
Services see only their own volume. Authority and passwords are kept; the nodes' certificate is new each time."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from loadgen.client import format_client_config
from sinkbench.errors import StackError
from sinkbench.stack import certificates
from sinkbench.stack.security import ACCOUNT, OF_CONTAINERS, Security
from sinkbench.topology import MOST_WORKERS

INSIDE = Path("/security")
NODE = ("ca.pem", "node.pem", "node.key")
# The files of each service, and the prefixes of its variables.
OWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "kafka": (("ca.pem", "bundle.pem", "client.properties"), ("KAFKA_",)),
    "connect": (
        ("ca.pem", "node.p12", "ca.p12", "users-connect", "camel.properties", "curl-connect"),
        ("CAMEL_", "CONNECT_", "ELASTICSEARCH_", "KAFKA_", "POSTGRES_"),
    ),
    "elasticsearch": ((*NODE, "users-elasticsearch", "curl-elasticsearch"), ("ELASTICSEARCH_", "TLS_")),
    "postgres": (NODE, ("POSTGRES_", "TLS_")),
    "pgbouncer": (NODE, ("POSTGRES_", "TLS_")),
    "loadgen": ((*NODE, "users-loadgen", "client.properties"), ("LOADGEN_",)),
    "controller": (("ca.pem", "passwords"), ()),
}
MOST_LOADGENS = 4


def copied(home: Path, files: Mapping[str, bytes]) -> Path:
    """Keeps files of the controller's for a controller outside; returns their folder. Raises StackError."""
    folder = home / "containers-secure"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in files.items():
            certificates.write_file(folder / name, content)
    except OSError as error:
        raise StackError(f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to another folder") from None
    return folder


def files_of_containers(
    security: Security, signed: certificates.Signed, authority: bytes
) -> dict[str, dict[str, bytes]]:
    """Returns what each service's containers read, by service and file name."""
    inside, passwords = replace(security, folder=INSIDE), security.passwords
    found = {
        **certificates.files_of_processes(inside, signed, authority),
        "ca.pem": authority,
        "users-loadgen": f"{ACCOUNT}:{passwords['loadgen']}\n".encode(),
        "client.properties": format_client_config(inside.kafka_settings).encode(),
        "passwords": inside.lines.encode(),
    }
    for name in ("connect", "elasticsearch"):
        # For `curl --config`. An engine may give containers a proxy for other addresses than their own.
        user = f'user = "{ACCOUNT}:{passwords[name]}"'
        found[f"curl-{name}"] = f'cacert = "{inside.ca}"\n{user}\nnoproxy = "*"\n'.encode()
    variables = {
        **inside.environment,
        "LOADGEN_CLIENT_CONFIG": str(INSIDE / "client.properties"),
        "LOADGEN_TLS_CERTIFICATE": str(INSIDE / "node.pem"),
        "LOADGEN_TLS_KEY": str(INSIDE / "node.key"),
        "LOADGEN_USERS": str(INSIDE / "users-loadgen"),
    }
    files = {}
    for service, (names, prefixes) in OWN.items():
        files[service] = {name: found[name] for name in names}
        own = "".join(f"{name}={shlex.quote(each)}\n" for name, each in variables.items() if name.startswith(prefixes))
        if own:
            files[service]["environment"] = own.encode()
    return files


def make_all(folder: Path, nodes: Sequence[str], project: str) -> None:
    """Writes the files of all services to their folders below `folder`; passwords that exist are kept."""
    security = Security(folder, certificates.passwords_in(folder / "controller", OF_CONTAINERS))
    for service in ("authority", *OWN):
        (folder / service).mkdir(exist_ok=True)
    certificate, key = (folder / "authority" / name for name in ("ca.pem", "ca.key"))
    now = datetime.now(UTC)
    if not (certificate.exists() and key.exists()):
        made = certificates.make_authority(now)
        certificates.write_file(key, made.key)
        certificates.write_file(certificate, made.certificate)
    authority = certificates.Signed(certificate.read_bytes(), key.read_bytes())
    # Those for the host, services, and single containers of scaled services.
    scaled = {"connect": MOST_WORKERS, "loadgen": MOST_LOADGENS}
    own = [f"{project}-{service}-{number}" for service, most in scaled.items() for number in range(1, most + 1)]
    signed = certificates.issue(authority, [*certificates.LOCAL_NAMES, *nodes, *scaled, *own], now)
    for service, files in files_of_containers(security, signed, authority.certificate).items():
        for name, content in files.items():
            # Accounts differ between services; access is limited by who has the volume.
            certificates.write_file(folder / service / name, content, mode=0o644)


if __name__ == "__main__":
    make_all(INSIDE, sys.argv[1:], os.environ["COMPOSE_PROJECT_NAME"])
