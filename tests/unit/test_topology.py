"""Which nodes a stack has: the files that say so, the names and ports that follow, and the memory that they take."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.errors import SettingsError
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.topology import SERVICES, SHIPPED, Topology, load_topology, service_of
from sinkbench.yamlfile import to_yaml

pytestmark = pytest.mark.usefixtures("no_settings")


def of_file(folder: Path, text: str) -> Topology:
    (folder / "mine.yaml").write_text(text)
    return load_topology("mine.yaml", folder, CHECKOUT)


def test_the_small_file_is_what_is_made_without_a_file() -> None:
    assert load_topology("small", Path(), CHECKOUT) == Topology()
    assert [node.name for node in Topology().nodes] == [
        *("kafka", "elasticsearch", "postgres", "pgbouncer"),
        *("connect-1", "connect-2", "connect-3"),
    ]
    assert Topology().is_single


def test_the_published_one_has_the_nodes_of_the_comparison() -> None:
    found = load_topology("published", Path(), CHECKOUT)
    assert [len(found.of(service)) for service in SERVICES] == [3, 3, 2, 1, 6]
    assert (found.kafka.replication, found.kafka.min_insync_replicas) == (3, 2)
    assert (found.elasticsearch.shards, found.elasticsearch.replicas) == (3, 1)
    assert (found.postgres.synchronous, found.is_single) == (True, False)


@given(kafka=st.integers(1, 9), elastic=st.integers(1, 9), postgres=st.integers(1, 5), workers=st.integers(1, 16))
def test_every_node_has_a_name_of_its_own_that_tells_its_service(
    tmp_path_factory: pytest.TempPathFactory, kafka: int, elastic: int, postgres: int, workers: int
) -> None:
    nodes = {"kafka": kafka, "connect": workers, "elasticsearch": elastic, "postgres": postgres}
    given = to_yaml({service: {"nodes": number} for service, number in nodes.items()})
    sized = of_file(tmp_path_factory.getbasetemp(), given)
    names = [node.name for node in sized.nodes]
    assert len(set(names)) == len(names) == sum(nodes.values()) + 1
    assert all(service_of(node.name) == node.service for node in sized.nodes)
    assert all(sized.of(service)[0].name == service for service in nodes if service != "connect")


def test_a_name_of_another_sink_tells_its_service() -> None:
    assert [service_of(name) for name in ("mariadb", "my-sink-3", "postgresql")] == ["mariadb", "my-sink", "postgresql"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kafka: {nodes: [kafka, kafka-2]}", "mine.yaml:1: kafka.nodes must be a whole number from 1 to 9, found a l"),
        ("kafka: {nodes: 3}\nconect: {}", "mine.yaml:2: unknown key 'conect' in topology; did you mean 'connect'?"),
        ("kafka: {nodes: 0}", "kafka.nodes must be a whole number from 1 to 9, found 0"),
        ("kafka: {nodes: true}", "kafka.nodes must be a whole number from 1 to 9, found true"),
        ("kafka: {nodes: 2, replication: 3}", "kafka.replication must be at most the number of nodes, 2, found 3"),
        ("kafka: {min_insync_replicas: 2}", "kafka.min_insync_replicas must be at most replication, 1, found 2"),
        ("kafka: {heap: 512}", "kafka.heap must be such as 768m or 2g, found 512"),
        ("connect: {nodes: 17}", "connect.nodes must be at most 16, found 17"),
        ("elasticsearch: {replicas: 1}", "elasticsearch.replicas must be less than the number of nodes, 1, found 1"),
        ("postgres: {synchronous: true}", "postgres.synchronous is true, and no second node is there to wait for"),
        ("3", "a topology must be a mapping of keys to values"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_line_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        of_file(tmp_path, text)
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("publishd", "SINKBENCH_TOPOLOGY=publishd: must be small, published, or a file .*did you mean 'published'"),
        ("", "SINKBENCH_TOPOLOGY=: must be small, published, or a file"),
        ("mine.yml", "mine.yml: there is no such topology"),
    ],
)
def test_a_setting_that_names_no_topology_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str, said: str
) -> None:
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", choice)
    with pytest.raises(SettingsError, match=said):
        load_settings(tmp_path)


def test_the_name_of_a_file_is_never_that_of_a_shipped_one(tmp_path: Path) -> None:
    assert of_file(tmp_path, "connect: {nodes: 1}").name == "mine.yaml"
    (tmp_path / "small.yaml").write_text("kafka: {nodes: 3}")
    assert load_topology("small.yaml", tmp_path, CHECKOUT).name not in SHIPPED


def test_workers_and_heaps_are_the_topologys_unless_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [load_settings(tmp_path).with_workers(plans).layout.connect.nodes for plans in (None, 1, 5)] == [3, 1, 5]
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "published")
    # A plan's workers give way to what is set.
    found = load_settings(tmp_path).with_workers(1)
    assert (found.workers, found.kafka_heap, found.elasticsearch_heap) == (6, "512m", "768m")
    monkeypatch.setenv("SINKBENCH_WORKERS", "2")
    (tmp_path / ".env").write_text("SINKBENCH_KAFKA_HEAP=1g\n")
    found = load_settings(tmp_path).with_workers(1)
    assert (found.workers, found.kafka_heap, found.connect_heap) == (2, "1g", "512m")
    assert found.layout.heaps() == {"kafka": "1g", "connect": "512m", "elasticsearch": "768m"}
    assert [node.name for node in found.layout.of("connect")] == ["connect-1", "connect-2"]
    # A heap that the topology does not give is that of the settings.
    (tmp_path / "mine.yaml").write_text("elasticsearch: {nodes: 3, replicas: 2}\n")
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "mine.yaml")
    assert load_settings(tmp_path).layout.heaps()["elasticsearch"] == "1g"


def test_a_shown_topology_can_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "published")
    monkeypatch.setenv("SINKBENCH_WORKERS", "5")
    first = load_settings(tmp_path)
    monkeypatch.delenv("SINKBENCH_TOPOLOGY")
    monkeypatch.delenv("SINKBENCH_WORKERS")
    (tmp_path / ".env").write_text(first.show())
    assert load_settings(tmp_path) == first
    assert "# kafka: kafka, kafka-2, kafka-3; replication 3; min_insync_replicas 2" in first.show().splitlines()


def test_every_node_has_ports_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "published")
    settings = load_settings(tmp_path)
    ports = {(service, variable): number for number, variable, service in settings.ports()}
    assert len({*ports.values(), settings.live_port}) - 1 == len(ports) == 2 * 3 + 2 * 3 + 2 + 1 + 2 * 6
    assert ports["kafka-3", "SINKBENCH_KAFKA_PORT"] == settings.port("kafka_port") + 4
    assert ports["kafka-2", "SINKBENCH_KAFKA_CONTROLLER_PORT"] == settings.port("kafka_controller_port") + 2
    assert ports["elasticsearch-3", "SINKBENCH_ELASTICSEARCH_TRANSPORT_PORT"] == 19302
    assert ports["postgres-2", "SINKBENCH_POSTGRES_PORT"] == 15433
