"""The certificate of an HTTP interface and its key: read, checked, and made ready for TLS.

All that is wrong is said before anything listens. OpenSSL would say it in words that name no file, or, of a certificate
that has expired, nothing at all: only clients would see it.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from loadgen.errors import OptionsError
from loadgen.reading import read_bytes

__all__ = ["WARN_BEFORE", "ServerTls", "read_server_tls", "why_soon_unusable"]

WARN_BEFORE = timedelta(days=2)
"""What expires within that time is warned of: tomorrow's end may be as far away."""
_CERTIFICATE, _KEY = "tls-certificate", "tls-key"


@dataclass(frozen=True)
class ServerTls:
    """The server's side of TLS.

    Attributes:
        context: what a server listens with.
        warning: what will soon be wrong, in one line; None if nothing is.
    """

    context: ssl.SSLContext
    warning: str | None = None


def read_server_tls(certificate: Path, key: Path, now: datetime) -> ServerTls:
    """Reads a certificate, with those that sign it behind it if there are any, and its key, both PEM.

    Args:
        certificate, key: the files; the key's must be its owner's alone, and not encrypted.
        now: the time, with its zone.

    Raises OptionsError: a file cannot be read or holds something else, the key is another one's, or `now` is not within
    the time for which a certificate is valid.
    """
    chain = _chain_in(certificate)
    warning = why_soon_unusable(chain, certificate, now)
    if not _belongs(_key_in(key), chain[0]):
        raise OptionsError(f"{_KEY}: {key}: is not the key of the certificate in {certificate}; give the one that is")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        # Such as a key that OpenSSL finds too short.
        why = (isinstance(error, ssl.SSLError) and error.reason) or error.strerror or "no reason given"
        raise OptionsError(f"{_CERTIFICATE}: {certificate}: OpenSSL does not take it ({why}); give another") from None
    return ServerTls(context, warning)


def why_soon_unusable(chain: Sequence[x509.Certificate], path: Path, now: datetime) -> str | None:
    """What a person should know of the dates of certificates from `path`; None if all are valid for some time to come.

    Raises OptionsError if one is not valid `now`.
    """
    begins = max(each.not_valid_before_utc for each in chain)
    ends = min(each.not_valid_after_utc for each in chain)
    if ends <= now:
        raise OptionsError(f"{_CERTIFICATE}: {path}: has expired at {_shown(ends)}; have a new one made")
    if begins > now:
        raise OptionsError(
            f"{_CERTIFICATE}: {path}: is not valid before {_shown(begins)}; wait, or set this machine's clock"
        )
    if ends - now <= WARN_BEFORE:
        return f"{_CERTIFICATE}: {path}: expires at {_shown(ends)}; have a new one made, and begin again with it"
    return None


def _chain_in(path: Path) -> list[x509.Certificate]:
    content = _read(path, _CERTIFICATE)
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise OptionsError(f"{_CERTIFICATE}: {path}: holds no certificate in PEM format; give one that does") from None


def _key_in(path: Path) -> PrivateKeyTypes:
    content = _read(path, _KEY, private=True)
    try:
        return load_pem_private_key(content, password=None)
    except TypeError:
        raise OptionsError(f"{_KEY}: {path}: is encrypted; give one without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise OptionsError(f"{_KEY}: {path}: holds no private key in PEM format; give one that does") from None


def _belongs(key: PrivateKeyTypes, certificate: x509.Certificate) -> bool:
    try:
        return key.public_key() == certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        # A kind of key that nothing here knows: OpenSSL is asked.
        return True


def _read(path: Path, option: str, *, private: bool = False) -> bytes:
    try:
        return read_bytes(path, lambda line: OptionsError(f"{option}: {line}"), private=private)
    except FileNotFoundError:
        raise OptionsError(f"{option}: {path}: there is no such file; give another") from None


def _shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
