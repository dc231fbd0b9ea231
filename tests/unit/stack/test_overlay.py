"""What a topology changes of the containers: the overlay's values, names and ports, without `docker compose`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from sinkbench.cli.reference import published
from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings, load_settings
from sinkbench.stack.composecli import ComposeCli
from sinkbench.stack.overlay import PUBLISHED, overlay
from tests.support.ran import Ran, ran_instead

HERE = Path("/a b/checkout")
Made = Callable[..., Settings]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Settings with these values, and none of the machine's."""
    for name in [name for name in os.environ if name.startswith("SINKBENCH_")]:
        monkeypatch.delenv(name)

    def made(topology: str = "published", **given: str) -> Settings:
        if "{" in topology:
            (tmp_path / "mine.yaml").write_text(topology)
            topology = "mine.yaml"
        monkeypatch.setenv("SINKBENCH_TOPOLOGY", topology)
        monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path / "a home"))
        for name, value in given.items():
            monkeypatch.setenv(f"SINKBENCH_{name.upper()}", value)
        return load_settings(tmp_path)

    return made


def read(text: str) -> dict[str, Any]:
    """What stands in an overlay; the tags only say how compose joins it with what is inherited."""
    found: dict[str, Any] = YAML(typ="safe").load(text.replace("!override ", "").replace("!reset ", ""))
    return found


def services(settings: Settings, checkout: Path = HERE) -> dict[str, Any]:
    found: dict[str, Any] = read(overlay(settings, checkout))["services"]
    return found


def test_the_published_file_is_what_is_made_of_the_published_topology() -> None:
    kept = (CHECKOUT / PUBLISHED).read_text()
    assert kept == published(), f"{PUBLISHED} is stale; run scripts/reference"


def test_each_further_node_extends_its_service_and_the_first_one_is_changed(settings: Made) -> None:
    found = services(settings())
    assert list(found) == [
        *("kafka", "kafka-2", "kafka-3", "elasticsearch", "elasticsearch-2", "elasticsearch-3"),
        *("postgres", "postgres-2", "connect", "loadgen", "controller"),
    ]
    for name, service in found.items():
        further = name.endswith(("-2", "-3"))
        assert ("extends" in service) is further, name
        if further:
            assert service["extends"] == {"file": "/a b/checkout/docker-compose.yml", "service": name[:-2]}
            assert service["build"] is None
            assert service["pull_policy"] == "never"


def test_what_is_inherited_gives_way_to_a_nodes_own_ports(settings: Made) -> None:
    text = overlay(settings(), HERE)
    assert text.count("ports: !override [") == text.count("extends:") == text.count("build: !reset null") == 5


def test_ports_lie_on_loopback_by_the_rule_of_ports(settings: Made) -> None:
    found = services(settings(kafka_port="21000", port_offset="100"))
    assert {name: service["ports"] for name, service in found.items() if "ports" in service} == {
        "kafka-2": ["127.0.0.1:21102:21102"],
        "kafka-3": ["127.0.0.1:21104:21104"],
        "elasticsearch-2": ["127.0.0.1:19301:9200"],
        "elasticsearch-3": ["127.0.0.1:19302:9200"],
        "postgres-2": ["127.0.0.1:15533:5432"],
    }
    # Kafka redirects a client of the host to it.
    assert found["kafka-3"]["environment"]["KAFKA_HOST_PORT"] == 21104


def test_brokers_know_one_another_and_what_they_replicate(settings: Made) -> None:
    found = services(settings())
    for number, name in enumerate(("kafka", "kafka-2", "kafka-3"), start=1):
        told = found[name]["environment"]
        assert told["KAFKA_NODE"] == number
        assert told["KAFKA_ADVERTISED_HOST"] == told["KAFKA_CONTROLLER_HOST"] == name
        assert told["KAFKA_VOTERS"] == "1@kafka:9093,2@kafka-2:9093,3@kafka-3:9093"
        assert (told["KAFKA_REPLICATION"], told["KAFKA_MIN_INSYNC_REPLICAS"]) == (3, 2)


