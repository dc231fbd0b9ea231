"""What a secured stack keeps: passwords that stay, certificates of each start, readable by no other account."""

import stat
from pathlib import Path

import pytest

from sinkbench.errors import SettingsError
from sinkbench.secrets import redacted
from sinkbench.settings import load_settings
from sinkbench.stack.securing import secure_processes
from sinkbench.stack.security import WITHOUT_SECURITY, kept_security

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


def test_camel_learns_how_to_reach_elasticsearch_from_a_file_that_the_environment_names(tmp_path: Path) -> None:
    security = secure_processes(tmp_path / "a \\ security", None)
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


def test_a_stack_listens_elsewhere_only_if_it_is_secured(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "anybody could read and write there; set SINKBENCH_SECURITY=on"
    refused = [("LISTEN", "10.0.0.7", "SINKBENCH_LISTEN=10.0.0.7"), ("LISTEN", "0.0.0.0", said)]  # noqa: S104
    for name, value, refusal in [*refused, ("SECURITY", "yes", "SINKBENCH_SECURITY=yes")]:
        monkeypatch.setenv(f"SINKBENCH_{name}", value)
        with pytest.raises(SettingsError, match=refusal):
            load_settings()
    monkeypatch.setenv("SINKBENCH_SECURITY", "on")
    assert load_settings().listen == "0.0.0.0"  # noqa: S104
