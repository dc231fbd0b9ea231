"""The containers' command lines and files, and what is made of the engine's answers; no engine is asked."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from ruamel.yaml import YAML

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings, load_settings
from sinkbench.stack import Endpoints, compose, engine
from sinkbench.stack.assembly import checks, shared_variables
from sinkbench.stack.compose import BASE, ComposeCli, ComposeStack
from sinkbench.stack.compose import PUBLISHED as PUBLISHED_FILE
from sinkbench.stack.compose import SECURE as SECURE_FILE
from sinkbench.stack.containers import PORTS, Reach, names_of, other_nodes, states_of
from sinkbench.stack.engine import Container, used_by
from sinkbench.stack.registry import Place
from sinkbench.stack.security import OF_CONTAINERS, Security
from sinkbench.topology import Topology, load_topology
from tests.support.present import present

SECURITY = Security(Path("/kept"), {name: f"password of {name}" for name in OF_CONTAINERS})
PUBLISHED = load_topology("published", CHECKOUT, CHECKOUT)


def services(name: str) -> dict[str, Any]:
    """The services of a compose file; the tags only say how compose joins it with another one."""
    text = (CHECKOUT / name).read_text().replace("!override ", "").replace("!reset ", "")
    found: dict[str, Any] = YAML(typ="safe").load(text)["services"]
    return found


COMPOSE, CLUSTERS_FILE = services(BASE), services(PUBLISHED_FILE)


def container(
    service: str, number: int = 1, state: str = "running", status: str = "", secured: bool = False, **ports: int
) -> Container:
    return Container(
        id=f"{service}{number}".ljust(64, "0"),
        service=service,
        number=number,
        state=state,
        status=status or "Up 5 seconds (healthy)",
        ports={int(inside[1:]): outside for inside, outside in ports.items()},
        name=f"ours-{service}-{number}",
        secured=secured,
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
CLUSTERS = [
    *(container("connect", number, p8083=18082 + number) for number in range(1, 7)),
    *(each for each in STACK if each.service not in ("connect", "controller")),
    *(container(f"elasticsearch-{number}", p9200=19199 + number) for number in (2, 3)),
    *(container("kafka-2", p19094=19094), container("kafka-3", p19096=19096)),
    container("postgres-2", p5432=15433),
]

Made = Callable[..., ComposeCli]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """What runs `docker`: it is called with the words of the command, and with their environment."""
    found = Mock(return_value=SimpleNamespace(returncode=0, stdout="", stderr=""))
    monkeypatch.setattr(compose, "run", found)
    monkeypatch.setattr(compose.shutil, "which", lambda name: name)
    return found


@pytest.fixture
def cli(ran: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: None) -> Made:
    """Makes a command for settings with these values, and none of the machine's."""

    def made(**given: str) -> ComposeCli:
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        return ComposeCli(load_settings(tmp_path), tmp_path)

    return made


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ({}, []),
        ({"SINKBENCH_TOPOLOGY": "published"}, [BASE, PUBLISHED_FILE, "compose.override.yml"]),
        ({"SINKBENCH_SECURITY": "on"}, [BASE, "compose.override.yml", SECURE_FILE]),
        ({"SINKBENCH_TOPOLOGY": "published", "COMPOSE_FILE": "docker-compose.yml:mine.yml"}, []),
    ],
)  # fmt: skip
def test_settings_choose_the_files_unless_the_user_names_them(
    given: dict[str, str], files: list[str], cli: Made, ran: Mock, tmp_path: Path
) -> None:
    (tmp_path / "compose.override.yml").write_text("services: {}\n")
    cli(**given).run("down")
    named = [part for file in files for part in ("--file", file)]
    assert ran.call_args.args[0] == ["docker", "compose", *named, "--progress", "plain", "down"]
    # What .env names counts, too.
    (tmp_path / ".env").write_text("SINKBENCH_SECURITY=on\nCOMPOSE_FILE=docker-compose.yml:docker-compose.secure.yml\n")
    cli().run("down")
    assert "--file" not in ran.call_args.args[0]


