"""Security in containers: the overlay, what each service finds, and how clients reach them; no engine is asked."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict
from ruamel.yaml import YAML

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings, load_settings
from sinkbench.stack import compose
from sinkbench.stack.certificates import issue, make_authority, names_of
from sinkbench.stack.compose import ComposeStack
from sinkbench.stack.composecli import ComposeCli
from sinkbench.stack.composeendpoints import endpoints_of
from sinkbench.stack.containers import check_security
from sinkbench.stack.engine import Container
from sinkbench.stack.securing import LOCAL_NAMES, secure_containers, security_of_containers
from sinkbench.stack.security import OF_CONTAINERS, Security
from sinkbench.stack.securityoverlay import folder_of_containers, names_of_containers, security_overlay
from tests.support.ran import Ran, ran_instead

BASE: dict[str, Any] = YAML(typ="safe").load((CHECKOUT / "docker-compose.yml").read_text())["services"]
Made = Callable[..., Settings]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Settings with these values, and none of the machine's."""
    for name in [name for name in os.environ if name.startswith("SINKBENCH_")]:
        monkeypatch.delenv(name)

    def made(**given: str) -> Settings:
        for name, value in {"home": str(tmp_path / "a $home"), "security": "on", **given}.items():
            monkeypatch.setenv(f"SINKBENCH_{name.upper()}", value)
        return load_settings(tmp_path)

    return made


