"""Certificates of a stack: an authority, and one certificate for all nodes. Pure: PEM in, PEM out."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LASTS, NODES_LAST = timedelta(days=3650), timedelta(days=397)
"""Web clients accept at most 397 days for a server's certificate."""
EARLIER = timedelta(hours=1)
"""Clocks of machines differ."""


@dataclass(frozen=True)
class Signed:
    """A certificate and its private key in PEM; the key in PKCS #8, which Java reads."""

    certificate: bytes
    key: bytes = field(repr=False)


def make_authority(now: datetime) -> Signed:
    """Returns a new self-signed authority, valid for ten years from `now`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named("sinkbench authority")
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    extensions = [(x509.BasicConstraints(ca=True, path_length=0), True), (usage, True)]
    return _made(name, name, key, key, now, AUTHORITY_LASTS, extensions)


def issue(authority: Signed, names: Sequence[str], now: datetime) -> Signed:
    """Returns a certificate for servers and clients of these names and IP addresses, signed by the authority."""
    signer = x509.load_pem_x509_certificate(authority.certificate)
    signing = _key_of(authority)
    # A node is also a client of the other nodes.
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.SubjectAlternativeName([_alternative(name) for name in names]), False),
        (usages, False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), False),
    ]
    key = ec.generate_private_key(ec.SECP256R1())
    return _made(_named("sinkbench nodes"), signer.subject, key, signing, now, NODES_LAST, extensions)


def keystore(signed: Signed, authority: bytes, password: str) -> bytes:
    """Returns key and certificate chain as PKCS #12, for Java programs that do not read PEM."""
    certificates = [x509.load_pem_x509_certificate(each) for each in (signed.certificate, authority)]
    encryption = BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(
        b"sinkbench", _key_of(signed), certificates[0], certificates[1:], encryption
    )


def truststore(authority: bytes, password: str) -> bytes:
    """Returns the authority's certificate as a PKCS #12 trust store for Java."""
    trusted = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(authority), b"authority")
    return pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(password.encode()))


def _key_of(signed: Signed) -> ec.EllipticCurvePrivateKey:
    return cast(ec.EllipticCurvePrivateKey, load_pem_private_key(signed.key, None))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _made(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signing: ec.EllipticCurvePrivateKey,
    now: datetime,
    lasts: timedelta,
    extensions: Sequence[tuple[x509.ExtensionType, bool]],
) -> Signed:
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - EARLIER).not_valid_after(now + lasts)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    certificate = builder.sign(signing, hashes.SHA256()).public_bytes(Encoding.PEM)
    return Signed(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