def test_the_settings_in_force_reach_compose_with_the_ports_of_further_nodes(cli: Made, ran: Mock) -> None:
    given = {"KAFKA_PORT": "21000", "PORT_OFFSET": "100", "TOPOLOGY": "published", "POSTGRES_MEMORY": "5g"}
    cli(**{f"SINKBENCH_{name}": value for name, value in given.items()}).run("up")
    environment = ran.call_args.args[1]
    assert environment["SINKBENCH_KAFKA_PORT"] == "21100"
    assert (environment["KAFKA_2_PORT"], environment["KAFKA_3_PORT"]) == ("21102", "21104")
    assert (environment["ELASTICSEARCH_3_PORT"], environment["POSTGRES_2_PORT"]) == ("19302", "15533")
    assert (environment["SINKBENCH_WORKERS"], environment["SINKBENCH_KAFKA_HEAP"]) == ("6", "512m")
    assert environment["SINKBENCH_POSTGRES_MEMORY"] == "5g"


def endpoints_of(
    found: list[Container], inside: bool, layout: Topology | None = None, gone: frozenset[str] = frozenset(),
    security: Security | None = None,
) -> Endpoints:  # fmt: skip
    return Reach(names_of(found), inside, layout or Topology(), security, gone).endpoints


def test_from_outside_services_are_reached_by_their_published_ports() -> None:
    found = endpoints_of(STACK, inside=False)
    assert found.kafka == "127.0.0.1:19092"
    assert found.connect == {"connect-1": "http://127.0.0.1:18083", "connect-2": "http://127.0.0.1:18084"}
    assert found.sinks["elasticsearch"].address == "http://127.0.0.1:19200"
    assert "port=16432" in found.sinks["pgbouncer"].address
    assert found.loadgens == {"loadgen-1": "http://127.0.0.1:32768"}
    assert found.connect_metrics == {"connect-1": "http://127.0.0.1:32901/metrics"}
    # A load generator runs among the containers, wherever the controller is.
    assert found.loadgen_kafka == "kafka:9092"
    with pytest.raises(StackError, match=r"elasticsearch: its port 9200 is not published"):
        endpoints_of([container("elasticsearch")], inside=False)


@pytest.mark.parametrize("inside", [False, True])
def test_workers_are_known_by_the_names_that_they_give_themselves(inside: bool) -> None:
    found = endpoints_of(STACK, inside)
    assert found.worker_ids == {"connect10000:8083": "connect-1", "connect20000:8083": "connect-2"}
    # As the certificate has it.
    secured = endpoints_of(STACK, inside, security=SECURITY)
    assert secured.worker_ids == {"ours-connect-1:8083": "connect-1", "ours-connect-2:8083": "connect-2"}
    if inside:
        assert found.connect == {"connect-1": "http://connect10000:8083", "connect-2": "http://connect20000:8083"}
        assert "host=pgbouncer" in found.sinks["pgbouncer"].address
        assert found.connect_metrics["connect-2"] == "http://connect20000:9404/metrics"


def test_each_node_of_several_is_reached_in_starting_order_and_checked() -> None:
    found, inside = endpoints_of(CLUSTERS, False, PUBLISHED), endpoints_of(CLUSTERS, True, PUBLISHED)
    assert found.kafka == "127.0.0.1:19092,127.0.0.1:19094,127.0.0.1:19096"
    assert inside.kafka == found.loadgen_kafka == "kafka:9092,kafka-2:9092,kafka-3:9092"
    assert found.brokers["kafka-3"] == "127.0.0.1:19096"
    elastic = found.sinks["elasticsearch"].nodes.values()
    assert [each.address for each in elastic] == [f"http://127.0.0.1:1920{n}" for n in range(3)]
    assert inside.sinks["elasticsearch"].nodes["elasticsearch-2"].address == "http://elasticsearch-2:9200"
    assert "port=15433" in found.sinks["postgres"].nodes["postgres-2"].address
    names = [node.name for node in PUBLISHED.nodes]
    assert list(checks(found)) == names
    assert list(names_of(CLUSTERS)) == [*names, "loadgen-1"]


