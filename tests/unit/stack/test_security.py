"""What a secured stack keeps: made once, kept, renewed, and readable by nobody else."""

from __future__ import annotations

import base64
import hashlib
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sinkbench.errors import SettingsError, StackError
from sinkbench.secrets import redacted
from sinkbench.settings import load_settings
from sinkbench.stack.certificates import issue, make_authority, valid_until
from sinkbench.stack.local import LocalStack
from sinkbench.stack.securing import LOCAL_NAMES, refuse_expired, secure_processes
from sinkbench.stack.security import WITHOUT_SECURITY, Security, kept_security
from tests.support.expired import an_expired_certificate

SECRET = (
    "ca.key",
    "node.key",
    "node.p12",
    "bundle.pem",
    "passwords",
    "users-connect",
    "users-elasticsearch",
    "camel.properties",
)


class Said(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


def made(folder: Path) -> tuple[Security, list[str]]:
    said = Said()
    return secure_processes(folder, None, said), said


def own(folder: Path, lasts: timedelta) -> None:
    """Puts certificates of a user's own there."""
    now = datetime.now(UTC)
    root = make_authority(now)
    signed = issue(root, LOCAL_NAMES, now - timedelta(days=10), lasts)
    folder.mkdir()
    for name, content in {
        "ca.pem": root.certificate, "node.pem": signed.certificate, "node.key": signed.key
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)


def test_a_second_start_keeps_passwords_and_certificates(tmp_path: Path) -> None:
    first, said = made(tmp_path / "security")
    kept = {name: (tmp_path / "security" / name).read_bytes() for name in ("ca.pem", "node.pem", "passwords")}
    second, _ = made(tmp_path / "security")
    assert second.passwords == first.passwords
    assert kept_security(tmp_path / "security") == first
    assert {name: (tmp_path / "security" / name).read_bytes() for name in kept} == kept
    assert said == []
    assert len(set(first.passwords.values())) == len(first.passwords)


def test_nobody_else_can_read_what_is_secret(tmp_path: Path) -> None:
    made(tmp_path / "security")
    modes = {name: stat.S_IMODE((tmp_path / "security" / name).stat().st_mode) for name in (*SECRET, "ca.pem")}
    assert modes == {**dict.fromkeys(SECRET, 0o600), "ca.pem": 0o644}


def test_passwords_are_shown_nowhere(tmp_path: Path) -> None:
    security, _ = made(tmp_path / "security")
    for password in security.passwords.values():
        assert password not in repr(security)
        assert password not in redacted(f"login of {password} failed")


def test_camel_is_told_how_to_reach_elasticsearch_by_a_file_that_the_environment_names(tmp_path: Path) -> None:
    security, _ = made(tmp_path / "a \\ security")
    scheme, _, path = security.environment["CAMEL_COMPONENT_PROPERTIES_LOCATION"].partition(":")
    assert scheme == "file"
    assert Path(path).read_text(encoding="utf-8").splitlines() == [
        "camel.component.elasticsearch.enableSSL=true",
        # Java's properties have escapes.
        f"camel.component.elasticsearch.certificatePath=file:{tmp_path}/a \\\\ security/ca.pem",
        "camel.component.elasticsearch.user=sinkbench",
        f"camel.component.elasticsearch.password={security.passwords['elasticsearch']}",
    ]
    # Camel refuses empty ones.
    assert not any(name.startswith("CAMEL_") for name in WITHOUT_SECURITY)


def test_elasticsearch_gets_a_hash(tmp_path: Path) -> None:
    security, _ = made(tmp_path / "security")
    name, _, kept = (tmp_path / "security" / "users-elasticsearch").read_text().strip().partition(":")
    kind, salt, found = kept.split("$")
    assert (name, kind) == ("sinkbench", "{PBKDF2}10000")
    password = security.passwords["elasticsearch"].encode()
    assert hashlib.pbkdf2_hmac("sha512", password, base64.b64decode(salt), 10_000, 32) == base64.b64decode(found)


def test_a_certificate_of_ours_that_ends_soon_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "security"
    made(folder)
    root = make_authority(datetime.now(UTC))
    signed = issue(root, LOCAL_NAMES, datetime.now(UTC), timedelta(days=20))
    for name, content in {
        "ca.pem": root.certificate, "ca.key": root.key, "node.pem": signed.certificate, "node.key": signed.key
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)
    _, said = made(folder)
    assert said == ["making a new certificate of the nodes"]
    assert valid_until((folder / "node.pem").read_bytes()) - datetime.now(UTC) > timedelta(days=300)
    assert (folder / "ca.pem").read_bytes() == root.certificate


def test_a_certificate_of_ones_own_stays_and_its_end_is_foretold(tmp_path: Path) -> None:
    own(tmp_path / "security", timedelta(days=11))
    before = (tmp_path / "security" / "node.pem").read_bytes()
    _, said = made(tmp_path / "security")
    assert len(said) == 1
    assert said[0].startswith(f"warning: {tmp_path}/security/node.pem expires at ")
    assert (tmp_path / "security" / "node.pem").read_bytes() == before


def test_one_that_has_expired_is_refused(tmp_path: Path) -> None:
    own(tmp_path / "security", timedelta(days=9))
    with pytest.raises(StackError, match=r"node.pem: it has expired at .*; replace it, or delete ca.pem"):
        made(tmp_path / "security")


def test_what_running_services_show_is_refused_once_it_has_expired(tmp_path: Path) -> None:
    folder = tmp_path / "security"
    made(folder)
    refuse_expired(folder)
    with (
        an_expired_certificate(folder) as path,
        pytest.raises(StackError, match=rf"{path}: .* has expired at .*; `sinkbench down`, then `up`"),
    ):
        refuse_expired(folder)
    root = make_authority(datetime.now(UTC) - timedelta(days=3700))
    (folder / "ca.pem").write_bytes(root.certificate)
    with pytest.raises(StackError, match=r"ca.pem: .* has expired at "):
        refuse_expired(folder)
    own(tmp_path / "of a user", timedelta(days=9))
    with pytest.raises(
        StackError, match=r"node.pem: .* has expired at .*; replace it, then `sinkbench down`, then `up`"
    ):
        refuse_expired(tmp_path / "of a user")


def test_a_damaged_certificate_of_ours_is_named(tmp_path: Path) -> None:
    made(tmp_path / "security")
    (tmp_path / "security" / "ca.pem").write_text("gone")
    with pytest.raises(StackError, match=r"security: holds a damaged certificate or key; delete ca.pem"):
        made(tmp_path / "security")


def test_half_of_ones_own_is_named(tmp_path: Path) -> None:
    own(tmp_path / "security", timedelta(days=90))
    (tmp_path / "security" / "node.key").unlink()
    with pytest.raises(StackError, match=r"security/node.key: is missing; put it there, or delete"):
        made(tmp_path / "security")


def test_clients_are_told_what_the_services_want(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("SINKBENCH_SECURITY", "on")
    assert LocalStack(load_settings()).endpoints.connect_access.password == ""
    (tmp_path / "data-secure").mkdir()
    security, _ = made(tmp_path / "data-secure" / "security")
    found = LocalStack(load_settings()).endpoints
    assert all(url.startswith("https://127.0.0.1:") for url in found.connect.values())
    assert found.sinks["elasticsearch"].address.startswith("https://")
    assert found.sinks["elasticsearch"].access.password == security.passwords["elasticsearch"]
    assert found.kafka_settings["sasl.password"] == security.passwords["kafka"]
    for name in ("postgres", "pgbouncer"):
        assert "sslmode=verify-full" in found.sinks[name].address
        assert security.passwords["postgres"] not in found.sinks[name].shown


@pytest.mark.parametrize(("name", "value"), [("SECURITY", "yes"), ("LISTEN", "10.0.0.7")])
def test_other_values_are_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"SINKBENCH_{name}", value)
    with pytest.raises(SettingsError, match=f"SINKBENCH_{name}={value}"):
        load_settings()


def test_a_stack_listens_elsewhere_only_if_it_is_secured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINKBENCH_LISTEN", "0.0.0.0")  # noqa: S104
    with pytest.raises(SettingsError, match="anybody could read and write there; set SINKBENCH_SECURITY=on"):
        load_settings()
    monkeypatch.setenv("SINKBENCH_SECURITY", "on")
    assert load_settings().listen == "0.0.0.0"  # noqa: S104
