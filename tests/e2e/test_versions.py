"""Other versions of the services than the stack's own: what is supported is used as any other, the rest is refused."""

import json
import re
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from sinkbench.environment.services import about_sinks, versions
from sinkbench.limits.sinklimit import sink_limit_again
from sinkbench.limits.tune import Point
from sinkbench.plan.plan import load_plan
from sinkbench.results import TrialRecord
from sinkbench.services.versions import numbers_of
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.sinks import Destination, Sink, open_writer
from sinkbench.stack import Endpoint
from sinkbench.stack.external import ExternalStack
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import PREFIX
from tests.e2e.onetrial import one_trial
from tests.e2e.otherservices import PASSWORD, elasticsearch, postgres
from tests.e2e.races import stack_file
from tests.support.commands import Run, refuses, succeeded

RECORDS = 20_000
Clusters = Callable[..., ExternalStack]


@pytest.fixture
def clusters(stack: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clusters:
    """Writes a stack file of the test stack's Kafka and Connect, with another sink."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("SQL_PASSWORD", PASSWORD)
    return lambda variables, **sinks: ExternalStack(stack_file(tmp_path, stack.endpoints, variables, **sinks))


def of_postgres(clusters: Clusters, there: Endpoint) -> ExternalStack:
    parts = conninfo_to_dict(there.address)
    connector = {"HOST": parts["host"], "PORT": parts["port"], "DB": parts["dbname"], "USER": parts["user"]}
    variables = {f"POSTGRES_{name}": str(value) for name, value in connector.items()}
    password = {"env": "SQL_PASSWORD"}
    return clusters({**variables, "POSTGRES_PASSWORD": password}, postgres={"dsn": there.shown, "password": password})


def trial_and_limits(stack: ExternalStack, folder: Path, pipeline: str, ways: tuple[str, ...]) -> TrialRecord:
    """Takes a trial of the pipeline, and what plain clients store in each way; nothing of them is left."""
    sink = pipeline.partition("/")[0]
    # The workers may be cold.
    record, _ = one_trial(stack, folder, f"pipelines: [{pipeline}]\ndrain: {{stall_seconds: 120}}\n", RECORDS)
    plan = load_plan(folder / "mine.yaml", CHECKOUT / "connectors")
    with closing(Cluster(stack, plan, CHECKOUT)) as bench:
        for way in ways:
            to = Destination(sink, way, f"{PREFIX}test_limits", stack.endpoints.sinks[sink])
            measured = sink_limit_again(bench, to, Point(500, 2), lambda text: None, seconds=0.5)
            assert measured.problem is None
            assert measured.records_per_second
            assert_arrivals(bench.sink(sink), to)
        assert bench.sink(sink).leftovers(PREFIX) == []
    return record


def assert_arrivals(sink: Sink, to: Destination) -> None:
    """Of what a plain client writes, the sink tells when it came; also of what came after the watch's last look."""
    now_us = time.time_ns() // 1000
    benches = [{"run": "r1", "seq": seq, "due_us": now_us, "sent_us": now_us} for seq in range(500)]
    sink.create(to.target)
    with closing(open_writer(to)) as writer, sink.capabilities.times.watch(to.target, 1.0) as watch:
        with watch:
            # What was there at its first look came at no known time.
            time.sleep(2)
            writer.write(writer.batch([json.dumps({"bench": bench}).encode() for bench in benches]))
            sink.settle(to.target)
        found = watch.read("r1", 1)
    sink.drop(to.target)
    assert found.due_us.tolist() == [float(now_us)] * 500
    assert float(found.stored_us.min()) > now_us


def assert_whole(record: TrialRecord) -> None:
    """Everything that a trial reads of a sink is there."""
    assert record.audit is not None, record
    assert (record.audit.stored, record.audit.lost, record.audit.duplicates) == (RECORDS, 0, 0)
    assert record.audit.compared >= 60
    assert record.audit.altered == 0
    assert (record.records_per_write or 0) > 1
    assert (record.connections.clients_peak or 0) > 0


@pytest.mark.long
@pytest.mark.rare
def test_elasticsearch_8_is_a_sink_as_9_is(
    settings: Settings, clusters: Clusters, tmp_path: Path, sinkbench: Run
) -> None:
    with elasticsearch(settings) as there:
        variables = {"ELASTICSEARCH_HOSTS": there.address.removeprefix("http://")}
        external = clusters(variables, elasticsearch={"url": there.address})
        succeeded(sinkbench("up", "--stack", "clusters.yaml"))
        assert_whole(trial_and_limits(external, tmp_path, "elasticsearch/camel-bulk", ("bulk",)))
        told = versions(external.endpoints, CHECKOUT, about_sinks(external.endpoints))
    assert numbers_of(str(told["elasticsearch-server"]))[:2] == (8, 19)
    # The brokers are those of the test stack.
    assert numbers_of(str(told["kafka"]))[0] >= 4


@pytest.mark.long
@pytest.mark.rare
@pytest.mark.parametrize("version", [13, 18])
def test_the_oldest_and_the_newest_postgresql_are_sinks(
    settings: Settings, clusters: Clusters, tmp_path: Path, version: int
) -> None:
    with postgres(settings, version) as there:
        external = of_postgres(clusters, there)
        external.up(lambda line: None)
        assert_whole(trial_and_limits(external, tmp_path, "postgres/jdbc", ("COPY", "INSERT")))
        told = about_sinks(external.endpoints)["postgres"].version
    assert numbers_of(told)[0] == version


@pytest.mark.long
def test_a_postgresql_that_is_too_old_is_refused_by_its_number(
    settings: Settings, clusters: Clusters, tmp_path: Path, sinkbench: Run
) -> None:
    with postgres(settings, 12) as there:
        of_postgres(clusters, there)
        (tmp_path / "mine.yaml").write_text("pipelines: [postgres/jdbc]\n")
        for command in (["up"], ["race", "mine.yaml"]):
            done = refuses(sinkbench(*command, "--stack", "clusters.yaml"))
            assert len(done.stderr.splitlines()) == 1
            said = r": postgres at .*: it is PostgreSQL 12\.\d+; sinkbench supports PostgreSQL 13 to 18;"
            assert re.search(rf"clusters.yaml:\d+{said}", done.stderr), done.stderr
        assert not (tmp_path / "results" / "latest").exists()
