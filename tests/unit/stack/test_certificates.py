"""Certificates of a stack's own: who is signed by whom, for what, until when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from sinkbench.errors import StackError
from sinkbench.stack.certificates import (
    Signed,
    as_pkcs8,
    issue,
    keystore,
    make_authority,
    names_of,
    truststore,
    valid_until,
    wrong_with,
)

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
NAMES = ("localhost", "127.0.0.1", "::1", "bench-1")
ROOT = make_authority(NOW)
NODE = issue(ROOT, NAMES, NOW)


def test_a_certificate_is_for_its_names_and_for_about_a_year() -> None:
    assert names_of(NODE.certificate) == set(NAMES)
    assert valid_until(NODE.certificate) - NOW == timedelta(days=397)
    assert valid_until(ROOT.certificate) - NOW > timedelta(days=3000)
    assert wrong_with(NODE, ROOT.certificate, NAMES, NOW) is None


def test_a_key_is_shown_in_no_message() -> None:
    assert "PRIVATE" not in repr(NODE)


@pytest.mark.parametrize(
    ("signed", "authority", "names", "now", "problem"),
    [
        (NODE, ROOT.certificate, ("db.internal", "bench-1"), NOW, "it is not for db.internal"),
        (NODE, make_authority(NOW).certificate, NAMES, NOW, "the authority has not signed it"),
        (Signed(NODE.certificate, ROOT.key), ROOT.certificate, NAMES, NOW, "its key is another's"),
        (NODE, ROOT.certificate, NAMES, NOW + timedelta(days=397), "it has expired at 2027-12-26 12:00 UTC"),
        (NODE, ROOT.certificate, NAMES, NOW - timedelta(days=1), "it is valid from 2026-11-24 11:00 UTC on only"),
        (
            issue(ROOT, NAMES, NOW, timedelta(days=9000)),
            ROOT.certificate,
            NAMES,
            NOW + timedelta(days=8000),
            "the authority has expired at 2036-11-21 12:00 UTC",
        ),
    ],
)
def test_what_is_wrong_with_a_certificate_is_said_in_a_few_words(
    signed: Signed, authority: bytes, names: tuple[str, ...], now: datetime, problem: str
) -> None:
    assert wrong_with(signed, authority, names, now) == problem


@pytest.mark.parametrize("broken", [Signed(b"", NODE.key), Signed(NODE.certificate, b"no key")])
def test_what_is_no_certificate_is_refused(broken: Signed) -> None:
    with pytest.raises(StackError, match="no certificate or key in PEM format"):
        wrong_with(broken, ROOT.certificate, NAMES, NOW)


def test_java_programs_find_key_and_authority_in_their_stores() -> None:
    key, certificate, more = pkcs12.load_key_and_certificates(keystore(NODE, ROOT.certificate, "hush"), b"hush")
    assert key is not None
    assert certificate is not None
    assert len(more) == 1
    assert len(pkcs12.load_pkcs12(truststore(ROOT.certificate, "hush"), b"hush").additional_certs) == 1
    with pytest.raises(ValueError, match=r"."):
        pkcs12.load_key_and_certificates(keystore(NODE, ROOT.certificate, "hush"), b"other")


def test_a_key_of_ones_own_may_be_of_rsa_and_in_its_own_format() -> None:
    key = rsa.generate_private_key(65537, 2048)
    own = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    assert own.startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    assert as_pkcs8(own) == key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
