"""Several nodes of each service, really: they find one another, one of each dies and comes back, a race runs."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from sinkbench.runs.store import read_summary
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink
from sinkbench.stack.local import LocalStack
from tests.e2e.hands import with_target
from tests.e2e.ownstacks import own_stack
from tests.support.commands import Run, succeeded
from tests.support.trials import quick_plan

OFFSET = 1500
# The published topology, but for its workers.
TOPOLOGY = (CHECKOUT / "topologies" / "published.yaml").read_text().replace("connect: {nodes: 6", "connect: {nodes: 1")
SYNCHRONOUS = "SELECT application_name, state, sync_state FROM pg_stat_replication"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    """A stack of several nodes that is down."""
    (tmp_path / "several.yaml").write_text(TOPOLOGY)
    with own_stack("stack of several nodes", OFFSET, TOPOLOGY=str(tmp_path / "several.yaml")) as stack:
        yield stack


def replication(stack: LocalStack) -> list[tuple[str, str, str]]:
    with psycopg.connect(stack.endpoints.sinks["postgres"].address) as connection:
        return connection.execute(SYNCHRONOUS).fetchall()


def health(stack: LocalStack, index: str = "") -> dict[str, object]:
    address = stack.endpoints.sinks["elasticsearch"].address
    waited = {"wait_for_status": "green", "timeout": "30s"}
    found: dict[str, object] = httpx.get(f"{address}/_cluster/health/{index}", params=waited, timeout=60).json()
    return found


@pytest.mark.long
def test_a_stack_of_many_nodes_starts_loses_nodes_and_races(stack: LocalStack, sinkbench: Run, tmp_path: Path) -> None:
    succeeded(sinkbench("up"))

    status = succeeded(sinkbench("status"))
    lines = {line.split()[0]: line for line in status.stdout.splitlines()}
    for node in stack.settings.layout.nodes:
        assert "running" in lines[node.name]
    assert "topology several" in status.stdout

    assert replication(stack) == [("postgres-2", "streaming", "sync")]
    assert Kafka(stack.endpoints.kafka).brokers() == {1, 2, 3}
    with with_target(open_sink("elasticsearch", stack.endpoints, CHECKOUT), "tides_e2e"):
        found = health(stack, "tides_e2e")
    assert (found["status"], found["number_of_nodes"]) == ("green", 3)
    assert (found["active_primary_shards"], found["active_shards"]) == (3, 6)

    # One of each cluster dies, all at the same time.
    for name in ("kafka-3", "elasticsearch-2", "postgres-2"):
        stack.faults.do("kill", name)
    assert stack.dead().keys() == {"kafka-3", "elasticsearch-2", "postgres-2"}
    for name in ("kafka-3", "elasticsearch-2", "postgres-2"):
        stack.faults.do("start", name)
    assert all(state.state == "running" for state in stack.services())
    assert [each[0] for each in replication(stack)] == ["postgres-2"]
    assert health(stack)["number_of_nodes"] == 3

    plan = quick_plan("elasticsearch/camel-bulk", "postgres/jdbc", window=3, warm_up=1)
    (tmp_path / "mine.yaml").write_text(plan)
    succeeded(sinkbench("race", "mine.yaml"))
    summary = read_summary(tmp_path / "results" / "latest" / "summary.json")
    assert summary.environment["topology"]["name"] == "several.yaml"  # type: ignore[index, call-overload]
    assert summary.environment["durability"]["kafka"]["replication"] == 3  # type: ignore[index, call-overload]
    for cell in summary.cells:
        assert (cell.audit.lost, cell.audit.duplicates) == (0, 0)
        # A service's figure is of all its nodes; a node is none of the services.
        assert {"kafka", "connect", "elasticsearch", "postgres"} <= set(cell.cpu_seconds_per_million)
        assert "kafka-2" not in cell.cpu_seconds_per_million
    (lagging,) = (cell for cell in summary.cells if cell.sink == "postgres")
    assert lagging.figures["standby_lag_bytes"].median >= 0
    assert not any("standby_lag_bytes" in cell.figures for cell in summary.cells if cell is not lagging)
    samples = next((tmp_path / "results" / "latest" / "samples").glob("*.csv")).read_text().splitlines()
    assert {"cpu_seconds_kafka-3", "cpu_seconds_postgres-2"} <= set(samples[0].split(","))

    succeeded(sinkbench("down"))
    assert stack.start_id() is None