def test_nodes_of_elasticsearch_look_for_one_another_and_may_open_the_files_that_they_ask_for(settings: Made) -> None:
    found = services(settings())
    for name in ("elasticsearch", "elasticsearch-2", "elasticsearch-3"):
        told = found[name]["environment"]
        assert told["ELASTICSEARCH_NODE"] == name
        assert told["ELASTICSEARCH_SEEDS"] == "elasticsearch:9300,elasticsearch-2:9300,elasticsearch-3:9300"
        assert told["ELASTICSEARCH_MASTERS"] == "elasticsearch,elasticsearch-2,elasticsearch-3"
        assert found[name]["ulimits"] == {"nofile": 65535}


def test_a_replica_starts_after_its_primary_and_streams_from_it(settings: Made) -> None:
    found = services(settings())
    primary, replica = found["postgres"], found["postgres-2"]
    assert "POSTGRES_PRIMARY_HOST" not in primary["environment"]
    assert replica["environment"]["POSTGRES_PRIMARY_HOST"] == "postgres"
    assert replica["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for each in (primary, replica):
        assert each["environment"]["POSTGRES_STANDBYS"] == "postgres-2"
        assert each["environment"]["POSTGRES_SYNCHRONOUS"] == "on"


def test_workers_are_as_many_as_the_topology_has_and_reach_all_nodes(settings: Made) -> None:
    connect = services(settings())["connect"]
    assert connect["scale"] == "${SINKBENCH_WORKERS:-6}"
    assert set(connect["depends_on"]) == {"kafka-2", "kafka-3"}
    told = connect["environment"]
    assert told["KAFKA_BOOTSTRAP"] == "kafka:9092,kafka-2:9092,kafka-3:9092"
    assert told["CONNECT_REPLICATION"] == "3"
    assert told["ELASTICSEARCH_HOSTS"] == "elasticsearch:9200,elasticsearch-2:9200,elasticsearch-3:9200"


def test_a_setting_of_a_heap_wins_over_the_topologys(settings: Made) -> None:
    assert services(settings())["kafka"]["environment"]["KAFKA_HEAP"] == "${SINKBENCH_KAFKA_HEAP:-512m}"
    found = services(settings(kafka_heap="640m"))
    assert found["kafka-2"]["environment"]["KAFKA_HEAP"] == "${SINKBENCH_KAFKA_HEAP:-640m}"


def test_a_heap_that_the_usual_container_cannot_hold_gets_a_larger_one(settings: Made) -> None:
    found = services(settings("kafka: {heap: 3g}\nconnect: {heap: 1g}\nelasticsearch: {nodes: 2, heap: 2g}"))
    assert found["kafka"] == {
        "environment": {"KAFKA_HEAP": "${SINKBENCH_KAFKA_HEAP:-3g}"},
        "mem_limit": "${SINKBENCH_KAFKA_MEMORY:-4608m}",
    }
    assert "mem_limit" not in found["connect"]
    assert "mem_limit" not in found["elasticsearch-2"]


def test_a_cluster_of_other_nodes_has_other_volumes_and_one_node_the_usual(settings: Made) -> None:
    def volumes(nodes: str) -> list[str]:
        return list(read(overlay(settings(f"kafka: {{nodes: {nodes}}}"), HERE)).get("volumes", {}))

    assert volumes("1") == []
    assert len(volumes("2")) == 2
    assert not set(volumes("2")) & set(volumes("3"))
    assert not set(volumes("[kafka, kafka-east]")) & set(volumes("2"))
    assert volumes("2")[0].startswith("kafka-")


def test_the_controllers_container_knows_the_topology_by_its_name_or_its_file(settings: Made, tmp_path: Path) -> None:
    assert services(settings())["controller"]["environment"] == {"SINKBENCH_TOPOLOGY": "published"}
    found = services(settings("kafka: {nodes: 2}"), tmp_path)["controller"]
    assert found["environment"] == {"SINKBENCH_TOPOLOGY": "topology/mine.yaml"}
    assert found["volumes"] == [
        {
            "type": "bind",
            "source": str(tmp_path / "mine.yaml"),
            "target": "/opt/sinkbench/topology/mine.yaml",
            "read_only": True,
        }
    ]


def test_a_path_with_a_dollar_stays_what_it_is(settings: Made) -> None:
    found = services(settings(), Path("/a$HOME"))
    assert found["kafka-2"]["extends"]["file"] == "/a$$HOME/docker-compose.yml"


# --- the command `docker compose` ---


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    return ran_instead(monkeypatch)


def test_every_command_reads_the_overlay_and_what_the_owner_changes_but_for_the_small_topology(
    settings: Made, ran: Ran, tmp_path: Path
) -> None:
    start = ["docker", "compose", "--project-directory", str(tmp_path)]
    ComposeCli(settings("small"), tmp_path).run("down")
    assert ran.asked[-1][0] == [*start, "--progress", "plain", "down"]
    assert not (tmp_path / "a home").exists()
    cli = ComposeCli(settings(), tmp_path)
    (tmp_path / "docker-compose.override.yml").write_text("services: {}\n")
    cli.run("down")
    files = ["docker-compose.yml", "a home/docker-compose.topology.yml", "docker-compose.override.yml"]
    named = [part for file in files for part in ("--file", str(tmp_path / file))]
    assert ran.asked[-1][0] == [*start, *named, "--progress", "plain", "down"]
    assert cli.overlay.read_text() == overlay(settings(), tmp_path)
    assert list(cli.overlay.parent.iterdir()) == [cli.overlay]


def test_what_the_owner_changes_of_a_node_that_the_overlay_alone_has_is_no_obstacle(
    settings: Made, ran: Ran, tmp_path: Path
) -> None:
    refused = (1, "", 'service "kafka-2" has neither an image nor a build context specified: invalid compose project')
    cli, small = ComposeCli(settings(), tmp_path), ComposeCli(settings("small"), tmp_path)
    ran.answers = [refused, (0, '{"name": "bench"}', "")]
    assert cli.project() == "bench"
    assert ran.asked[-1][0][4:6] == ["--file", str(tmp_path / "docker-compose.yml")]
    ran.answers = [refused, refused]
    with pytest.raises(StackError, match="invalid compose project"):
        cli.project()
    ran.answers = [refused]
    with pytest.raises(StackError, match="invalid compose project"):
        small.project()


def test_a_limit_of_memory_is_given_only_if_somebody_has_set_it(settings: Made, ran: Ran, tmp_path: Path) -> None:
    ComposeCli(settings(postgres_memory="5g"), tmp_path).run("up")
    given = {name: value for name, value in ran.asked[-1][1].items() if name.startswith("SINKBENCH_")}
    assert given["SINKBENCH_POSTGRES_MEMORY"] == "5g"
    assert "SINKBENCH_KAFKA_MEMORY" not in given
    assert (given["SINKBENCH_WORKERS"], given["SINKBENCH_KAFKA_HEAP"]) == ("6", "512m")


def test_a_compose_that_knows_no_override_is_refused_for_an_overlay_only(
    settings: Made, ran: Ran, tmp_path: Path
) -> None:
    ran.version = "2.24.3"
    ComposeCli(settings("small"), tmp_path)
    with pytest.raises(
        StackError, match=r"compose is 2\.24\.3, 2\.24\.4 or newer is needed for the topology published"
    ):
        ComposeCli(settings(), tmp_path)
    ran.version = "2.24.4"
    ComposeCli(settings(), tmp_path)


def test_an_overlay_that_cannot_be_written_names_the_folder(settings: Made, ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "a home").write_text("")
    with pytest.raises(StackError, match=r"a home: .*set SINKBENCH_HOME to a folder you can write"):
        ComposeCli(settings(), tmp_path).run("up")
