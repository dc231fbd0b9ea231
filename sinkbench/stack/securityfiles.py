"""What the services of a secured stack read, as files and variables. Pure: certificates and passwords in, content out.

- `node.pem`, `node.key`: the certificate of all nodes, and its key.
- `node.p12`, `ca.p12`: both, and what is trusted, for Java programs that read no PEM.
- `bundle.pem`: certificate and key in one file, for Kafka.
- `users-connect`, `users-elasticsearch`, `users-loadgen`: the accounts as these services read them.
- `camel.properties`: how Camel reaches Elasticsearch.
- `client.properties`: how librdkafka reaches Kafka.
- `curl-connect`, `curl-elasticsearch`: how curl does these two.
- `environment`: variables, as a shell reads them.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path

from loadgen.clientconfig import format_client_config
from sinkbench.stack.certificates import Signed, as_pkcs8, keystore, truststore
from sinkbench.stack.security import ACCOUNT, Security

__all__ = ["files_of_containers", "files_of_processes", "shell_lines"]

# Of Elasticsearch's file realm: its own default.
ROUNDS, SALT_BYTES, HASH_BYTES = 10_000, 32, 32

_OF_CONTAINERS = {
    "kafka": ("ca.pem", "bundle.pem", "client.properties"),
    "connect": ("ca.pem", "node.p12", "ca.p12", "users-connect", "camel.properties", "curl-connect"),
    "elasticsearch": ("ca.pem", "node.pem", "node.key", "users-elasticsearch", "curl-elasticsearch"),
    "postgres": ("ca.pem", "node.pem", "node.key"),
    "pgbouncer": ("ca.pem", "node.pem", "node.key"),
    "loadgen": ("ca.pem", "node.pem", "node.key", "users-loadgen", "client.properties"),
    "controller": ("ca.pem", "passwords"),
}
# The variables of each, by what their names begin with.
_TOLD = {
    "kafka": ("KAFKA_",),
    "connect": ("CAMEL_", "CONNECT_", "ELASTICSEARCH_", "KAFKA_", "POSTGRES_"),
    "elasticsearch": ("ELASTICSEARCH_", "TLS_"),
    "postgres": ("POSTGRES_", "TLS_"),
    "pgbouncer": ("POSTGRES_", "TLS_"),
    "loadgen": (),
}
_LOADGEN = {
    "LOADGEN_CLIENT_CONFIG": "client.properties",
    "LOADGEN_TLS_CERTIFICATE": "node.pem",
    "LOADGEN_TLS_KEY": "node.key",
    "LOADGEN_USERS": "users-loadgen",
}


def files_of_processes(security: Security, signed: Signed, authority: bytes) -> dict[str, bytes]:
    """The content of what a local stack's services read, by the file's name.

    Args:
        security: with the folder in which they find it.
        signed: the nodes' certificate and its key.
        authority: the certificate of who has signed it.
    """
    passwords = security.passwords
    return {
        "node.pem": signed.certificate,
        "node.key": signed.key,
        "bundle.pem": as_pkcs8(signed.key) + signed.certificate + authority,
        "node.p12": keystore(signed, authority, passwords["keystore"]),
        "ca.p12": truststore(authority, passwords["keystore"]),
        "users-connect": f"{ACCOUNT}={passwords['connect']}\n".encode(),
        "users-elasticsearch": f"{ACCOUNT}:{_hashed(passwords['elasticsearch'])}\n".encode(),
        "camel.properties": _for_camel(security.ca, passwords["elasticsearch"]),
    }


def files_of_containers(
    security: Security, signed: Signed, authority: bytes, further: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, bytes]]:
    """The content of what each service's containers read, and nothing of others', by the service and the file's name.

    Args:
        security, signed, authority: as of processes.
        further: what variables a service is told besides, by its name.
    """
    passwords = security.passwords
    found = {
        **files_of_processes(security, signed, authority),
        "ca.pem": authority,
        "users-loadgen": f"{ACCOUNT}:{passwords['loadgen']}\n".encode(),
        "client.properties": format_client_config(security.kafka_settings).encode(),
        "curl-connect": _for_curl(security.ca, passwords["connect"]),
        "curl-elasticsearch": _for_curl(security.ca, passwords["elasticsearch"]),
        "passwords": security.lines.encode(),
    }
    return {
        service: {
            **{name: found[name] for name in names},
            **(
                {"environment": shell_lines({**_told(security, service), **further.get(service, {})}).encode()}
                if service in _TOLD
                else {}
            ),
        }
        for service, names in _OF_CONTAINERS.items()
    }


def shell_lines(variables: Mapping[str, str]) -> str:
    """A line NAME=VALUE for each variable, which a shell reads as it stands."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())


def _told(security: Security, service: str) -> dict[str, str]:
    if service == "loadgen":
        return {name: str(security.folder / file) for name, file in _LOADGEN.items()}
    return {name: value for name, value in security.environment.items() if name.startswith(_TOLD[service])}


def _for_camel(ca: Path, password: str) -> bytes:
    """What Camel's component for Elasticsearch is told, as Java's properties."""
    settings = {"enableSSL": "true", "certificatePath": f"file:{ca}", "user": ACCOUNT, "password": password}
    escaped = {key: value.replace("\\", "\\\\") for key, value in settings.items()}
    return "".join(f"camel.component.elasticsearch.{key}={value}\n" for key, value in escaped.items()).encode()


def _for_curl(ca: Path, password: str) -> bytes:
    """A file for `curl --config`. An engine may give containers a proxy, for other addresses than their own."""
    settings = {"cacert": str(ca), "user": f"{ACCOUNT}:{password}", "noproxy": "*"}
    escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in settings.items()}
    return "".join(f'{key} = "{value}"\n' for key, value in escaped.items()).encode()


def _hashed(password: str) -> str:
    """As Elasticsearch's file realm keeps a password: PBKDF2 with HMAC-SHA-512 (RFC 8018)."""
    salt = secrets.token_bytes(SALT_BYTES)
    found = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ROUNDS, HASH_BYTES)
    return f"{{PBKDF2}}{ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(found).decode()}"
