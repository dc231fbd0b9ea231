"""What a secured stack keeps beside its data: certificates and keys, and a password of each service.

- `ca.pem`: the authority's certificate, which clients trust.
- `ca.key`: its key. Without it `ca.pem`, `node.pem` and `node.key` are yours, and are never replaced.
- `node.pem`, `node.key`: the certificate of all nodes, and its key.
- `node.p12`, `ca.p12`: both, and what is trusted, for Java programs that read no PEM.
- `bundle.pem`: certificate and key in one file, for Kafka.
- `passwords`: NAME=password for each service.
- `users-connect`, `users-elasticsearch`: the accounts as these services read them.
- `camel.properties`: how Camel reaches Elasticsearch.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from loadgen.certificate import WARN_BEFORE
from sinkbench.errors import StackError
from sinkbench.secrets import conceal
from sinkbench.services.access import Access
from sinkbench.stack import Say
from sinkbench.stack.certificates import (
    Signed,
    as_pkcs8,
    issue,
    keystore,
    make_authority,
    truststore,
    valid_until,
    wrong_with,
)

__all__ = ["ACCOUNT", "SERVICES", "WITHOUT_SECURITY", "Security", "kept_security", "prepare_security"]

ACCOUNT = "sinkbench"
"""The user of every service, and PostgreSQL's database. Without security it is its password, too."""
WITHOUT_SECURITY = {
    "ELASTICSEARCH_TLS": "false",
    "POSTGRES_CA": "",
    "POSTGRES_SSLMODE": "prefer",
}
"""What connector files refer to, where every service answers everybody on this machine."""
SERVICES = ("kafka", "connect", "elasticsearch", "postgres", "keystore")
"""What has a password; PgBouncer's users are those of PostgreSQL."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
FOR_OURS = "delete ca.pem, node.pem and node.key there for certificates of sinkbench's own"
RENEWED = timedelta(days=30)
"""A certificate of ours that lasts no longer than that is made anew at a start."""
# Of Elasticsearch's file realm: its own default.
ROUNDS, SALT_BYTES, HASH_BYTES = 10_000, 32, 32
PASSWORD_BYTES = 24


@dataclass(frozen=True)
class Security:
    """What clients and services of a secured stack need.

    Attributes:
        folder: where the files are; see above.
        passwords: by the service's name.
    """

    folder: Path
    passwords: Mapping[str, str] = field(repr=False)

    @property
    def ca(self) -> Path:
        """The certificate that clients trust."""
        return self.folder / "ca.pem"

    def access(self, service: str) -> Access:
        """How an HTTP service of the stack is asked."""
        return Access(user=ACCOUNT, password=self.passwords[service], ca=self.ca)

    @property
    def kafka_settings(self) -> dict[str, str]:
        """What Kafka's clients want, by librdkafka's names."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": ACCOUNT,
            "sasl.password": self.passwords["kafka"],
            "ssl.ca.location": str(self.ca),
        }

    @property
    def environment(self) -> dict[str, str]:
        """What the run scripts are told, and what connector files refer to by ${env:...}."""
        return {
            "TLS_CA": str(self.ca),
            "TLS_CERTIFICATE": str(self.folder / "node.pem"),
            "TLS_KEY": str(self.folder / "node.key"),
            "KAFKA_CA": str(self.ca),
            "KAFKA_KEYSTORE": str(self.folder / "bundle.pem"),
            "KAFKA_USER": ACCOUNT,
            "KAFKA_PASSWORD": self.passwords["kafka"],
            "CONNECT_KEYSTORE": str(self.folder / "node.p12"),
            "CONNECT_TRUSTSTORE": str(self.folder / "ca.p12"),
            "CONNECT_KEYSTORE_PASSWORD": self.passwords["keystore"],
            "CONNECT_USERS": str(self.folder / "users-connect"),
            "ELASTICSEARCH_USERS": str(self.folder / "users-elasticsearch"),
            # For connector files.
            "ELASTICSEARCH_CA": str(self.ca),
            "ELASTICSEARCH_TLS": "true",
            "ELASTICSEARCH_USER": ACCOUNT,
            "ELASTICSEARCH_PASSWORD": self.passwords["elasticsearch"],
            # Camel reads this file by itself. Connector files could not leave out what is in it where there is no TLS,
            # and Camel refuses empty values. Camel 3.21 overlooks a component's own variables, but not these.
            "CAMEL_COMPONENT_PROPERTIES_LOCATION": f"file:{self.folder / 'camel.properties'}",
            "CAMEL_COMPONENT_PROPERTIES_ENCODING": "UTF-8",
            "POSTGRES_CA": quote(str(self.ca)),
            "POSTGRES_PASSWORD": self.passwords["postgres"],
            "POSTGRES_SSLMODE": "verify-full",
        }


