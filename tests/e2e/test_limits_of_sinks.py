"""The limits on the real stack: what plain clients store is what is counted, and nothing of them is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sinkbench.bench import PREFIX, Bench, Names
from sinkbench.cells import Cell, expand
from sinkbench.kafka import Kafka
from sinkbench.limits.measure import jobs
from sinkbench.limits.sinklimit import SinkClient, destination, sink_limit
from sinkbench.limits.tune import Point
from sinkbench.limits.writers import SINGLY
from sinkbench.plan import Load, load_plan
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import SINKS, Sink, open_sink
from sinkbench.sinks.elasticsearch import ElasticsearchSink
from sinkbench.sinks.postgres import PostgresSink
from sinkbench.stack.local import LocalStack

PLAN = "pipelines: [elasticsearch/camel-bulk, postgres/jdbc]\nlimits: true\n"
TARGET = f"{PREFIX}test_limits"


@pytest.fixture
def bench(stack: LocalStack, tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "mine.yaml").write_text(PLAN)
    bench = Bench(stack, load_plan(tmp_path / "mine.yaml", CHECKOUT / "connectors"), CHECKOUT)
    yield bench
    assert left_behind(bench) == []
    bench.close()


@pytest.fixture
def cells(bench: Bench) -> list[Cell]:
    return expand(bench.plan, bench.stack.workers)


class Nobody:
    def phase(self, text: str) -> None:
        pass

    def progress(self, done: int, total: int) -> None:
        pass


def left_behind(bench: Bench) -> list[str]:
    found = [*bench.connect.connectors(), *(topic for topic in bench.kafka.topics() if topic.startswith(PREFIX))]
    return [*found, *(target for name in SINKS for target in bench.sink(name).leftovers(PREFIX))]


@pytest.mark.parametrize(("sink", "way"), [("elasticsearch", "bulk"), ("postgres", "COPY"), ("postgres", "INSERT")])
def test_the_limit_of_a_sink_is_found_and_every_record_counted(bench: Bench, sink: str, way: str) -> None:
    found = sink_limit(
        bench, sink, way, Names("t", TARGET, "-"), lambda text: None, step_seconds=0.5, confirm_seconds=1.0
    )
    # A step whose acknowledged records are not those that the sink counts has a problem instead of a rate.
    assert [step.measured.problem for step in found.path] == [None] * len(found.path)
    assert found.best is not None
    assert found.best.confirms
    assert found.best.point.batch > 1


def test_copy_is_faster_than_single_rows(bench: Bench) -> None:
    rates = []
    for way in ("COPY", SINGLY):
        to = destination(bench.stack.endpoints, "postgres", way, TARGET)
        client = SinkClient(bench.sink("postgres"), to, bench.plan.load)
        try:
            measured = client.measure(Point(1_000, 1), 2.0)
        finally:
            client.close()
        assert measured.problem is None
        rates.append(measured.records_per_second or 0.0)
    assert rates[0] > 2 * rates[1] > 0


def refusing(stack: LocalStack, name: str, folder: Path) -> Sink:
    """A sink whose index or table takes none of the records."""
    if name == "postgres":
        (folder / "schema.sql").write_text(
            "CREATE TABLE tides (id bigint GENERATED ALWAYS AS IDENTITY, payload jsonb CHECK (payload IS NULL));"
        )
        return PostgresSink(stack.endpoints.postgres or "", None, folder / "schema.sql")
    index = {"settings": {"number_of_replicas": 0}, "mappings": {"properties": {"metadata": {"type": "long"}}}}
    (folder / "index.json").write_text(json.dumps(index))
    return ElasticsearchSink(
        stack.endpoints.elasticsearch or "", stack.endpoints.elasticsearch_index, folder / "index.json"
    )


@pytest.mark.parametrize(("name", "way"), [("elasticsearch", "bulk"), ("postgres", "COPY"), ("postgres", "INSERT")])
def test_a_sink_that_rejects_records_gives_no_rate(
    bench: Bench, stack: LocalStack, tmp_path: Path, name: str, way: str
) -> None:
    sink = refusing(stack, name, tmp_path)
    client = SinkClient(sink, destination(stack.endpoints, name, way, TARGET), Load())
    try:
        measured = client.measure(Point(100, 2), 0.5)
    finally:
        client.close()
        sink.close()
    assert measured.records_per_second is None
    assert measured.problem is not None
    assert "\n" not in measured.problem
    assert "reject" in measured.problem or "violates" in measured.problem


def test_an_index_that_was_dropped_does_not_come_back_with_what_is_still_written(
    bench: Bench, stack: LocalStack
) -> None:
    sink = open_sink("elasticsearch", stack.endpoints, CHECKOUT)
    sink.create(TARGET)
    sink.drop(TARGET)
    sink.create = lambda target: None  # type: ignore[method-assign]
    client = SinkClient(sink, destination(stack.endpoints, "elasticsearch", "bulk", TARGET), bench.plan.load)
    try:
        assert client.measure(Point(100, 1), 0.5).records_per_second is None
    finally:
        client.close()
        sink.close()


def test_the_limits_of_kafka_and_of_connect_are_found(bench: Bench, cells: list[Cell]) -> None:
    for job in jobs(bench, cells, "abcdef")[:2]:
        limit = job.run(Nobody())
        assert limit.records_per_second, limit
        assert limit.connections == cells[0].tasks
    assert [group for group in groups(bench.kafka) if "abcdef" in group] == []


def groups(kafka: Kafka) -> list[str]:
    return [group.group_id for group in kafka._admin.list_consumer_groups().result().valid]


@pytest.mark.parametrize("during", ["limit of connect", "limit of postgres"])
def test_ctrl_c_while_a_limit_is_measured_leaves_nothing_behind(bench: Bench, tmp_path: Path, during: str) -> None:
    plan = "pipelines: [postgres/jdbc]\nlimits: true\ndrain: {window_seconds: 4, pilot_seconds: 2, warm_up_seconds: 4}"
    (tmp_path / "mine.yaml").write_text(plan)
    race = subprocess.Popen(
        [sys.executable, "-m", "sinkbench", "race", "mine.yaml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert race.stdout is not None
        output = ""
        while f"] {during}" not in output:
            line = race.stdout.readline()
            assert line, output
            output += line
        time.sleep(5)
        race.send_signal(signal.SIGINT)
        output += race.communicate(timeout=120)[0]
    finally:
        race.kill()
        race.wait()
    assert race.returncode == 130, output
    assert "Traceback" not in output
    # `latest` points at runs that have a trial.
    (kept,) = (tmp_path / "results").glob("*/summary.json")
    summary = json.loads(kept.read_text())
    assert summary["complete"] is False
    assert {limit["sink"] for limit in summary["limits"]} >= (
        {"kafka", "connect"} if "postgres" in during else {"kafka"}
    )
