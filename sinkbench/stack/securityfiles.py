"""What the services of a secured stack read, as files and variables. Pure: certificates and passwords in, content out.

- `node.pem`, `node.key`: the certificate of all nodes, and its key.
- `node.p12`, `ca.p12`: both, and what is trusted, for Java programs that read no PEM.
- `bundle.pem`: certificate and key in one file, for Kafka.
- `users-connect`, `users-elasticsearch`: the accounts as these services read them.
- `camel.properties`: how Camel reaches Elasticsearch.

Containers read more: `containersecurity.py` says what.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from pathlib import Path

from sinkbench.stack.certificates import Signed, keystore, truststore
from sinkbench.stack.security import ACCOUNT, Security

__all__ = ["files_of_processes"]

# Of Elasticsearch's file realm: its own default.
ROUNDS, SALT_BYTES, HASH_BYTES = 10_000, 32, 32


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
        "bundle.pem": signed.key + signed.certificate + authority,
        "node.p12": keystore(signed, authority, passwords["keystore"]),
        "ca.p12": truststore(authority, passwords["keystore"]),
        "users-connect": f"{ACCOUNT}={passwords['connect']}\n".encode(),
        "users-elasticsearch": f"{ACCOUNT}:{_hashed(passwords['elasticsearch'])}\n".encode(),
        "camel.properties": _for_camel(security.ca, passwords["elasticsearch"]),
    }


def _for_camel(ca: Path, password: str) -> bytes:
    """What Camel's component for Elasticsearch is told, as Java's properties."""
    settings = {"enableSSL": "true", "certificatePath": f"file:{ca}", "user": ACCOUNT, "password": password}
    escaped = {key: value.replace("\\", "\\\\") for key, value in settings.items()}
    return "".join(f"camel.component.elasticsearch.{key}={value}\n" for key, value in escaped.items()).encode()


def _hashed(password: str) -> str:
    """As Elasticsearch's file realm keeps a password: PBKDF2 with HMAC-SHA-512 (RFC 8018)."""
    salt = secrets.token_bytes(SALT_BYTES)
    found = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ROUNDS, HASH_BYTES)
    return f"{{PBKDF2}}{ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(found).decode()}"
