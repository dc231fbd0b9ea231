"""Containers of several nodes, as a user's own compose file and topology file describe them.

Last, since it starts containers of its own: those of other tests must be gone, for there is one project.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sinkbench.services.kafka import Kafka
from sinkbench.settings import Settings
from sinkbench.stack.compose import ComposeStack
from tests.support.commands import Run, refuses, succeeded
from tests.support.latest import summary_of
from tests.support.trials import quick_plan

from .composed import compose_in, settings_of

# One node of Elasticsearch needs nothing of the machine.
TOPOLOGY = """
kafka: {nodes: 2, heap: 512m, replication: 2, min_insync_replicas: 1}
connect: {nodes: 2, heap: 512m}
elasticsearch: {heap: 768m}
postgres: {nodes: 2, synchronous: true}
"""
OVERRIDE = """
x-brokers: &brokers {KAFKA_VOTERS: "1@kafka:9093,2@kafka-2:9093", KAFKA_REPLICATION: 2}
x-databases: &databases {POSTGRES_STANDBYS: postgres-2, POSTGRES_SYNCHRONOUS: "on"}
services:
  kafka:
    environment: {<<: *brokers, KAFKA_NODE: 1, KAFKA_CONTROLLER_HOST: kafka}
    volumes: ["two-kafka:/var/lib/kafka"]
  kafka-2:
    extends: {file: docker-compose.yml, service: kafka}
    build: !reset null
    ports: !override ["127.0.0.1:${KAFKA_2_PORT}:${KAFKA_2_PORT}"]
    environment:
      <<: *brokers
      KAFKA_NODE: 2
      KAFKA_ADVERTISED_HOST: kafka-2
      KAFKA_CONTROLLER_HOST: kafka-2
      KAFKA_HOST_PORT: ${KAFKA_2_PORT}
    volumes: ["two-kafka-2:/var/lib/kafka"]
  postgres:
    environment: {<<: *databases, POSTGRES_NODE: postgres}
    volumes: ["two-postgres:/var/lib/postgresql/sinkbench"]
  postgres-2:
    extends: {file: docker-compose.yml, service: postgres}
    build: !reset null
    ports: !override ["127.0.0.1::5432"]
    depends_on: {postgres: {condition: service_healthy}}
    environment:
      <<: *databases
      POSTGRES_NODE: postgres-2
      POSTGRES_PRIMARY_HOST: postgres
      POSTGRES_PRIMARY_PORT: 5432
    volumes: ["two-postgres-2:/var/lib/postgresql/sinkbench"]
  connect:
    depends_on: {kafka-2: {condition: service_healthy}}
    environment: {CONNECT_REPLICATION: 2, KAFKA_BOOTSTRAP: "kafka:9092,kafka-2:9092"}
  controller:
    environment: {SINKBENCH_TOPOLOGY: plans/two.yaml}
volumes: {two-kafka: , two-kafka-2: , two-postgres: , two-postgres-2: }
"""
SYNCHRONOUS = "SELECT application_name, state, sync_state FROM pg_stat_replication"


@pytest.fixture
def settings(checkout: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Run) -> Iterator[Settings]:
    """Settings of such a topology, whose containers do not run; what a test starts of it is ended."""
    # What other tests have left.
    assert sinkbench("down").returncode == 0
    (checkout / "plans" / "two.yaml").write_text(TOPOLOGY)
    (checkout / "two.yml").write_text(OVERRIDE)
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "plans/two.yaml")
    monkeypatch.setenv("COMPOSE_FILE", "docker-compose.yml:two.yml")
    monkeypatch.setenv("KAFKA_2_PORT", "19694")
    with settings_of(checkout) as found:
        yield found


@pytest.mark.rare
def test_nodes_are_services_of_their_own_that_die_come_back_and_race(
    settings: Settings, sinkbench: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeeded(sinkbench("up", timeout=1500))
    status = succeeded(sinkbench("status"))
    lines = {line.split()[0]: line for line in status.stdout.splitlines()}
    nodes = {node.name for node in settings.layout.nodes}
    assert all("running" in lines[name] and "127.0.0.1" in lines[name] for name in nodes), lines
    assert f"topology {settings.layout.name}" in status.stdout

    stack = ComposeStack(settings, checkout)
    sinks = stack.endpoints.sinks
    assert Kafka(stack.endpoints.kafka).brokers() == set(range(1, len(settings.layout.kafka.nodes) + 1))
    with psycopg.connect(sinks["postgres"].address) as connection:
        assert connection.execute(SYNCHRONOUS).fetchall() == [("postgres-2", "streaming", "sync")]

    # What is measured of a service is measured of each node.
    used = stack.usage()
    assert all(used.cpu_seconds[name] and used.memory_bytes[name] for name in nodes), used

    # The controller's container knows the nodes, and reaches them by their names.
    ask = ("run", "--rm", "--no-deps", "--no-TTY", "controller", "sinkbench/run", "status")
    inside = succeeded(compose_in(checkout, *ask))
    assert "kafka-2:9092" in inside.stdout
    assert f"topology {settings.layout.name}" in inside.stdout

    with monkeypatch.context() as patch:
        patch.setenv("SINKBENCH_TOPOLOGY", "small")
        other = refuses(sinkbench("up"))
    assert "in the compose files there are kafka, kafka-2" in other.stderr
    assert "and the topology small has kafka; set SINKBENCH_TOPOLOGY" in other.stderr

    # One of each cluster dies, all at the same time.
    dead = {each.nodes[-1] for each in (settings.layout.kafka, settings.layout.postgres)}
    for name in dead:
        stack.faults.do("kill", name)
    assert {state.name for state in stack.services() if state.state != "running"} == dead
    for name in sorted(dead):
        stack.faults.do("start", name)
    assert sinkbench("status").returncode == 0
    assert sinkbench("logs", "kafka-2").returncode == 0

    plan = quick_plan("elasticsearch/camel-bulk", "postgres/jdbc", window=3, warm_up=1)
    (checkout / "plans" / "clusters.yaml").write_text(plan)
    succeeded(sinkbench("race", "plans/clusters.yaml", timeout=600))
    for cell in summary_of(checkout)["cells"]:
        assert cell["passed"] is True, cell
        assert cell["placement"] == {f"connect-{n}": 1 for n in range(1, settings.workers + 1)}

    assert sinkbench("down").returncode == 0
    assert all(state.detail == "no container" for state in stack.services())
