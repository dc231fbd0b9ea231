"""The containers' command lines and files, and what is made of what the engine tells; no engine is asked."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ruamel.yaml import YAML

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack import Allowance, compose
from sinkbench.stack.compose import ComposeStack
from sinkbench.stack.composecli import DOWN, compose_command, end_of_build, too_old, up_arguments
from sinkbench.stack.composeendpoints import endpoints_of
from sinkbench.stack.containers import SERVICES, by_service, check_nodes, names_of, state_of
from sinkbench.stack.engine import Container, ContainerUsage
from sinkbench.stack.hostlimits import Granted
from sinkbench.stack.readiness import checks
from sinkbench.topology import Topology, load_topology

HERE = Path("/a b/checkout")
COMPOSE: dict[str, Any] = YAML(typ="safe").load((CHECKOUT / "docker-compose.yml").read_text())
VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def container(service: str, number: int = 1, state: str = "running", status: str = "", **ports: int) -> Container:
    return Container(
        id=f"{service}{number}".ljust(64, "0"),
        service=service,
        number=number,
        state=state,
        status=status or "Up 5 seconds (healthy)",
        ports={int(inside[1:]): outside for inside, outside in ports.items()},
    )


STACK = [
    container("connect", 1, p8083=18083, p9404=32901),
    container("connect", 2, p8083=18084),
    container("controller", 1),
    container("elasticsearch", p9200=19200),
    container("kafka", p19092=19092),
    container("loadgen", 1, p8090=32768),
    container("pgbouncer", p6432=16432),
    container("postgres", p5432=15432),
]


PUBLISHED = load_topology("published", CHECKOUT, CHECKOUT)
CLUSTERS = [
    *(container("connect", number, p8083=18082 + number) for number in range(1, 7)),
    container("controller", 1),
    container("elasticsearch", p9200=19200),
    container("elasticsearch-2", p9200=19201),
    container("elasticsearch-3", p9200=19202),
    container("kafka", p19092=19092),
    container("kafka-2", p19094=19094),
    container("kafka-3", p19096=19096),
    container("loadgen", 1, p8090=32768),
    container("pgbouncer", p6432=16432),
    container("postgres", p5432=15432),
    container("postgres-2", p5432=15433),
]


def test_up_starts_everything_but_the_controller_and_waits() -> None:
    assert up_arguments({"connect": 3, "loadgen": 1}) == [
        *("up", "--detach", "--wait", "--wait-timeout", "240", "--scale", "connect=3", "--scale", "loadgen=1"),
        *("kafka", "elasticsearch", "postgres", "pgbouncer", "connect", "loadgen"),
    ]


def test_up_starts_the_nodes_of_an_overlay_too() -> None:
    assert up_arguments({}, ["kafka-2", "postgres-2"])[-3:] == ["loadgen", "kafka-2", "postgres-2"]


def test_every_command_names_the_project_by_its_folder() -> None:
    start = ["docker", "compose", "--project-directory", "/a b/checkout", "--progress", "plain"]
    assert compose_command(HERE, "build") == [*start, "build"]
    assert compose_command(HERE, *DOWN) == [*start, "down", "--remove-orphans"]


@pytest.mark.parametrize(
    ("version", "old"), [("2.26.1-4\n", False), ("v2.20.0", False), ("2.19.9", True), ("1.29.2", True), ("5.1", False)]
)
def test_a_version_of_compose_without_attach_is_too_old(version: str, old: bool) -> None:
    assert too_old(version) is old


def test_the_step_that_failed_is_what_is_shown_of_a_build() -> None:
    output = """#9 [programs 4/8] RUN mvn package
#9 DONE 3.1s
------
 > [programs 5/8] RUN apt-get install nonsense:
