"""What the service `security` makes for secured containers, and docker-compose.secure.yml; no engine is asked."""

import stat
from pathlib import Path
from typing import Any

from cryptography import x509
from ruamel.yaml import YAML

from sinkbench.settings import CHECKOUT
from sinkbench.stack.containersecurity import make_all
from sinkbench.stack.security import OF_CONTAINERS, Security, kept_security

NODES = ("kafka", "elasticsearch", "postgres", "pgbouncer")


def services(name: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((CHECKOUT / name).read_text())["services"]
    return found


BASE, SECURE = services("docker-compose.yml"), services("docker-compose.secure.yml")


def made(folder: Path) -> Security:
    make_all(folder, NODES, "ours")
    found = kept_security(folder / "controller", OF_CONTAINERS)
    assert found is not None
    return found


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
    assert [name for name, each in SECURE.items() if any("authority" in volume for volume in each["volumes"])] == [
        "security"
    ]


def test_data_that_know_the_passwords_are_apart_from_others() -> None:
    for name in ("kafka", "elasticsearch", "postgres"):
        (usual,) = BASE[name]["volumes"]
        volume, target = SECURE[name]["volumes"][1].split(":")
        assert target == usual.partition(":")[2]
        assert volume != usual.partition(":")[0]


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
