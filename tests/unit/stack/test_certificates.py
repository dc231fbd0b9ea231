"""Certificates of a stack's own: who is signed by whom, for what, until when."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from sinkbench.stack.certificates import issue, keystore, make_authority, truststore

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
# The last one cannot be had in the DNS, and compose names containers so.
NAMES = ("localhost", "127.0.0.1", "::1", "bench-1", "my_project-connect-1")
ROOT = make_authority(NOW)
NODE = issue(ROOT, NAMES, NOW)


def test_a_certificate_is_for_its_names_and_for_about_a_year_and_its_authority_has_signed_it() -> None:
    node, root = (x509.load_pem_x509_certificate(each.certificate) for each in (NODE, ROOT))
    found = node.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(name.value) for name in found} == set(NAMES)
    assert node.not_valid_after_utc - NOW == timedelta(days=397)
    assert root.not_valid_after_utc - NOW > timedelta(days=3000)
    node.verify_directly_issued_by(root)
    with pytest.raises(ValueError, match=r"."):
        root.verify_directly_issued_by(node)


def test_java_programs_find_key_and_authority_in_their_stores_and_no_message_shows_the_key() -> None:
    assert NODE.key.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert "PRIVATE" not in repr(NODE)
    key, certificate, more = pkcs12.load_key_and_certificates(keystore(NODE, ROOT.certificate, "hush"), b"hush")
    assert key is not None
    assert certificate is not None
    assert len(more) == 1
    assert len(pkcs12.load_pkcs12(truststore(ROOT.certificate, "hush"), b"hush").additional_certs) == 1
    with pytest.raises(ValueError, match=r"."):
        pkcs12.load_key_and_certificates(keystore(NODE, ROOT.certificate, "hush"), b"other")
