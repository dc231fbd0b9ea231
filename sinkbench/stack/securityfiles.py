"""Files and variables that the services of a secured stack read. Pure. `node.p12` and `ca.p12` are for Java programs
that do not read PEM; `bundle.pem` (certificate and key) is for Kafka.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from pathlib import Path

from sinkbench.stack.certificates import Signed, keystore, truststore
from sinkbench.stack.security import ACCOUNT, Security

# Defaults of Elasticsearch's file realm.
ROUNDS, SALT_BYTES, HASH_BYTES = 10_000, 32, 32


def files_of_processes(security: Security, signed: Signed, authority: bytes) -> dict[str, bytes]:
    """Returns the content of a local stack's security files by name."""
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
    settings = {"enableSSL": "true", "certificatePath": f"file:{ca}", "user": ACCOUNT, "password": password}
    escaped = {key: value.replace("\\", "\\\\") for key, value in settings.items()}
    return "".join(f"camel.component.elasticsearch.{key}={value}\n" for key, value in escaped.items()).encode()


def _hashed(password: str) -> str:
    """The hash of Elasticsearch's file realm: PBKDF2 with HMAC-SHA-512 (RFC 8018)."""
    salt = secrets.token_bytes(SALT_BYTES)
    found = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ROUNDS, HASH_BYTES)
    return f"{{PBKDF2}}{ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(found).decode()}"