0.512 E: Unable to locate package nonsense
------
Dockerfile:7
failed to solve: process "/bin/sh -c apt-get install nonsense" did not complete successfully: exit code: 100
"""
    shown = end_of_build(output)
    assert shown.splitlines()[0] == " > [programs 5/8] RUN apt-get install nonsense:"
    assert "Unable to locate package nonsense" in shown
    assert "DONE" not in shown
    assert len(shown.splitlines()) == 2
    many = output.replace("0.512 E:", "\n".join(f"0.{n} line {n}" for n in range(100)) + "\n0.512 E:")
    assert end_of_build(many).splitlines()[0] == shown.splitlines()[0]
    assert end_of_build(many).splitlines()[-1] == shown.splitlines()[-1]
    assert len(end_of_build(many).splitlines()) == 16
    assert end_of_build("no such thing as an engine\n") == "no such thing as an engine"


def test_from_outside_services_are_reached_by_their_published_ports() -> None:
    found = endpoints_of(STACK, inside=False)
    assert found.kafka == "127.0.0.1:19092"
    assert found.connect == {"connect-1": "http://127.0.0.1:18083", "connect-2": "http://127.0.0.1:18084"}
    assert found.sinks["elasticsearch"].address == "http://127.0.0.1:19200"
    assert "host=127.0.0.1" in found.sinks["postgres"].address
    assert "port=15432" in found.sinks["postgres"].address
    assert "port=16432" in found.sinks["pgbouncer"].address
    assert found.loadgens == {"loadgen-1": "http://127.0.0.1:32768"}
    assert found.connect_metrics == {"connect-1": "http://127.0.0.1:32901/metrics"}
    # A load generator runs among the containers, wherever the controller is.
    assert found.loadgen_kafka == "kafka:9092"


def test_from_inside_they_are_reached_by_their_names() -> None:
    found = endpoints_of(STACK, inside=True)
    assert found.kafka == "kafka:9092"
    assert found.connect == {"connect-1": "http://connect10000:8083", "connect-2": "http://connect20000:8083"}
    assert "host=pgbouncer" in found.sinks["pgbouncer"].address
    assert found.connect_metrics["connect-2"] == "http://connect20000:9404/metrics"


@pytest.mark.parametrize("inside", [False, True])
def test_workers_are_known_by_the_names_that_they_give_themselves(inside: bool) -> None:
    found = endpoints_of(STACK, inside)
    assert found.worker_ids == {"connect10000:8083": "connect-1", "connect20000:8083": "connect-2"}


def test_a_service_without_a_published_port_is_named() -> None:
    with pytest.raises(StackError, match=r"elasticsearch: its port 9200 is not published"):
        endpoints_of([container("elasticsearch")], inside=False)


def test_the_controller_is_no_part_of_the_stack_it_races_on() -> None:
    assert list(names_of(STACK)) == [
        *("kafka", "elasticsearch", "postgres", "pgbouncer", "connect-1", "connect-2", "loadgen-1")
    ]


# --- several nodes ---


def test_each_node_has_a_name_of_its_own_in_starting_order() -> None:
    assert list(names_of(CLUSTERS)) == [
        *("kafka", "kafka-2", "kafka-3", "elasticsearch", "elasticsearch-2", "elasticsearch-3"),
        *("postgres", "postgres-2", "pgbouncer", *(f"connect-{n}" for n in range(1, 7)), "loadgen-1"),
    ]


def test_from_outside_each_node_is_reached_by_its_published_port() -> None:
    found = endpoints_of(CLUSTERS, False, PUBLISHED)
    assert found.kafka == "127.0.0.1:19092,127.0.0.1:19094,127.0.0.1:19096"
    assert found.brokers["kafka-3"] == "127.0.0.1:19096"
    assert found.replication == 3
    assert found.loadgen_kafka == "kafka:9092,kafka-2:9092,kafka-3:9092"
    elasticsearch, postgres = found.sinks["elasticsearch"], found.sinks["postgres"]
    assert [each.address for each in elasticsearch.nodes.values()] == [f"http://127.0.0.1:1920{n}" for n in range(3)]
    assert elasticsearch.options == {"index": "tides", "shards": "3", "replicas": "1"}
    assert "port=15433" in postgres.nodes["postgres-2"].address
    assert postgres.nodes["postgres-2"].options == {"role": "replica"}
    assert postgres.address == postgres.nodes["postgres"].address


def test_from_inside_each_node_is_reached_by_its_name() -> None:
    found = endpoints_of(CLUSTERS, True, PUBLISHED)
    assert found.kafka == "kafka:9092,kafka-2:9092,kafka-3:9092"
    assert found.sinks["elasticsearch"].nodes["elasticsearch-2"].address == "http://elasticsearch-2:9200"
    assert "host=postgres-2" in found.sinks["postgres"].nodes["postgres-2"].address


def test_every_node_and_worker_is_checked() -> None:
    assert list(checks(endpoints_of(CLUSTERS, False, PUBLISHED))) == [
        *("kafka", "kafka-2", "kafka-3", "elasticsearch", "elasticsearch-2", "elasticsearch-3"),
        *("postgres", "postgres-2", "pgbouncer", *(f"connect-{n}" for n in range(1, 7))),
    ]


def test_a_broker_that_does_not_run_is_none_that_clients_begin_with() -> None:
    others = [each for each in CLUSTERS if each.service != "kafka"]
    found = endpoints_of(others, False, PUBLISHED)
    assert found.kafka == "127.0.0.1:19094,127.0.0.1:19096"
    assert found.brokers["kafka"] == "127.0.0.1:0"


def test_a_node_that_starts_alone_waits_for_none_that_is_gone() -> None:
    found = endpoints_of(CLUSTERS, False, PUBLISHED, {"elasticsearch-3"})
    assert {each.options["nodes"] for each in found.sinks["elasticsearch"].nodes.values()} == {"2"}


def test_containers_of_other_nodes_than_the_topologys_are_refused() -> None:
    check_nodes(STACK, Topology())
    check_nodes(CLUSTERS, PUBLISHED)
    # Workers and load generators may be any number, and what is not there is started.
    check_nodes([each for each in STACK if each.service not in ("kafka", "connect")], Topology())
    with pytest.raises(
        StackError, match=r"there are kafka, kafka-2, kafka-3, and the topology small has kafka; run `sinkbench down"
    ):
        check_nodes(CLUSTERS, Topology())
    with pytest.raises(StackError, match=r"there are kafka, and the topology published has kafka, kafka-2, kafka-3;"):
        check_nodes(STACK, PUBLISHED)


def test_what_containers_of_a_service_may_use_alike_is_told_once() -> None:
    little, much = Allowance(1.0, 2**30), Allowance(2.0, 2**30)
    found = by_service({"kafka": little, "kafka-east-1": little, "connect-1": little, "connect-2": much})
    assert found == {"kafka": little, "connect-1": little, "connect-2": much}


@pytest.mark.parametrize(
    ("state", "status", "expected"),
    [
        ("running", "Up 5 seconds (healthy)", "running"),
        ("running", "Up 5 seconds (health: starting)", "running"),
        ("running", "Up 5 minutes (unhealthy)", "dead"),
        ("exited", "Exited (0) 3 seconds ago", "stopped"),
        ("exited", "Exited (143) 3 seconds ago", "stopped"),
        ("exited", "Exited (137) 3 seconds ago", "dead"),
        ("exited", "Exited (1) 3 seconds ago", "dead"),
        ("created", "Created", "stopped"),
        ("paused", "Up 5 minutes (Paused)", "dead"),
    ],
)
def test_the_state_of_a_container(state: str, status: str, expected: str) -> None:
    assert state_of("kafka", container("kafka", state=state, status=status)).state == expected


# --- docker-compose.yml and .env.example against the settings ---


def defaults() -> dict[str, str]:
    return {f"SINKBENCH_{name.upper()}": str(field.default) for name, field in Settings.model_fields.items()}


class FakeEngine:
    """What runs and what it uses, without an engine."""

    project = ""

    def __init__(self, project: str) -> None:
        pass

    def project_of(self, host: str) -> str | None:
        return None

    def containers(self) -> list[Container]:
        return [container("kafka"), container("postgres", state="exited", status="Exited (137)")]

    def usage(self, each: Container) -> ContainerUsage:
        return ContainerUsage(cpu_seconds=1.5)

    def out_of_memory(self, since: float, until: float) -> set[str]:
        return set()

    def was_out_of_memory(self, each: Container) -> bool:
        return False

    def process_id(self, each: Container) -> int | None:
        return None

    def data_root(self) -> str:
        return "/"


class FakeCli:
    """A project of some name."""

    def __init__(self, settings: Settings, checkout: Path) -> None:
        pass

    def project(self) -> str:
        return "fake"


def test_what_was_read_for_troubles_is_told_with_the_next_cpu_times_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "DockerEngine", FakeEngine)
    monkeypatch.setattr(compose, "ComposeCli", FakeCli)
    monkeypatch.setattr(compose, "LOOK_SECONDS", 0.0)
    stack = ComposeStack(Settings(), HERE)
    assert stack.usage().troubles == {}
    # Whoever died must not stay unknown because somebody else has just looked.
    monkeypatch.setattr(compose, "LOOK_SECONDS", 600.0)
    assert stack.usage().cpu_seconds == {}
    monkeypatch.setattr(compose, "LOOK_SECONDS", 0.0)
    assert stack.usage().cpu_seconds == {"kafka": 1.5, "postgres": None}


class NothingThere(FakeEngine):
    def containers(self) -> list[Container]:
        return []


@pytest.mark.parametrize(
    ("found", "bytes_free", "said"),
    [
        (Granted(maps=65_530, files=1 << 20, here=True), 1 << 40, r"vm\.max_map_count is 65530"),
        (Granted(maps=1 << 20, files=1 << 20, here=True), 1 << 30, r"the topology published needs .* of memory"),
    ],
)
def test_what_the_machine_cannot_hold_is_refused_before_anything_starts(
    found: Granted, bytes_free: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This project's commands cannot be run: whoever tried would fail otherwise.
    monkeypatch.setattr(compose, "DockerEngine", NothingThere)
    monkeypatch.setattr(compose, "ComposeCli", FakeCli)
    monkeypatch.setattr(compose, "granted", lambda: found)
    monkeypatch.setattr(compose.psutil, "virtual_memory", lambda: SimpleNamespace(available=bytes_free))
    stack = ComposeStack(Settings().with_layout(PUBLISHED), HERE)
    with pytest.raises(StackError, match=said):
        stack.up(print)


@pytest.mark.parametrize(
    ("states", "said"),
    [
        # Waits for the one that cannot be started.
        (
            {"connect": "created", "kafka": "starting", "postgres": "created: no rlimit"},
            "postgres could not be started",
        ),
        ({"elasticsearch": "starting", "kafka": "unhealthy", "postgres": "exited"}, "postgres did not start"),
        ({"elasticsearch": "starting", "kafka": "unhealthy"}, "kafka did not start"),
        ({"elasticsearch": "starting"}, "elasticsearch did not start"),
        ({"connect": "created"}, "docker compose up failed: the end"),
    ],
)
def test_the_container_is_named_because_of_which_the_others_wait(
    states: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(service: str, state: str) -> Container:
        seen = "running" if state in ("starting", "unhealthy") else state.partition(":")[0]
        health = {"starting": "Up 5 seconds (health: starting)", "unhealthy": "Up 5 seconds (unhealthy)"}.get(state)
        return container(service, state=seen, status=health or seen)

    class Engine(NothingThere):
        up = False

        def containers(self) -> list[Container]:
            return [made(*each) for each in states.items()] if Engine.up else []

        def start_error(self, found: Container) -> str:
            return states[found.service].partition(": ")[2]

        def log_tail(self, found: Container, lines: int) -> str:
            return "its log"

    class Cli(FakeCli):
        def run(self, *arguments: str) -> Any:
            Engine.up = arguments[0] == "up"
            return SimpleNamespace(returncode=int(Engine.up), stdout="", stderr="started\nthe end")

    monkeypatch.setattr(compose, "DockerEngine", Engine)
    monkeypatch.setattr(compose, "ComposeCli", Cli)
    with pytest.raises(StackError, match=said):
        ComposeStack(Settings(), HERE).up(print)


def test_containers_of_another_topology_are_told_as_they_are_and_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "DockerEngine", FakeEngine)
    monkeypatch.setattr(compose, "ComposeCli", FakeCli)
    stack = ComposeStack(Settings().with_layout(PUBLISHED), HERE)
    assert stack.layout is None
    assert {state.name: state.detail for state in stack.services()}["kafka-2"] == "no container"
    with pytest.raises(StackError, match="the containers are those of another topology"):
        stack.up(print)


def test_every_variable_of_the_compose_file_is_a_setting_with_the_same_default() -> None:
    found = dict(VARIABLE.findall((CHECKOUT / "docker-compose.yml").read_text()))
    own = {name: value for name, value in found.items() if name.startswith("SINKBENCH_")}
    # Empty, so that the controller's container can tell whether somebody has asked for a plan.
    assert own.pop("SINKBENCH_PLAN") == ""
    assert own == {name: defaults()[name] for name in own}
    assert set(found) - set(own) == {"SINKBENCH_PLAN", "DOCKER_SOCKET", "COMPOSE_PROJECT_NAME"}


def test_the_example_shows_every_setting_with_its_default() -> None:
    lines = (CHECKOUT / ".env.example").read_text().splitlines()
    shown = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#[A-Z_]+=", line))
    assert shown.pop("DOCKER_SOCKET") == "/var/run/docker.sock"
    assert shown == defaults()


def test_every_port_is_published_on_loopback_only() -> None:
    for name, service in COMPOSE["services"].items():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), name


def test_every_container_is_limited_checked_and_started_by_the_folders_own_run_script() -> None:
    assert set(COMPOSE["services"]) == {*SERVICES, "controller"}
    for name, service in COMPOSE["services"].items():
        assert service["init"] is True, name
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        assert (
            service["mem_limit"]
            == f"${{SINKBENCH_{name.upper()}_MEMORY:-{defaults()[f'SINKBENCH_{name.upper()}_MEMORY']}}}"
        )
        assert service["cpus"].startswith(f"${{SINKBENCH_{name.upper()}_CPUS")
        assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("file", sorted(CHECKOUT.glob("*/Dockerfile")), ids=lambda file: file.parent.name)
def test_no_image_runs_as_root_or_asks_a_registry_for_more_than_its_base(file: Path) -> None:
    text = file.read_text()
    assert not text.startswith("# syntax=")
    assert {line.split()[1] for line in text.splitlines() if line.startswith("FROM")} == {"debian:trixie-slim"}
    users = re.findall(r"^USER (\w+)", text, re.MULTILINE)
    assert users
    assert "root" not in users