def test_a_node_that_is_gone_is_neither_asked_first_nor_waited_for() -> None:
    others = [each for each in CLUSTERS if each.service != "kafka"]
    found = endpoints_of(others, False, PUBLISHED, frozenset({"elasticsearch-3"}))
    assert (found.kafka, found.brokers["kafka"]) == ("127.0.0.1:19094,127.0.0.1:19096", "127.0.0.1:0")
    assert {each.options["nodes"] for each in found.sinks["elasticsearch"].nodes.values()} == {"2"}


def test_clients_of_secured_containers_use_tls_and_passwords() -> None:
    found = endpoints_of(STACK, inside=False, security=SECURITY)
    addresses = (found.sinks["elasticsearch"].address, found.connect["connect-1"], found.loadgens["loadgen-1"])
    assert all(address.startswith("https://127.0.0.1:") for address in addresses)
    assert found.loadgen_access == SECURITY.access("loadgen")
    assert "password" not in found.sinks["pgbouncer"].shown


def test_any_number_of_workers_and_services_that_are_not_there_are_no_other_nodes() -> None:
    assert other_nodes(names_of(STACK), Topology()) is None
    assert other_nodes(["elasticsearch", "postgres", "loadgen-7"], Topology()) is None
    said = "there are kafka, kafka-2, kafka-3, and the topology small has kafka"
    assert other_nodes(names_of(CLUSTERS), Topology()) == said


@pytest.mark.parametrize(
    ("state", "status", "expected"),
    [
        ("running", "Up 5 seconds (healthy)", "running"),
        ("running", "Up 5 seconds (health: starting)", "running"),
        ("running", "Up 5 minutes (unhealthy)", "dead"),
        ("exited", "Exited (0) 3 seconds ago", "stopped"),
        ("exited", "Exited (143) 3 seconds ago", "stopped"),
        ("exited", "Exited (137) 3 seconds ago", "dead"),
        ("created", "Created", "stopped"),
        ("paused", "Up 5 minutes (Paused)", "dead"),
    ],
)
def test_the_state_of_a_container(state: str, status: str, expected: str) -> None:
    states = states_of({"kafka": container("kafka", state=state, status=status)}, Topology())
    assert {each.name: each.state for each in states}["kafka"] == expected


