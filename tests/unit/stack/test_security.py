"""A secured stack: passwords that stay, certificates of each start, and what each service sees of them."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from sinkbench.errors import SettingsError
from sinkbench.secrets import redacted
from sinkbench.settings import load_settings
from sinkbench.stack.certificates import issue, make_authority, secure_processes
from sinkbench.stack.containersecurity import make_all
from sinkbench.stack.security import OF_CONTAINERS, Security, kept_security
from tests.support.present import present
from tests.unit.stack.test_compose import services

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


SECRET = ("node.key", "node.p12", "bundle.pem", "passwords", "users-connect", "users-elasticsearch", "camel.properties")


def test_a_second_start_keeps_the_passwords_which_stay_secret_and_issues_certificates(tmp_path: Path) -> None:
    first = secure_processes(tmp_path / "security", None)
    issued = {name: (tmp_path / "security" / name).read_bytes() for name in ("ca.pem", "node.pem")}
    assert secure_processes(tmp_path / "security", None) == first == kept_security(tmp_path / "security")
    assert all((tmp_path / "security" / name).read_bytes() != content for name, content in issued.items())
    assert len(set(first.passwords.values())) == len(first.passwords)
    # No other account can read what is secret, and no text shows it.
    modes = {name: stat.S_IMODE((tmp_path / "security" / name).stat().st_mode) for name in (*SECRET, "ca.pem")}
    assert modes == {**dict.fromkeys(SECRET, 0o600), "ca.pem": 0o644}
    for password in first.passwords.values():
        assert password not in repr(first)
        assert password not in redacted(f"login of {password} failed")


def test_a_stack_listens_elsewhere_only_if_it_is_secured(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "anybody could read and write there; set SINKBENCH_SECURITY=on"
    refused = [("LISTEN", "10.0.0.7", "SINKBENCH_LISTEN=10.0.0.7"), ("LISTEN", "0.0.0.0", said)]  # noqa: S104
    for name, value, refusal in [*refused, ("SECURITY", "yes", "SINKBENCH_SECURITY=yes")]:
        monkeypatch.setenv(f"SINKBENCH_{name}", value)
        with pytest.raises(SettingsError, match=refusal):
            load_settings()
    monkeypatch.setenv("SINKBENCH_SECURITY", "on")
    assert load_settings().listen == "0.0.0.0"  # noqa: S104


NODES = ("kafka", "elasticsearch", "postgres", "pgbouncer")
BASE, SECURE = services("docker-compose.yml"), services("docker-compose.secure.yml")


def made(folder: Path) -> Security:
    make_all(folder, NODES, "ours")
    return present(kept_security(folder / "controller", OF_CONTAINERS))


def test_every_service_is_secured_sees_a_volume_of_its_own_and_starts_after_it_is_filled(tmp_path: Path) -> None:
    made(tmp_path)
    assert set(SECURE) == {*BASE, "security"}
    filled = dict(volume.split(":/security/") for volume in SECURE["security"]["volumes"])
    for name in BASE:
        each = SECURE[name]
        assert each["labels"] == {"sinkbench.security": "on"}
        assert each["depends_on"] == {"security": {"condition": "service_completed_successfully"}}
        volume, target, mode = each["volumes"][0].split(":")
        assert (target, mode) == ("/security", "ro")
        assert (tmp_path / filled[volume] / "ca.pem").exists()
        assert filled[volume] == name
    # No other service has the authority's key.
    holders = [name for name, each in SECURE.items() if any("authority" in volume for volume in each["volumes"])]
    assert holders == ["security"]


def test_a_service_finds_only_the_passwords_that_it_needs_and_the_compose_file_none(tmp_path: Path) -> None:
    security = made(tmp_path)
    known = {
        folder.name: {
            name
            for name, password in security.passwords.items()
            if any(password.encode() in file.read_bytes() for file in folder.iterdir())
        }
        for folder in tmp_path.iterdir()
    }
    assert known == {
        "authority": set(),
        "kafka": {"kafka"},
        "connect": {"kafka", "connect", "elasticsearch", "postgres", "keystore"},
        "elasticsearch": {"elasticsearch"},
        "postgres": {"postgres"},
        "pgbouncer": {"postgres"},
        "loadgen": {"kafka", "loadgen"},
        "controller": set(OF_CONTAINERS),
    }
    assert stat.S_IMODE((tmp_path / "authority" / "ca.key").stat().st_mode) == 0o600


def test_a_second_start_keeps_passwords_and_authority_and_issues_another_certificate(tmp_path: Path) -> None:
    first = made(tmp_path)
    authority, certificate = tmp_path / "authority" / "ca.pem", tmp_path / "postgres" / "node.pem"
    before = authority.read_bytes(), certificate.read_bytes()
    issued = x509.load_pem_x509_certificate(before[1]).extensions
    names = {str(each.value) for each in issued.get_extension_for_class(x509.SubjectAlternativeName).value}
    assert {"localhost", "127.0.0.1", *NODES, "ours-connect-16", "ours-loadgen-4"} <= names
    # A load generator answers to every name that its certificate has.
    hosts = SECURE["loadgen"]["environment"]["LOADGEN_HOSTS"].replace("${COMPOSE_PROJECT_NAME:-sinkbench}", "ours")
    assert hosts.split() == ["loadgen", *(f"ours-loadgen-{number}" for number in range(1, 5))]
    assert made(tmp_path) == first
    assert authority.read_bytes() == before[0]
    assert certificate.read_bytes() != before[1]
