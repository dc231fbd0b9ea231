"""The limits on the real stack: what plain clients store is what is counted, and nothing of them is left."""

import signal
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from sinkbench.analysis.limits import CLIENT
from sinkbench.limits import clients, measure, sinklimit
from sinkbench.limits.sinklimit import SinkClient, sink_limit, sink_limit_again
from sinkbench.limits.tune import TOO_SHORT, Point
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.consumers import Consume
from sinkbench.services.worker import order
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Created, Destination, Sink, open_sink
from sinkbench.sinks.elasticsearch.sink import ElasticsearchSink
from sinkbench.sinks.postgres.sink import PostgresSink
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import PREFIX, Names, cleaning
from tests.e2e.onetrial import index_with
from tests.e2e.races import a_race, left_behind
from tests.support.latest import summary_of
from tests.support.trials import plan_in, quick_plan

PLAN = "pipelines: [elasticsearch/camel-bulk, postgres/jdbc]\nlimits: true\n"
TARGET = f"{PREFIX}test_limits"


@pytest.fixture
def bench(stack: LocalStack, tmp_path: Path) -> Iterator[Cluster]:
    bench = Cluster(stack, plan_in(tmp_path, PLAN), CHECKOUT)
    yield bench
    assert left_behind(stack) == []
    bench.close()


@pytest.mark.long
def test_the_limit_of_a_sink_is_found_and_every_record_counted(bench: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinklimit, "STEP_SECONDS", 0.5)
    monkeypatch.setattr(sinklimit, "CONFIRM_SECONDS", 1.0)
    to = Destination("postgres", "COPY", TARGET, bench.stack.endpoints.sinks["postgres"])
    found = sink_limit(bench, to, lambda text: None)
    # A step whose acknowledged records are not those that the sink counts has a problem instead of a rate.
    assert [step.problem for step in found.path] == [None] * len(found.path)
    assert found.best.confirms
    assert found.best.batch > 1


@pytest.mark.parametrize(("sink", "way"), [("elasticsearch", "bulk"), ("postgres", "COPY"), ("postgres", "INSERT")])
def test_a_limit_is_measured_again_with_what_each_service_took(bench: Cluster, sink: str, way: str) -> None:
    to = Destination(sink, way, TARGET, bench.stack.endpoints.sinks[sink])
    found = sink_limit_again(bench, to, Point(500, 2), lambda text: None, seconds=0.5)
    assert found.problem is None
    assert found.records_per_second
    used = found.cpu_seconds_per_million
    assert used.keys() >= {sink, "connect", "kafka", CLIENT}
    assert (used[CLIENT] or 0.0) > 0


def refusing(stack: LocalStack, name: str, folder: Path) -> Sink:
    """A sink whose index or table takes none of the records."""
    if name == "postgres":
        (folder / "schema.sql").write_text(
            "CREATE TABLE tides (id bigint GENERATED ALWAYS AS IDENTITY, payload jsonb CHECK (payload IS NULL));"
        )
        return PostgresSink(stack.endpoints.sinks["postgres"].address, None, folder / "schema.sql")
    index = index_with(folder, mappings={"properties": {"metadata": {"type": "long"}}})
    return ElasticsearchSink(stack.endpoints.sinks["elasticsearch"], index)


@pytest.mark.parametrize(("name", "way"), [("elasticsearch", "bulk"), ("postgres", "COPY"), ("postgres", "INSERT")])
def test_a_sink_that_rejects_records_gives_no_rate(
    bench: Cluster, stack: LocalStack, tmp_path: Path, name: str, way: str
) -> None:
    to = Destination(name, way, TARGET, stack.endpoints.sinks[name])
    with closing(refusing(stack, name, tmp_path)) as sink, closing(SinkClient(sink, to, PlanLoad())) as client:
        measured = client.measure(Point(100, 2), 0.5)
    assert measured.records_per_second is None
    assert "\n" not in measured.problem
    assert "reject" in measured.problem or "violates" in measured.problem


def test_an_index_that_was_dropped_does_not_come_back_with_what_is_still_written(
    bench: Cluster, stack: LocalStack
) -> None:
    to = Destination("elasticsearch", "bulk", TARGET, stack.endpoints.sinks["elasticsearch"])
    with closing(open_sink("elasticsearch", stack.endpoints, CHECKOUT)) as sink:
        sink.create(TARGET)
        sink.drop(TARGET)
        sink.create = lambda target: Created()  # type: ignore[method-assign]
        with closing(SinkClient(sink, to, bench.plan.load)) as client:
            assert client.measure(Point(100, 1), 0.5).records_per_second is None


@pytest.mark.long
def test_no_consumer_reads_before_the_last_one_has_joined(bench: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Connection] = []

    def late(end: Connection, what: object) -> None:
        if isinstance(what, Consume):
            given.append(end)
            time.sleep(3 if len(given) == 3 else 0)
        order(end, what)

    monkeypatch.setattr(clients, "order", late)
    names = Names.of("abcdef_limit")
    with cleaning(lambda: bench.kafka.delete_topic(names.topic)):
        bench.load(names, 100_000, lambda done: None)
        measured = measure.kafka_limit(bench, names, 100_000, 3, lambda done, total: None)
    # So few records may be read too fast for a rate, but all are read.
    assert measured.problem in (None, TOO_SHORT)


@pytest.mark.long
@pytest.mark.rare
def test_the_limits_of_kafka_and_connect_are_found_and_ctrl_c_in_that_of_a_sink_leaves_nothing_behind(
    bench: Cluster, tmp_path: Path
) -> None:
    with a_race(tmp_path, quick_plan("postgres/jdbc", trials=3, window=3, warm_up=1) + "limits: true\n") as race:
        output = ""
        # The next limit of the sink's begins as soon as its first has ended.
        while "limit of postgres: " not in output:
            line = race.stdout.readline()
            assert line, output
            output += line
        time.sleep(2)
        race.send_signal(signal.SIGINT)
        output += race.communicate(timeout=120)[0]
    assert race.returncode == 130, output
    assert "Traceback" not in output
    summary = summary_of(tmp_path)
    assert summary["complete"] is False
    found = {limit["sink"]: limit for limit in summary["limits"]}
    for sink in ("kafka", "connect"):
        assert found[sink]["records_per_second"], found
        assert found[sink]["connections"] == 3, found
    assert [group for group in bench.kafka.groups() if "_limit" in group] == []
