"""Which node of PostgreSQL is the primary, by the file that says so, without a server."""

from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings, load_settings
from sinkbench.sinks.postgres.roles import PRIMARY_FILE, PostgresRoles, farthest, pointed_at, waiting_for
from sinkbench.stack.home import Home
from sinkbench.stack.local import LocalStack


@dataclass
class Processes:
    """Keeps what it is told; each program runs until it is killed."""

    names: tuple[str, ...]
    dead: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)

    def pids(self) -> dict[str, int]:
        return {name: 1 for name in self.names if name not in self.dead}

    def start(self, name: str) -> None:
        self.told.append(f"start {name}")
        self.dead.discard(name)

    def stop(self, name: str, how: str = "stop") -> None:
        self.told.append(f"{how} {name}")
        self.dead.add(name)

    def kill(self, name: str) -> None:
        self.stop(name, "kill")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: None) -> Settings:
    (tmp_path / "trio.yaml").write_text("postgres: {nodes: 3}\n")
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "trio.yaml")
    monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path / "home"))
    made = load_settings(tmp_path)
    Home(made).data.mkdir(parents=True)
    return made


@pytest.fixture
def processes(settings: Settings) -> Processes:
    return Processes(tuple(node.name for node in settings.layout.nodes))


@pytest.fixture
def roles(settings: Settings, processes: Processes) -> PostgresRoles:
    return PostgresRoles(Home(settings).place, processes)


@pytest.fixture
def primary_file(settings: Settings) -> Path:
    return Home(settings).data / PRIMARY_FILE


@pytest.fixture
def standbys(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The nodes that are no primary; all answer without a server."""
    received = {"postgres": 9, "postgres-2": 7, "postgres-3": 8}
    found = {"postgres-2", "postgres-3"}

    def ask(roles: PostgresRoles, name: str, question: str) -> object:
        if not roles._runs(name):
            raise StackError(f"{name}: connection refused")
        if "pg_promote" in question:
            found.discard(name)
            return True
        if question == "SELECT pg_is_in_recovery()":
            return name in found
        return received[name] if "receive_lsn" in question else roles._nodes[roles.primary][1]

    monkeypatch.setattr(PostgresRoles, "_ask", ask)
    monkeypatch.setattr(PostgresRoles, "_tell_pooler", lambda roles, name: None)
    return found


def test_of_replicas_the_one_that_has_most_takes_over() -> None:
    assert farthest({"postgres-2": 5, "postgres-3": 9}) == "postgres-3"
    assert farthest({"postgres-2": 5, "postgres-3": 5}) == "postgres-2"
    # Commits wait for one of the others, if there is one.
    assert waiting_for(["postgres"]) == "synchronous_standby_names = 'FIRST 1 (\"postgres\")'"
    assert waiting_for([]) == "synchronous_standby_names = ''"


@given(port=st.integers(1, 65535))
def test_pgbouncer_is_pointed_elsewhere_and_keeps_all_else(port: int) -> None:
    before = (CHECKOUT / "postgres" / "pgbouncer.ini").read_text() + (
        "listen_port = 16432\n\n[databases]\nsinkbench = host=127.0.0.1 port=15432 dbname=sinkbench\n"
    )
    after = pointed_at(before, "127.0.0.1", port)
    assert after.splitlines()[-1] == f"sinkbench = host=127.0.0.1 port={port} dbname=sinkbench"
    assert after.splitlines()[:-1] == before.splitlines()[:-1]


def test_without_the_file_the_first_node_is_the_primary(roles: PostgresRoles, processes: Processes) -> None:
    assert roles.primary == "postgres"
    roles.finish()
    roles.restore(pytest.fail)
    assert processes.told == []


def test_the_old_primary_is_dead_before_another_is_named(
    settings: Settings, roles: PostgresRoles, processes: Processes, standbys: set[str], primary_file: Path
) -> None:
    assert roles.promote() == ("127.0.0.1", settings.port("postgres_port", 3))
    assert roles.primary == "postgres-3"
    # The third follows the new one; the old one stays dead until the fault is over.
    assert processes.told == ["kill postgres", "stop postgres-2", "start postgres-2"]
    assert standbys == {"postgres-2"}
    assert primary_file.read_text() == f"postgres-3 127.0.0.1 {settings.port('postgres_port', 3)}\n"
    found = {name: each.options for name, each in LocalStack(settings).endpoints.sinks["postgres"].nodes.items()}
    assert found == {"postgres": {"role": "replica"}, "postgres-2": {"role": "replica"}, "postgres-3": {}}


def test_none_is_killed_without_a_replica(roles: PostgresRoles, processes: Processes, standbys: set[str]) -> None:
    for dead, said in (({"postgres-2", "postgres-3"}, "no replica of PostgreSQL answers"), ({"postgres"}, "not run")):
        processes.dead = dead
        with pytest.raises(StackError, match=said):
            roles.promote()
    assert processes.told == []


def test_the_roles_are_changed_back_from_wherever_a_controller_was_killed(
    roles: PostgresRoles, processes: Processes, standbys: set[str], primary_file: Path
) -> None:
    # The old one is dead, the new one named, and not promoted yet.
    processes.dead.add("postgres")
    primary_file.write_text("postgres-2 127.0.0.1 1\n")
    said: list[str] = []
    roles.restore(said.append)
    assert said == ["changing the roles of postgres back"]
    assert not primary_file.exists()
    assert processes.dead == set()
    assert processes.told == [
        *("start postgres", "stop postgres-2", "stop postgres-3", "start postgres-2", "start postgres-3")
    ]
    assert "postgres" not in standbys


def test_what_cannot_be_changed_back_is_shown_with_what_to_do(
    roles: PostgresRoles, standbys: set[str], primary_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary_file.write_text("postgres-2 127.0.0.1 1\n")
    monkeypatch.setattr(PostgresRoles, "_promote", Mock(side_effect=StackError("it is broken")))
    with pytest.raises(StackError) as refused:
        roles.restore()
    (line,) = str(refused.value).splitlines()
    assert line.startswith("the roles of postgres could not be changed back: it is broken; run `sinkbench up` again")
    assert line.endswith(f"`sinkbench down`, and remove {primary_file.parent}")
    assert primary_file.exists()


def test_the_controller_finds_the_primary_among_all_nodes(settings: Settings, primary_file: Path) -> None:
    found = conninfo_to_dict(LocalStack(settings).endpoints.sinks["postgres"].address)
    assert found["host"] == "127.0.0.1,127.0.0.1,127.0.0.1"
    assert found["port"] == ",".join(str(settings.port("postgres_port", number)) for number in (1, 2, 3))
    assert found["target_session_attrs"] == "read-write"
    assert "target_session_attrs" not in LocalStack(settings).endpoints.sinks["postgres"].nodes["postgres-2"].address
    primary_file.write_text("postgres-9 127.0.0.1 1\n")
    with pytest.raises(StackError, match="postgres-primary: names no node of this topology"):
        _ = LocalStack(settings).endpoints


def test_only_a_topology_with_a_replica_can_promote_one(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LocalStack(settings).faults.promotion("postgres") is not None
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "small")
    assert LocalStack(load_settings()).faults.promotion("postgres") is None