def test_one_answer_of_the_engine_has_cpu_time_and_memory() -> None:
    memory = {"usage": 900, "stats": {"anon": 500, "file": 300, "file_mapped": 40, "inactive_file": 200}}
    assert used_by({"cpu_stats": {"cpu_usage": {"total_usage": 2_500_000_000}}, "memory_stats": memory}) == (2.5, 540.0)
    older = {"stats": {"total_rss": 500, "total_mapped_file": 40, "rss": 1}}
    assert used_by({"memory_stats": older}) == (None, 540.0)
    assert used_by({"cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}}) == (None, None)


def engine_of(found: list[Container]) -> SimpleNamespace:
    """An engine with these containers; each has used 1.5 CPU seconds."""
    return SimpleNamespace(
        containers=lambda: found,
        used=lambda each: (1.5, 2.0),
        out_of_memory=lambda since, until: set(),
        inspect=lambda each: {"State": {}},
        log_tail=lambda each, lines: "its log",
        process_id=lambda each: None,
        data_root=lambda: "/",
        project_of=lambda host: None,
    )


def cli_of(config: dict[str, Any], engine: SimpleNamespace, left: list[Container]) -> SimpleNamespace:
    """The command of a project with these services; `up` fails, and leaves these containers."""

    def run(*arguments: str, **_: object) -> Any:
        failed = arguments[0] == "up"
        if failed:
            engine.containers = lambda: left
        return SimpleNamespace(returncode=int(failed), stdout="", stderr="started\nthe end")

    return SimpleNamespace(config=lambda: {"name": "ours", "services": config}, run=run)


def opened(
    monkeypatch: pytest.MonkeyPatch,
    found: list[Container],
    layout: Topology = Topology(),  # noqa: B008
    config: dict[str, Any] = COMPOSE,
    left: list[Container] | None = None,
    **settings: Any,
) -> ComposeStack:
    engine = engine_of(found)
    monkeypatch.setattr(compose, "DockerEngine", lambda project: engine)
    monkeypatch.setattr(compose, "ComposeCli", lambda *_: cli_of(config, engine, left or []))
    return ComposeStack(Settings(**settings).with_layout(layout), Path("/a b/checkout"))


def test_a_reading_is_given_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = opened(monkeypatch, [container("kafka"), container("postgres", state="exited", status="Exited (1)")])
    monkeypatch.setattr(engine, "LEAST_SECONDS", 600.0)
    first, again = stack.usage(), stack.usage()
    assert first.cpu_seconds == {"kafka": 1.5, "postgres": None}
    assert first.memory_bytes == again.memory_bytes == {"kafka": 2.0, "postgres": None}
    assert again.cpu_seconds == {}


def test_what_the_machine_cannot_hold_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose.psutil, "virtual_memory", lambda: SimpleNamespace(available=2**30))
    with pytest.raises(StackError, match=r"the topology published needs 11.9 GB of memory"):
        opened(monkeypatch, [], PUBLISHED, {**COMPOSE, **CLUSTERS_FILE}).up(print)


@pytest.mark.parametrize(
    ("found", "layout", "config", "settings", "said"),
    [
        ([], PUBLISHED, COMPOSE, {}, "^in the compose files there are kafka, and the topology pub"),
        (STACK, PUBLISHED, CLUSTERS_FILE, {}, "^the containers are those of another topology: there are kafka, "),
        ([], Topology(), COMPOSE, {"security": "on"}, "COMPOSE_FILE lacks docker-compose.secure.yml"),
        ([container("kafka", secured=True)], Topology(), COMPOSE, {}, "kafka wants TLS and a password"),
        (STACK, Topology(), services(SECURE_FILE), {"security": "on"}, "kafka has no TLS and no users"),
        ([], PUBLISHED, {**CLUSTERS_FILE, **services(SECURE_FILE)}, {}, "give kafka-2, kafka-3, elastic"),
    ],
)  # fmt: skip
def test_files_containers_and_settings_that_do_not_agree_are_refused(
    found: list[Container], layout: Topology, config: dict[str, Any], settings: dict[str, str], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    stack = opened(monkeypatch, found, layout, config, **settings)
    with pytest.raises(StackError, match=said):
        stack.up(print)


STARTING = container("elasticsearch", status="Up 5 seconds (health: starting)")
UNHEALTHY = container("kafka", status="Up 5 seconds (unhealthy)")


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (
            [STARTING, UNHEALTHY, container("postgres", state="exited", status="Exited (1) now")],
            "postgres did not start",
        ),
        ([STARTING, UNHEALTHY], "kafka did not start"),
        ([STARTING], "elasticsearch did not start"),
        ([container("connect", state="created", status="Created")], "docker compose up failed: the end"),
    ],
)
def test_the_container_is_named_because_of_which_the_others_wait(
    left: list[Container], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "check_memory", lambda *_: None)
    with pytest.raises(StackError, match=said):
        opened(monkeypatch, [], left=left).up(print)