class Said(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


def secured(settings: Settings, project: str = "ours") -> Security:
    """The security of containers that are about to start."""
    secure_containers(settings, project, Said())
    found = security_of_containers(settings)
    assert found is not None
    return found


def services(settings: Settings, mark: str = "0123abcd") -> dict[str, Any]:
    text = security_overlay(settings.layout, folder_of_containers(settings.home), mark)
    found: dict[str, Any] = YAML(typ="safe").load(text)["services"]
    return found


def environment(settings: Settings, service: str) -> dict[str, str]:
    """What a service's `run` is told by its file."""
    text = (folder_of_containers(settings.home) / "mounted" / service / "environment").read_text()
    return dict(line.split("=", 1) for line in text.splitlines())


# --- the overlay ---


def test_each_container_sees_the_files_of_its_service_alone_and_is_told_where_they_are(settings: Made) -> None:
    found = services(settings(topology="published"))
    assert set(found) == {
        *("kafka", "kafka-2", "kafka-3", "elasticsearch", "elasticsearch-2", "elasticsearch-3"),
        *("postgres", "postgres-2", "pgbouncer", "connect", "loadgen", "controller"),
    }
    for name, each in found.items():
        (mounted,) = [volume for volume in each["volumes"] if isinstance(volume, dict)]
        assert mounted["target"] == "/security"
        assert mounted["read_only"] is True
        # A dollar is none of compose's variables.
        assert mounted["source"].endswith(f"/a $$home/containers-secure/mounted/{name.split('-')[0]}")
        assert each["labels"] == {"sinkbench.security": "0123abcd"}
        own = {"SINKBENCH_SECURITY": "on"} if name == "controller" else {"SECRETS": "/security/environment"}
        assert each["environment"] == own


def test_data_of_other_passwords_and_of_other_nodes_are_other_volumes(settings: Made) -> None:
    def volumes(mark: str, **given: str) -> set[str]:
        found = services(settings(**given), mark)
        return {volume for each in found.values() for volume in each["volumes"] if isinstance(volume, str)}

    one = volumes("11111111")
    assert {volume.partition(":")[2] for volume in one} == {
        volume.partition(":")[2] for name in ("kafka", "elasticsearch", "postgres") for volume in BASE[name]["volumes"]
    }
    assert volumes("11111111") == one
    assert not volumes("22222222") & one
    assert not volumes("11111111", topology="published") & one


def test_the_same_is_asked_of_each_service_by_its_health_check_as_without_tls(settings: Made) -> None:
    found = services(settings())
    for name in ("connect", "elasticsearch"):
        assert found[name]["healthcheck"]["test"][-1] == BASE[name]["healthcheck"]["test"][-1].replace(
            "http:", "https:"
        )
    for name in ("postgres", "pgbouncer"):
        asked = BASE[name]["healthcheck"]["test"][1].partition(" psql ")[2]
        assert found[name]["healthcheck"]["test"][1].endswith(f" psql {asked}")
    assert (
        found["kafka"]["healthcheck"]["test"][1].replace("-F /security/client.properties ", "")
        == (BASE["kafka"]["healthcheck"]["test"][1])
    )
    assert "https://127.0.0.1:8090/health" in found["loadgen"]["healthcheck"]["test"][-1]
    assert "http://127.0.0.1:8090/health" in BASE["loadgen"]["healthcheck"]["test"][-1]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    return ran_instead(monkeypatch)


def test_every_command_reads_the_overlay_last_once_there_are_passwords(
    settings: Made, ran: Ran, tmp_path: Path
) -> None:
    def files(found: Settings) -> list[str]:
        ComposeCli(found, tmp_path).run("down")
        command, _ = ran.asked[-1]
        return [word for before, word in pairwise(command) if before == "--file"]

    home = tmp_path / "a $home"
    assert files(settings()) == []
    security = secured(settings())
    overlay = home / "docker-compose.security.yml"
    assert files(settings()) == [str(tmp_path / "docker-compose.yml"), str(overlay)]
    assert files(settings(topology="published"))[1:] == [str(home / "docker-compose.topology.yml"), str(overlay)]
    assert not any(password in overlay.read_text() for password in security.passwords.values())
    assert files(settings(topology="small", security="off")) == []


# --- files and variables ---


def test_a_service_finds_the_passwords_of_those_alone_whom_it_knows(settings: Made) -> None:
    security = secured(settings())
    mounted = folder_of_containers(settings().home) / "mounted"
    known = {
        folder.name: {
            name
            for name, password in security.passwords.items()
            if any(password.encode() in file.read_bytes() for file in folder.iterdir())
        }
        for folder in mounted.iterdir()
    }
    assert known == {
        "kafka": {"kafka"},
        "connect": {"kafka", "connect", "elasticsearch", "postgres", "keystore"},
        "elasticsearch": {"elasticsearch"},
        "postgres": {"postgres"},
        "pgbouncer": {"postgres"},
        "loadgen": {"kafka", "loadgen"},
        "controller": set(OF_CONTAINERS),
    }
    assert not (mounted / "connect" / "node.key").exists()


def test_accounts_of_containers_can_read_what_is_mounted_and_nobody_of_this_machine_can(settings: Made) -> None:
    secured(settings())
    folder = folder_of_containers(settings().home)

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert mode(folder / "mounted") == 0o700
    for each in (folder / "mounted").iterdir():
        assert mode(each) == 0o755
        assert {mode(file) for file in each.iterdir()} == {0o644}
    assert {mode(folder / name) for name in ("passwords", "ca.key", "node.key")} == {0o600}


def test_all_that_a_run_script_is_told_of_lies_where_its_container_finds_it(settings: Made) -> None:
    secured(settings())
    mounted = folder_of_containers(settings().home) / "mounted"
    used = {
        "kafka": ("KAFKA_CA", "KAFKA_KEYSTORE"),
        "connect": ("KAFKA_CA", "CONNECT_KEYSTORE", "CONNECT_TRUSTSTORE", "CONNECT_USERS", "ELASTICSEARCH_CA"),
        "elasticsearch": ("TLS_CA", "TLS_CERTIFICATE", "TLS_KEY", "ELASTICSEARCH_USERS"),
        "postgres": ("TLS_CA", "TLS_CERTIFICATE", "TLS_KEY"),
        "pgbouncer": ("TLS_CA", "TLS_CERTIFICATE", "TLS_KEY"),
        "loadgen": ("LOADGEN_CLIENT_CONFIG", "LOADGEN_TLS_CERTIFICATE", "LOADGEN_TLS_KEY", "LOADGEN_USERS"),
    }
    for service, names in used.items():
        told = environment(settings(), service)
        for name in names:
            path = Path(told[name])
            assert path.parent == Path("/security")
            assert (mounted / service / path.name).exists(), name
    assert "file:/security/ca.pem" in (mounted / "connect" / "camel.properties").read_text()
    assert environment(settings(), "connect")["ELASTICSEARCH_URLS"] == "https://elasticsearch:9200"


def test_nodes_of_elasticsearch_listen_for_others_only_if_there_are_any(settings: Made) -> None:
    secured(settings())
    assert "ELASTICSEARCH_TRANSPORT_LISTEN" not in environment(settings(), "elasticsearch")
    secured(settings(topology="published"))
    assert environment(settings(), "elasticsearch")["ELASTICSEARCH_TRANSPORT_LISTEN"] == "0.0.0.0"  # noqa: S104


def test_a_second_start_keeps_passwords_and_other_nodes_get_another_certificate(settings: Made) -> None:
    first = secured(settings())
    certificate = folder_of_containers(settings().home) / "node.pem"
    before = certificate.read_bytes()
    assert {"localhost", "127.0.0.1", "kafka", "pgbouncer", "ours-connect-16", "ours-loadgen-1"} <= names_of(before)
    assert secured(settings()) == first
    assert certificate.read_bytes() == before
    assert secured(settings(topology="published")).passwords == first.passwords
    assert {"kafka-3", "postgres-2", "elasticsearch-2"} <= names_of(certificate.read_bytes())


def test_a_certificate_of_ones_own_must_be_for_the_nodes(settings: Made) -> None:
    folder, now = folder_of_containers(settings().home), datetime.now(UTC)
    folder.mkdir(parents=True)
    root = make_authority(now)

    def bring(*names: str) -> None:
        signed = issue(root, names, now, timedelta(days=90))
        for name, content in {
            "ca.pem": root.certificate, "node.pem": signed.certificate, "node.key": signed.key
        }.items():  # fmt: skip
            (folder / name).write_bytes(content)

    bring(*LOCAL_NAMES, "kafka", "elasticsearch")
    with pytest.raises(StackError, match=r"node.pem: it is not for pgbouncer, postgres; replace it, or delete ca.pem"):
        secured(settings())
    bring("127.0.0.1", "kafka", "elasticsearch", "postgres", "pgbouncer")
    secured(settings())
    assert not (folder / "ca.key").exists()


def test_nothing_is_made_without_security(settings: Made, tmp_path: Path) -> None:
    found = settings(security="off")
    secure_containers(found, "ours", Said())
    assert security_of_containers(found) is None
    assert not (tmp_path / "a $home").exists()


# --- how they are reached ---

SECURITY = Security(Path("/kept"), {name: f"password of {name}" for name in OF_CONTAINERS})


def container(service: str, mark: str | None = SECURITY.mark, **ports: int) -> Container:
    return Container(
        id=service.ljust(64, "0"), service=service, number=1, state="running", status="Up 5 seconds (healthy)",
        ports={int(inside[1:]): outside for inside, outside in ports.items()}, name=f"ours-{service}-1", mark=mark,
    )  # fmt: skip


STACK = [
    container("connect", p8083=18083),
    container("elasticsearch", p9200=19200),
    container("kafka", p19092=19092),
    container("loadgen", p8090=32768),
    container("pgbouncer", p6432=16432),
    container("postgres", p5432=15432),
]


def test_clients_are_told_what_the_services_want() -> None:
    found = endpoints_of(STACK, inside=False, security=SECURITY)
    assert found.connect == {"connect-1": "https://127.0.0.1:18083"}
    assert found.loadgens == {"loadgen-1": "https://127.0.0.1:32768"}
    assert found.sinks["elasticsearch"].address == "https://127.0.0.1:19200"
    assert found.kafka_settings["sasl.password"] == "password of kafka"
    asked = {
        "connect": found.connect_access,
        "elasticsearch": found.sinks["elasticsearch"].access,
        "loadgen": found.loadgen_access,
    }
    for service, access in asked.items():
        assert (access.user, access.password, access.ca) == (
            "sinkbench",
            f"password of {service}",
            Path("/kept/ca.pem"),
        )
    for name in ("postgres", "pgbouncer"):
        wanted = conninfo_to_dict(found.sinks[name].address)
        assert (wanted["password"], wanted["sslmode"]) == ("password of postgres", "verify-full")
        assert "password" not in found.sinks[name].shown
        assert "dbname=sinkbench" in found.sinks[name].shown


def test_inside_containers_are_called_by_names_that_their_certificate_is_for() -> None:
    found = endpoints_of(STACK, inside=True, security=SECURITY)
    assert found.connect == {"connect-1": "https://ours-connect-1:8083"}
    assert found.loadgens == {"loadgen-1": "https://ours-loadgen-1:8090"}
    # As workers call themselves, too.
    assert found.worker_ids == {"ours-connect-1:8083": "connect-1"}
    assert {"ours-connect-1", "ours-loadgen-1", "elasticsearch"} <= set(names_of_containers(Settings().layout, "ours"))


def test_containers_that_know_other_passwords_or_none_are_refused() -> None:
    check_security(STACK, SECURITY)
    check_security([container("kafka", mark=None)], None)
    check_security([], SECURITY)
    # The controller races on them, and is started by others.
    check_security([*STACK, container("controller", mark=None)], SECURITY)
    with pytest.raises(StackError, match=r"kafka wants TLS and a password; set SINKBENCH_SECURITY=on, or run `sinkbe"):
        check_security(STACK, None)
    with pytest.raises(StackError, match="kafka has no TLS and no users, and SINKBENCH_SECURITY=on; leave it out, or"):
        check_security([container("kafka", mark=None)], SECURITY)
    with pytest.raises(StackError, match="kafka knows other passwords than those in /kept; set SINKBENCH_HOME to"):
        check_security([container("kafka", mark="another")], SECURITY)


class Engine:
    """An engine with these containers."""

    project = "ours"

    def __init__(self, project: str) -> None:
        pass

    def project_of(self, host: str) -> str | None:
        return None

    def containers(self) -> list[Container]:
        return [container("kafka", mark=None)]


class Cli:
    def __init__(self, settings: Settings, checkout: Path) -> None:
        pass

    def project(self) -> str:
        return "ours"


def test_a_running_stack_without_security_is_neither_started_nor_asked_with_it(
    settings: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "DockerEngine", Engine)
    monkeypatch.setattr(compose, "ComposeCli", Cli)
    stack = ComposeStack(settings(), CHECKOUT)
    for ask in (lambda: stack.up(print), lambda: stack.endpoints):
        with pytest.raises(StackError, match="kafka has no TLS and no users"):
            ask()
    assert not settings().home.exists()


def test_a_proxy_before_a_secured_sink_is_refused(settings: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "DockerEngine", Engine)
    monkeypatch.setattr(compose, "ComposeCli", Cli)
    with pytest.raises(StackError, match="SINKBENCH_SECURITY=on: in containers no proxy can stand before a sink"):
        ComposeStack(settings(), CHECKOUT).faults.proxies.check()
