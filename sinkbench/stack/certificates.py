"""Makes the files of a secured stack: an authority, one certificate for all nodes, passwords, and what services and
clients read (`security.py`). `node.p12` and `ca.p12` are for Java programs without PEM; Kafka has `bundle.pem`."""

import base64
import hashlib
import ipaddress
import os
import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sinkbench.errors import StackError
from sinkbench.secrets import conceal
from sinkbench.stack.security import ACCOUNT, SERVICES, Security, kept_security

Key = ec.EllipticCurvePrivateKey
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
PASSWORD_BYTES = 24
# Defaults of Elasticsearch's file realm.
ROUNDS, SALT_BYTES, HASH_BYTES = 10_000, 32, 32
AUTHORITY_LASTS, NODES_LAST = timedelta(days=3650), timedelta(days=397)
"""Web clients accept at most 397 days for a server's certificate."""
EARLIER = timedelta(hours=1)
"""Clocks of machines differ."""
AUTHORITY = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sinkbench authority")])
NODES = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sinkbench nodes")])


@dataclass(frozen=True)
class Signed:
    """A certificate and its private key in PEM; the key in PKCS #8, which Java reads."""

    certificate: bytes
    key: bytes = field(repr=False)

    @property
    def private_key(self) -> Key:
        return cast(Key, serialization.load_pem_private_key(self.key, None))


def make_authority(now: datetime) -> Signed:
    """Returns a new self-signed authority, valid for ten years from `now`."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = x509.CertificateBuilder().subject_name(AUTHORITY).add_extension(usage, critical=True)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return _signed(builder, key, key, now, AUTHORITY_LASTS)


def issue(authority: Signed, names: Sequence[str], now: datetime) -> Signed:
    """Returns a certificate for servers and clients of these names and IP addresses, signed by the authority."""
    signing = authority.private_key
    # A node is also a client of the other nodes.
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = x509.CertificateBuilder().subject_name(NODES).add_extension(usages, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectAlternativeName([*map(_alternative, names)]), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    builder = builder.add_extension(issuer, critical=False)
    return _signed(builder, ec.generate_private_key(ec.SECP256R1()), signing, now, NODES_LAST)


def keystore(signed: Signed, authority: bytes, password: str) -> bytes:
    """Returns key and certificate chain as PKCS #12, for Java programs that do not read PEM."""
    own, root = (x509.load_pem_x509_certificate(each) for each in (signed.certificate, authority))
    encryption = serialization.BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(b"sinkbench", signed.private_key, own, [root], encryption)


def truststore(authority: bytes, password: str) -> bytes:
    """Returns the authority's certificate as a PKCS #12 trust store for Java."""
    trusted = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(authority), b"authority")
    return pkcs12.serialize_java_truststore([trusted], serialization.BestAvailableEncryption(password.encode()))


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _signed(builder: x509.CertificateBuilder, key: Key, signing: Key, now: datetime, lasts: timedelta) -> Signed:
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.issuer_name(AUTHORITY).public_key(key.public_key()).add_extension(identifier, critical=False)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - EARLIER).not_valid_after(now + lasts)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    certificate = builder.sign(signing, hashes.SHA256()).public_bytes(pem)
    return Signed(certificate, key.private_bytes(pem, pkcs8, serialization.NoEncryption()))


def passwords_in(folder: Path, services: Collection[str]) -> Mapping[str, str]:
    """Returns the passwords that the folder has, else new ones for these services; all are concealed."""
    kept = kept_security(folder, services)
    return kept.passwords if kept else {name: conceal(secrets.token_urlsafe(PASSWORD_BYTES)) for name in services}


def secure_processes(folder: Path, owner: tuple[int, int] | None) -> Security:
    """Makes a new authority and node certificate, and passwords if there are none, in `folder`. `owner`, by default the
    current user, gets the nodes' key. Raises StackError if a file cannot be written."""
    try:
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        security = Security(folder, passwords_in(folder, SERVICES))
        # Before the files that depend on them, so that a second start continues an interrupted first one.
        write_file(folder / "passwords", security.lines.encode())
        now = datetime.now(UTC)
        authority = make_authority(now)
        signed = issue(authority, (*LOCAL_NAMES, socket.gethostname()), now)
        write_file(folder / "ca.pem", authority.certificate, mode=0o644)
        for name, content in files_of_processes(security, signed, authority.certificate).items():
            write_file(folder / name, content, owner)
    except OSError as error:
        raise StackError(f"{error.filename}: {error.strerror}; set SINKBENCH_HOME to a folder you can write") from None
    return security


def write_file(path: Path, content: bytes, owner: tuple[int, int] | None = None, mode: int = 0o600) -> None:
    """Writes a file atomically; no other account can read it in the meantime."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
        if owner is not None:
            os.fchown(file.fileno(), *owner)
    new.rename(path)


def files_of_processes(security: Security, signed: Signed, authority: bytes) -> dict[str, bytes]:
    """Returns the content of a local stack's security files by name."""
    passwords, hidden = security.passwords, security.passwords["elasticsearch"]
    camel = {"enableSSL": "true", "certificatePath": f"file:{security.ca}", "user": ACCOUNT, "password": hidden}
    # The hash of Elasticsearch's file realm: PBKDF2 with HMAC-SHA-512 (RFC 8018).
    salt = secrets.token_bytes(SALT_BYTES)
    hashed = hashlib.pbkdf2_hmac("sha512", hidden.encode(), salt, ROUNDS, HASH_BYTES)
    salted = "$".join(base64.b64encode(each).decode() for each in (salt, hashed))
    return {
        "node.pem": signed.certificate,
        "node.key": signed.key,
        "bundle.pem": signed.key + signed.certificate + authority,
        "node.p12": keystore(signed, authority, passwords["keystore"]),
        "ca.p12": truststore(authority, passwords["keystore"]),
        "users-connect": f"{ACCOUNT}={passwords['connect']}\n".encode(),
        "users-elasticsearch": f"{ACCOUNT}:{{PBKDF2}}{ROUNDS}${salted}\n".encode(),
        # Java's properties have escapes.
        "camel.properties": "".join(
            "camel.component.elasticsearch.{}={}\n".format(key, value.replace("\\", "\\\\"))
            for key, value in camel.items()
        ).encode(),
    }
