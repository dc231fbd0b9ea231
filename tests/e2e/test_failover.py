"""A replica of PostgreSQL really takes the place of its primary under a load, and gives it back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from sinkbench.errors import StackError
from sinkbench.settings import Settings, load_settings
from sinkbench.stack.local import LocalStack
from sinkbench.topology import needed_bytes
from tests.e2e.onetrial import one_trial
from tests.support.commands import QUICKLY_COMPILED

OFFSET = 2500
TOPOLOGY = """
kafka: {heap: 512m}
connect: {nodes: 1, heap: 512m}
elasticsearch: {heap: 512m}
postgres: {nodes: 2, synchronous: true}
"""
URL = "jdbc:postgresql://${env:POSTGRES_HOSTS}/${env:POSTGRES_DB}?targetServerType=primary&stringtype=unspecified"
PLAN = f"""
mode: faults
pipelines: [{{pipeline: postgres/jdbc, label: all hosts, overrides: {{connection.url: "{URL}"}}}}]
sustain: {{records_per_second: 500, seconds: 12}}
faults:
  - {{what: promote, at_seconds: 4, seconds: 2, patience_seconds: 2}}
"""
ROLES = "SELECT application_name, state, sync_state FROM pg_stat_replication"


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalStack]:
    """A stack with a replica that is down, beside whatever else is up."""
    usual = load_settings()
    home = usual.home / "stack with a replica"
    topology = tmp_path / "pair.yaml"
    topology.write_text(TOPOLOGY)
    for name, value in {
        **{"STACK": "local", "TOPOLOGY": str(topology), "HOME": str(home), "DIST": str(usual.dist)},
        **{"JAVA_OPTIONS": QUICKLY_COMPILED, "PORT_OFFSET": str(usual.port_offset + OFFSET)},
    }.items():
        monkeypatch.setenv(f"SINKBENCH_{name}", value)
    settings = load_settings()
    if psutil.virtual_memory().available < needed_bytes(settings.layout):
        pytest.skip(f"this topology needs {needed_bytes(settings.layout) / 1e9:.1f} GB of memory")
    stack = LocalStack(settings)
    stack.down()
    yield stack
    stack.down()
    for data in home.glob("data-*"):
        shutil.rmtree(data)


def primary_of(stack: LocalStack) -> tuple[int, list[tuple[str, str, str]]]:
    """The port of the server that takes writes, and what follows it."""
    with psycopg.connect(stack.endpoints.sinks["postgres"].address) as connection:
        return connection.info.port, connection.execute(ROLES).fetchall()


def first_port(settings: Settings) -> int:
    return settings.port("postgres_port")


@pytest.mark.long
def test_a_replica_takes_over_without_a_loss_and_all_is_as_before_afterwards(pair: LocalStack, tmp_path: Path) -> None:
    pair.up(lambda line: None)
    assert primary_of(pair) == (first_port(pair.settings), [("postgres-2", "streaming", "sync")])
    record, _ = one_trial(pair, tmp_path, PLAN)
    assert record.reasons == []
    assert record.audit is not None
    assert (record.audit.lost, record.audit.stored >= 6_000) == (0, True)
    assert record.recovery is not None
    assert record.recovery.recovered
    assert record.recovery.whom == "primary of postgres"
    assert not [note for note in record.notes if note.startswith("in the end")]
    assert primary_of(pair) == (first_port(pair.settings), [("postgres-2", "streaming", "sync")])

    # As if the controller had been killed: what was the primary is dead, and `up` changes all back.
    pair.promote()
    with psycopg.connect(pair.endpoints.sinks["postgres"].address) as connection:
        assert connection.info.port == first_port(pair.settings) + 1
    assert {state.name for state in pair.states() if state.state != "running"} == {"postgres"}
    # It is nobody's primary any more: it comes back as a replica, by whomever it is started.
    with suppress(StackError):
        pair.start("postgres")
    with psycopg.connect(pair.endpoints.sinks["postgres"].nodes["postgres"].address) as connection:
        assert connection.execute("SELECT pg_is_in_recovery()").fetchall() == [(True,)]
    pair.up(lambda line: None)
    assert primary_of(pair) == (first_port(pair.settings), [("postgres-2", "streaming", "sync")])