def test_a_proxy_before_a_secured_sink_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    proxies = present(opened(monkeypatch, [container("kafka", secured=True)]).faults.proxies)
    with pytest.raises(StackError, match="the containers are secured: no proxy can stand before a sink"):
        proxies.check()


def defaults() -> dict[str, str]:
    return {f"SINKBENCH_{name.upper()}": str(field.default) for name, field in Settings.model_fields.items()}


def test_every_variable_of_the_compose_file_is_a_setting_with_the_same_default() -> None:
    found = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", (CHECKOUT / "docker-compose.yml").read_text()))
    own = {name: value for name, value in found.items() if name.startswith("SINKBENCH_")}
    # Empty, so that the controller's container can see whether a plan is asked for.
    assert own.pop("SINKBENCH_PLAN") == ""
    assert own == {name: defaults()[name] for name in own}
    assert set(found) - set(own) == {"SINKBENCH_PLAN", "DOCKER_SOCKET", "COMPOSE_PROJECT_NAME"}


def test_the_published_file_has_the_nodes_and_sizes_of_the_published_topology() -> None:
    settings = Settings.model_construct(topology="published", _fields_set={"topology"}).with_layout(PUBLISHED)
    assert {name for name in CLUSTERS_FILE if name.startswith(("kafka", "elasticsearch", "postgres"))} == {
        node.name for node in PUBLISHED.nodes if node.service in ("kafka", "elasticsearch", "postgres")
    }
    ports = {"kafka_port": 9092, "kafka_controller_port": 9093, "elasticsearch_port": 9200,
             "elasticsearch_transport_port": 9300, "postgres_port": 5432}  # fmt: skip
    wanted = shared_variables(Place(PUBLISHED, lambda node, port: (node.name, ports.get(port, 0))))
    for name, service in CLUSTERS_FILE.items():
        given = {key: str(value) for key, value in service["environment"].items() if key != "KAFKA_CONTROLLER_HOST"}
        assert {key: value for key, value in given.items() if key in wanted} == {
            key: value for key, value in wanted.items() if key in given
        }, name
        node = next((each for each in PUBLISHED.nodes if each.name == name), None)
        if node is None:
            continue
        assert set(service.get("extends", {"service": node.service}).values()) >= {node.service}
        heap = settings.layout.heaps().get(node.service)
        assert heap is None or given[f"{node.service.upper()}_HEAP"].endswith(f":-{heap}}}")
        if node.number > 1:
            port = f"{settings.port(f'{node.service}_port', node.number)}"
            assert f"_PORT:-{port}}}:" in service["ports"][0]
    assert CLUSTERS_FILE["connect"]["scale"] == f"${{SINKBENCH_WORKERS:-{PUBLISHED.connect.nodes}}}"


@pytest.mark.parametrize("file", sorted(CHECKOUT.glob("docker-compose*.yml")), ids=lambda file: file.name)
def test_every_port_is_published_on_loopback_only(file: Path) -> None:
    for name, service in services(file.name).items():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), name


def test_every_container_is_limited_checked_and_started_by_the_folders_own_run_script() -> None:
    assert set(COMPOSE) == {*PORTS, "controller"}
    for name, service in COMPOSE.items():
        assert service["init"] is True, name
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        memory = f"SINKBENCH_{name.upper()}_MEMORY"
        assert (service["mem_limit"], service["cap_drop"]) == (f"${{{memory}:-{defaults()[memory]}}}", ["ALL"])


@pytest.mark.parametrize("file", sorted(CHECKOUT.glob("*/Dockerfile")), ids=lambda file: file.parent.name)
def test_no_image_runs_as_root_or_asks_a_registry_for_more_than_its_base(file: Path) -> None:
    text = file.read_text()
    assert not text.startswith("# syntax=")
    assert {line.split()[1] for line in text.splitlines() if line.startswith("FROM")} == {"debian:trixie-slim"}
    users = re.findall(r"^USER (\w+)", text, re.MULTILINE)
    assert users
    assert "root" not in users
