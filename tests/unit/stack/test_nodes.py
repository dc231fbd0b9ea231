"""What each node of a local stack starts with, what it waits for, and where it is reached."""

import getpass
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from supervisor.options import ServerOptions

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, PORTS, Settings, load_settings
from sinkbench.stack.assembly import endpoints_of, specs
from sinkbench.stack.home import Home, supervisor_config
from sinkbench.stack.local import LocalStack
from sinkbench.stack.registry import Place
from sinkbench.topology import SERVICES, check_memory, load_topology, needed_bytes

HEAD = (CHECKOUT / "local" / "supervisord.conf").read_text()
Made = Callable[..., Settings]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: None) -> Made:
    """Settings with these values, and none of the machine's; a path holds a space."""

    def made(topology: str = "published", **given: str) -> Settings:
        monkeypatch.setenv("SINKBENCH_TOPOLOGY", topology)
        monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path / "a home"))
        for name, value in given.items():
            monkeypatch.setenv(f"SINKBENCH_{name.upper()}", value)
        return load_settings(tmp_path)

    return made


def programs(text: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> dict[str, ServerOptions]:
    """What supervisord reads in a configuration, by the name of each process."""
    home = Home(settings)
    for folder in (home.path / "log", home.data):
        folder.mkdir(parents=True, exist_ok=True)
    for name, value in {
        "SINKBENCH_SOCKET": str(home.path / "socket"),
        "SINKBENCH_HOME": str(home.path),
        "SINKBENCH_DATA": str(home.data),
        "SINKBENCH_USER": getpass.getuser(),
        "SINKBENCH_WORKERS": str(settings.workers),
    }.items():
        monkeypatch.setenv(name, value)
    home.supervisor_config.write_text(text)
    options = ServerOptions()
    options.realize(["-c", str(home.supervisor_config)])
    return {each.name: each for group in options.process_group_configs for each in group.process_configs}


def test_every_node_is_a_program_with_its_own_log_and_data(settings: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made = settings()
    found = programs(supervisor_config(HEAD, Home(made).place()), made, monkeypatch)
    assert sorted(found) == sorted(node.name for node in made.layout.nodes)
    logs = {name: Path(each.stdout_logfile).name for name, each in found.items()}
    assert logs == {name: f"{name}.log" for name in found}
    data = Home(made).data
    assert found["kafka-3"].environment == {
        **{"KAFKA_NODE": "3", "KAFKA_CONTROLLER_HOST": "localhost", "KAFKA_DATA": str(data / "kafka-3")},
        **{"KAFKA_PORT": "19096", "KAFKA_CONTROLLER_PORT": "19097"},
    }
    assert found["elasticsearch"].environment["ELASTICSEARCH_NODE"] == "elasticsearch"
    assert found["elasticsearch-2"].environment["ELASTICSEARCH_TRANSPORT_PORT"] == "19301"
    assert "POSTGRES_PRIMARY_PORT" not in found["postgres"].environment
    assert found["postgres-2"].environment["POSTGRES_PRIMARY_PORT"] == "15432"
    assert found["postgres-2"].command == found["postgres"].command
    assert found["connect-6"].environment == {"CONNECT_WORKER": "6"}


def test_the_services_of_a_topology_are_those_that_are_described_with_ports_that_can_be_set() -> None:
    assert tuple(specs()) == SERVICES
    ports = [name for spec in specs().values() if spec.name != "connect" for name in spec.ports]
    assert tuple(ports) == PORTS
    assert set(specs()["connect"].ports) <= set(Settings.model_fields)


def test_a_program_is_ended_as_its_service_wants_it(settings: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made = settings("small")
    found = programs(supervisor_config(HEAD, Home(made).place()), made, monkeypatch)
    ended = {name: (each.stopsignal, each.stopwaitsecs) for name, each in found.items()}
    assert ended["kafka"] == ended["elasticsearch"] == (signal.SIGTERM, 30)
    assert (ended["postgres"], ended["pgbouncer"]) == ((signal.SIGINT, 30), (signal.SIGINT, 5))
    assert all(each.killasgroup and not each.autorestart and each.startsecs == 0 for each in found.values())


def test_workers_wait_for_every_broker_and_a_replica_for_the_primary() -> None:
    topology = load_topology("published", Path(), CHECKOUT)

    def waits_for(name: str, **primaries: str) -> frozenset[str]:
        node = topology.node(name)
        return specs()[node.service].needs(Place(topology, lambda node, port: ("", 0), primaries=primaries), node)

    # A node waits for some of those that start before it.
    names = [node.name for node in topology.nodes]
    assert all(waits_for(name) <= set(names[:place]) for place, name in enumerate(names))
    assert waits_for("connect-4") == {"kafka", "kafka-2", "kafka-3"}
    assert waits_for("postgres-2") == waits_for("pgbouncer") == {"postgres"}
    # While a replica has taken its place, the first one is a replica, too.
    assert waits_for("postgres", postgres="postgres-2") == {"postgres-2"}
    assert waits_for("postgres-2", postgres="postgres-2") == waits_for("kafka-2") == frozenset()
    assert waits_for("pgbouncer", postgres="postgres-2") == {"postgres-2"}


def test_nodes_of_another_cluster_have_data_of_their_own(settings: Made) -> None:
    small, published = settings("small"), settings()
    assert Home(small).data == small.home / "data"
    assert Home(published).data.parent == published.home
    assert Home(published).data != Home(small).data
    # More workers, or a larger heap, are the same cluster.
    assert Home(settings(workers="2", kafka_heap="1g")).data == Home(published).data


@pytest.mark.parametrize(("topology", "security"), [("small", "off"), ("published", "off"), ("published", "on")])
def test_no_address_that_is_shown_has_a_password(settings: Made, topology: str, security: str) -> None:
    found = endpoints_of(Home(settings(topology, security=security)).place())
    assert "password=" in found.sinks["postgres"].address
    assert "password" not in str(found.addresses()) + repr(found)


def test_too_little_memory_is_refused_with_what_it_needs_and_what_there_is(settings: Made) -> None:
    topology = settings().layout
    check_memory(topology, needed_bytes(topology))
    heaps = "3 x 512m for kafka, 6 x 512m for connect, 3 x 768m for elasticsearch"
    said = rf"^the topology published needs 11.9 GB of memory \(heaps: {heaps}; .* 11.9 GB are available; .*=small$"
    with pytest.raises(StackError, match=said):
        check_memory(topology, needed_bytes(topology) - 1)


def test_a_disk_that_a_replica_would_write_to_as_well_is_not_filled(settings: Made) -> None:
    assert LocalStack(settings()).faults.small_disks("postgres") is None
