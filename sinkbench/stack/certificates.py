"""Certificates of a stack's own: an authority, and one certificate for all of its nodes. Pure: PEM text in and out."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sinkbench.errors import StackError

__all__ = [
    "Signed",
    "as_pkcs8",
    "issue",
    "keystore",
    "make_authority",
    "names_of",
    "truststore",
    "valid_until",
    "wrong_with",
]

AUTHORITY, NODES = "sinkbench authority", "sinkbench nodes"
AUTHORITY_LASTS, NODES_LAST = timedelta(days=3650), timedelta(days=397)
"""The second is the longest that clients of the web accept."""
EARLIER = timedelta(hours=1)
"""Clocks of machines differ."""


@dataclass(frozen=True)
class Signed:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def make_authority(now: datetime) -> Signed:
    """A new authority, which has signed itself, valid for ten years from `now`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named(AUTHORITY)
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    made = (
        _begun(name, name, key, now, AUTHORITY_LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _signed(made, key, key)


def issue(authority: Signed, names: Sequence[str], now: datetime, lasts: timedelta = NODES_LAST) -> Signed:
    """A certificate for servers and clients of these names and IP addresses, signed by the authority."""
    signer = x509.load_pem_x509_certificate(authority.certificate)
    signing = _key_of(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    # A node is a client of the others, too.
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    made = (
        _begun(_named(NODES), signer.subject, key, now, lasts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(usages, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    )
    return _signed(made, key, signing)


def keystore(signed: Signed, authority: bytes, password: str) -> bytes:
    """The same as PKCS #12, for Java programs that read no PEM, with the authority's certificate behind it."""
    signer = x509.load_pem_x509_certificate(authority)
    certificate = x509.load_pem_x509_certificate(signed.certificate)
    return pkcs12.serialize_key_and_certificates(
        b"sinkbench", _any_key_of(signed.key), certificate, [signer], BestAvailableEncryption(password.encode())
    )


def truststore(authority: bytes, password: str) -> bytes:
    """The authority's certificate as PKCS #12, as Java wants what it trusts."""
    trusted = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(authority), b"authority")
    return pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(password.encode()))


def as_pkcs8(key: bytes) -> bytes:
    """A private key as Java reads it from PEM: not in the formats of RSA's or of elliptic curves' own."""
    return _pkcs8(_any_key_of(key))


def valid_until(certificate: bytes) -> datetime:
    """When it expires."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def names_of(certificate: bytes) -> frozenset[str]:
    """The names and addresses that it is for."""
    found = x509.load_pem_x509_certificate(certificate)
    try:
        alternative = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(name.value) for name in alternative)


def wrong_with(signed: Signed, authority: bytes, names: Collection[str], now: datetime) -> str | None:
    """Why nodes of these names cannot use a certificate, in a few words; None if they can.

    Raises StackError if one of the texts is no certificate or key.
    """
    try:
        found, signer = x509.load_pem_x509_certificate(signed.certificate), x509.load_pem_x509_certificate(authority)
        key = load_pem_private_key(signed.key, None)
    except (ValueError, TypeError) as error:
        raise StackError(f"no certificate or key in PEM format, without a password: {error}") from None
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*form) != found.public_key().public_bytes(*form):
        return "its key is another's"
    try:
        found.verify_directly_issued_by(signer)
    except (InvalidSignature, ValueError, TypeError):
        return "the authority has not signed it"
    for what, each in (("it", found), ("the authority", signer)):
        if each.not_valid_before_utc > now:
            return f"{what} is valid from {each.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on only"
        if each.not_valid_after_utc <= now:
            return f"{what} has expired at {each.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if absent := sorted(set(names) - names_of(signed.certificate)):
        return f"it is not for {', '.join(absent)}"
    return None


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now.astimezone(UTC) - EARLIER).not_valid_after(now.astimezone(UTC) + lasts)


def _signed(
    made: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signing: ec.EllipticCurvePrivateKey
) -> Signed:
    certificate = made.sign(signing, hashes.SHA256()).public_bytes(Encoding.PEM)
    return Signed(certificate, _pkcs8(key))


def _pkcs8(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _key_of(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise StackError("the key is none for an elliptic curve, as sinkbench makes them")
    return key


def _any_key_of(pem: bytes) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    """Of a user's own certificate, too."""
    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise StackError("the key is neither RSA's nor of an elliptic curve; have the certificate made for such a one")
    return key
