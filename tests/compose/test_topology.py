"""Containers of several nodes: the published topology where the machine grants it, else what it does grant.

Last, since it starts containers of its own: those of other tests must be gone, for there is one project.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from sinkbench.errors import StackError
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT, Settings, load_settings
from sinkbench.sinks import open_sink
from sinkbench.stack.compose import ComposeStack
from sinkbench.stack.hostlimits import check_host, granted
from sinkbench.topology import load_topology, needed_bytes
from tests.support.commands import Run
from tests.support.latest import summary_of

from .composed import compose_in

PUBLISHED = load_topology("published", CHECKOUT, CHECKOUT)
# One node of Elasticsearch wants nothing of the machine.
GRANTED_EVERYWHERE = """
kafka: {nodes: 3, heap: 512m, replication: 3, min_insync_replicas: 2}
connect: {nodes: 2, heap: 512m}
elasticsearch: {nodes: 1, heap: 768m}
postgres: {nodes: 2, synchronous: true}
"""
PLAN = """
pipelines: [elasticsearch/camel-bulk, postgres/jdbc]
trials: 1
load: {keys: 10_000}
drain: {compiling_percent: 100, window_seconds: 3, pilot_seconds: 1, warm_up_seconds: 1}
"""
SYNCHRONOUS = "SELECT application_name, state, sync_state FROM pg_stat_replication"


def refusal() -> str:
    """Why this machine cannot have several nodes of Elasticsearch in containers; empty if it can."""
    try:
        check_host(PUBLISHED, granted())
    except StackError as refused:
        return str(refused)
    return ""


@pytest.fixture
def settings(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Run) -> Iterator[Settings]:
    """Settings of such a topology, whose containers do not run; what a test starts of it is ended."""
    monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path / "a home"))
    # What other tests have left.
    assert sinkbench("down").returncode == 0
    (checkout / "clusters.yaml").write_text(GRANTED_EVERYWHERE)
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "clusters.yaml" if refusal() else "published")
    found = load_settings(checkout)
    if psutil.virtual_memory().available < needed_bytes(found.layout):
        pytest.skip(f"it needs {needed_bytes(found.layout) / 1e9:.1f} GB of memory")
    yield found
    (checkout / "docker-compose.override.yml").unlink(missing_ok=True)
    compose_in(checkout, *files_of(found), "down", "--volumes", "--remove-orphans")


def files_of(settings: Settings) -> list[str]:
    """The files that sinkbench has given to compose, for somebody who calls it; none if it has not."""
    overlay = settings.home / "docker-compose.topology.yml"
    return ["-f", "docker-compose.yml", "-f", str(overlay)] if overlay.exists() else []


def test_what_the_machine_does_not_grant_is_refused_before_anything_starts(
    settings: Settings, sinkbench: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (reason := refusal()):
        pytest.skip("this machine grants all")
    monkeypatch.setenv("SINKBENCH_TOPOLOGY", "published")
    refused = sinkbench("up")
    assert refused.returncode == 2
    assert refused.stderr.strip().endswith(reason)
    assert len(refused.stderr.strip().splitlines()) == 1
    assert ComposeStack(load_settings(checkout), checkout).start_id() is None


def test_nodes_are_services_of_their_own_that_die_come_back_and_race(
    settings: Settings, sinkbench: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the owner changes of a node that only the topology has.
    own = checkout / "docker-compose.override.yml"
    own.write_text("services: {kafka-2: {environment: {KAFKA_HEAP: 500m}}}\n")
    up = sinkbench("up", timeout=1500)
    assert up.returncode == 0, up.stdout + up.stderr
    heap = compose_in(checkout, *files_of(settings), "exec", "--no-TTY", "kafka-2", "printenv", "KAFKA_HEAP")
    assert heap.stdout == "500m\n", heap.stderr
    status = sinkbench("status")
    assert status.returncode == 0, status.stdout
    lines = {line.split()[0]: line for line in status.stdout.splitlines()}
    for node in settings.layout.nodes:
        assert "running" in lines[node.name]
        assert "127.0.0.1" in lines[node.name]
    assert f"topology {settings.layout.name}" in status.stdout

    stack = ComposeStack(settings, checkout)
    sinks = stack.endpoints.sinks
    assert Kafka(stack.endpoints.kafka).brokers() == {1, 2, 3}
    with psycopg.connect(sinks["postgres"].address) as connection:
        assert connection.execute(SYNCHRONOUS).fetchall() == [("postgres-2", "streaming", "sync")]
    with closing(open_sink("elasticsearch", stack.endpoints, CHECKOUT)) as sink:
        sink.create("tides_e2e")
        waited = {"wait_for_status": "green", "timeout": "30s"}
        health = httpx.get(f"{sinks['elasticsearch'].address}/_cluster/health/tides_e2e", params=waited, timeout=60)
        sink.drop("tides_e2e")
    found, asked = health.json(), settings.layout.elasticsearch
    assert (found["status"], found["number_of_nodes"]) == ("green", len(asked.nodes))
    assert found["active_shards"] == asked.shards * (1 + asked.replicas)

    # What is measured of a service is measured of each node.
    nodes = {node.name for node in settings.layout.nodes}
    found = stack.usage()
    used, held = found.cpu_seconds, found.memory_bytes
    assert all(used[name] for name in nodes), used
    assert all(held[name] for name in nodes), held

    # The controller's container knows the nodes, and reaches them by their names.
    asked_inside = ("run", "--rm", "--no-deps", "--no-TTY", "controller", "sinkbench/run", "status")
    inside = compose_in(checkout, *files_of(settings), *asked_inside)
    assert inside.returncode == 0, inside.stdout + inside.stderr
    assert "kafka-2:9092" in inside.stdout
    assert f"topology {settings.layout.name}" in inside.stdout

    with monkeypatch.context() as patch:
        patch.setenv("SINKBENCH_TOPOLOGY", "small")
        aside = own.rename(checkout / "own.yml")
        other = sinkbench("up")
        aside.rename(own)
    assert other.returncode == 2
    assert "there are kafka, kafka-2, kafka-3, and the topology small has kafka" in other.stderr

    # One of each cluster dies, all at the same time.
    dead = {nodes[-1].name for service in ("kafka", "elasticsearch", "postgres")
            if len(nodes := settings.layout.of(service)) > 1}  # fmt: skip
    for name in dead:
        stack.faults.kill(name)
    assert {state.name for state in stack.services() if state.state != "running"} == dead
    for name in sorted(dead):
        stack.faults.start(name)
    assert sinkbench("status").returncode == 0
    assert sinkbench("logs", "kafka-2").returncode == 0

    (checkout / "plans" / "clusters.yaml").write_text(PLAN)
    raced = sinkbench("race", "plans/clusters.yaml", timeout=600)
    assert raced.returncode == 0, raced.stdout + raced.stderr
    for cell in summary_of(checkout)["cells"]:
        assert cell["passed"] is True, cell
        assert cell["placement"] == {f"connect-{n}": 1 for n in range(1, settings.workers + 1)}

    assert sinkbench("down").returncode == 0
    assert stack.services()
    assert all(state.detail == "no container" for state in stack.services())