def kept_security(folder: Path) -> Security | None:
    """What the folder of a stack holds that was started before; None if it was not."""
    try:
        lines = (folder / "passwords").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    passwords = {name: conceal(password) for name, _, password in (line.partition("=") for line in lines)}
    return Security(folder, passwords) if passwords.keys() >= set(SERVICES) else None


def prepare_security(folder: Path, owner: tuple[int, int] | None, say: Say) -> Security:
    """Makes what is missing, and renews a certificate of ours that will expire or is not for these nodes.

    Args:
        folder: where the files are kept.
        owner: user and group of the services, who get the nodes' key; None if that is who we are.

    Raises:
        StackError: certificates of the user's own cannot be used, or a file cannot be written.
    """
    try:
        folder.mkdir(mode=0o711, exist_ok=True)
        kept = kept_security(folder)
        passwords = kept.passwords if kept else {name: secrets.token_urlsafe(PASSWORD_BYTES) for name in SERVICES}
        # Before a file that depends on them, so that a second start finds what the first one has begun.
        _write(folder / "passwords", "".join(f"{name}={each}\n" for name, each in passwords.items()).encode())
        signed, authority = _certificates(folder, (*LOCAL_NAMES, socket.gethostname()), say)
        of_services = {
            "node.pem": signed.certificate,
            "node.key": signed.key,
            "bundle.pem": as_pkcs8(signed.key) + signed.certificate + authority,
            "node.p12": keystore(signed, authority, passwords["keystore"]),
            "ca.p12": truststore(authority, passwords["keystore"]),
            "users-connect": f"{ACCOUNT}={passwords['connect']}\n".encode(),
            "users-elasticsearch": f"{ACCOUNT}:{_hashed(passwords['elasticsearch'])}\n".encode(),
            "camel.properties": _for_camel(folder / "ca.pem", passwords["elasticsearch"]),
        }
        for name, content in of_services.items():
            _write(folder / name, content, owner)
        # The user's own may be readable by nobody else.
        _write(folder / "ca.pem", authority, mode=0o644)
    except OSError as error:
        raise StackError(f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to a folder you can write") from None
    except ValueError:
        files = "ca.pem, ca.key, node.pem and node.key"
        raise StackError(f"{folder}: holds a damaged certificate or key; delete {files} there") from None
    for each in passwords.values():
        conceal(each)
    return Security(folder, passwords)


def _certificates(folder: Path, names: tuple[str, ...], say: Say) -> tuple[Signed, bytes]:
    """The nodes' certificate and the authority's, as they are or made anew."""
    now = datetime.now(UTC)
    ca, ca_key, node, node_key = (folder / name for name in ("ca.pem", "ca.key", "node.pem", "node.key"))
    given = [path for path in (ca, node, node_key) if path.exists()]
    if given and not ca_key.exists():
        if absent := [path for path in (ca, node, node_key) if path not in given]:
            raise StackError(f"{absent[0]}: is missing; put it there, or {FOR_OURS}")
        signed, authority = Signed(node.read_bytes(), node_key.read_bytes()), ca.read_bytes()
        try:
            problem = wrong_with(signed, authority, (), now)
        except StackError as error:
            problem = str(error)
        if problem is not None:
            raise StackError(f"{node}: {problem}; replace it, or {FOR_OURS}")
        if (end := valid_until(signed.certificate)) - now < WARN_BEFORE:
            say(f"warning: {node} expires at {end:%Y-%m-%d %H:%M} UTC; replace it before")
        return signed, authority
    if ca_key.exists() and ca.exists() and valid_until(ca.read_bytes()) - now > RENEWED:
        root = Signed(ca.read_bytes(), ca_key.read_bytes())
    else:
        root = make_authority(now)
        _write(ca_key, root.key)
        _write(ca, root.certificate, mode=0o644)
    if node.exists() and node_key.exists():
        signed = Signed(node.read_bytes(), node_key.read_bytes())
        if wrong_with(signed, root.certificate, names, now + RENEWED) is None:
            return signed, root.certificate
        say("making a new certificate of the nodes")
    return issue(root, names, now), root.certificate


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


def _write(path: Path, content: bytes, owner: tuple[int, int] | None = None, mode: int = 0o600) -> None:
    """Writes a file that nobody else can read meanwhile, whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
        if owner is not None:
            os.fchown(file.fileno(), *owner)
    new.rename(path)
