"""What is wrong with a certificate or its key is said in a line before anything listens."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

import loadgen.cli as cli
from loadgen import OptionsError
from loadgen.certificate import WARN_BEFORE, read_server_tls
from tests.support.tlsserver import Issued, issue

HOUR = timedelta(hours=1)


def refusal(files: Issued) -> str:
    with pytest.raises(OptionsError) as refused:
        read_server_tls(files.certificate, files.key, datetime.now(UTC))
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_one_that_is_valid_for_long_is_taken_without_a_word(tmp_path: Path) -> None:
    files = issue(tmp_path, ends=WARN_BEFORE + 24 * HOUR)
    tls = read_server_tls(files.certificate, files.key, datetime.now(UTC))
    assert tls.warning is None
    assert tls.context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_one_that_expires_tomorrow_is_taken_with_a_warning(tmp_path: Path) -> None:
    files = issue(tmp_path, ends=24 * HOUR)
    warning = read_server_tls(files.certificate, files.key, datetime.now(UTC)).warning
    assert warning is not None
    assert warning.startswith(f"tls-certificate: {files.certificate}: expires at 20")
    assert warning.endswith("have a new one made, and begin again with it")
    assert "\n" not in warning


def test_one_that_has_expired_is_refused(tmp_path: Path) -> None:
    files = issue(tmp_path, ends=-HOUR)
    assert refusal(files).startswith(f"tls-certificate: {files.certificate}: has expired at 20")


def test_one_of_the_future_is_refused(tmp_path: Path) -> None:
    files = issue(tmp_path, begins=24 * HOUR)
    assert refusal(files).startswith(f"tls-certificate: {files.certificate}: is not valid before 20")


def test_one_behind_it_that_has_expired_is_as_bad(tmp_path: Path) -> None:
    files, other = issue(tmp_path), issue(tmp_path, "other", ends=-HOUR)
    files.certificate.write_bytes(files.certificate.read_bytes() + other.certificate.read_bytes())
    assert "has expired at" in refusal(files)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    files, other = issue(tmp_path), issue(tmp_path, "other")
    said = refusal(Issued(files.certificate, other.key, files.ca))
    assert said.startswith(f"tls-key: {other.key}: is not the key of the certificate in {files.certificate}; ")


def test_the_key_may_have_the_certificate_in_its_file_too(tmp_path: Path) -> None:
    files = issue(tmp_path)
    files.key.write_bytes(files.certificate.read_bytes() + files.key.read_bytes())
    assert read_server_tls(files.key, files.key, datetime.now(UTC)).warning is None


def encrypt(files: Issued) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hush-hush")))


def swap(files: Issued) -> None:
    files.certificate.write_bytes(files.key.read_bytes())


def break_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda files: files.certificate.unlink(), "tls-certificate: {certificate}: there is no such file; "),
        (lambda files: files.key.unlink(), "tls-key: {key}: there is no such file; "),
        (
            lambda files: files.certificate.write_text("x"),
            "tls-certificate: {certificate}: holds no certificate in PEM",
        ),
        (lambda files: break_off(files.certificate), "tls-certificate: {certificate}: holds no certificate in PEM"),
        (swap, "tls-certificate: {certificate}: holds no certificate in PEM format; "),
        (lambda files: files.key.write_bytes(files.ca.read_bytes()), "tls-key: {key}: holds no private key in PEM"),
        (lambda files: files.key.write_bytes(b"\xff\0"), "tls-key: {key}: holds no private key in PEM"),
        (lambda files: break_off(files.key), "tls-key: {key}: holds no private key in PEM"),
        (encrypt, "tls-key: {key}: is encrypted; "),
        (
            lambda files: files.key.chmod(0o640),
            "tls-key: {key}: holds a secret and is not its owner's alone; run chmod 600",
        ),
        (
            lambda files: files.key.chmod(0o604),
            "tls-key: {key}: holds a secret and is not its owner's alone; run chmod 600",
        ),
    ],
)
def test_files_that_cannot_be_used_are_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[Issued], object], words: str
) -> None:
    files = issue(tmp_path)
    spoil(files)
    options = ["--tls-certificate", str(files.certificate), "--tls-key", str(files.key)]
    assert cli.main(["serve", "--listen", "127.0.0.1:0", *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("loadgen: " + words.format(certificate=files.certificate, key=files.key))
    assert said.err.count("\n") == 1


def test_a_folder_is_no_certificate(tmp_path: Path) -> None:
    files = issue(tmp_path)
    assert "is a folder; name a file" in refusal(Issued(tmp_path, files.key, files.ca))


@pytest.mark.parametrize("option", ["--tls-certificate", "--tls-key"])
def test_one_without_the_other_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    files = issue(tmp_path)
    assert cli.main(["serve", "--listen", "127.0.0.1:0", option, str(files.key)]) == 2
    assert capsys.readouterr().err == "loadgen: tls-certificate, tls-key: found one without the other; give both\n"
