"""Null targets on the real stack: a whole connector drains into them, they keep nothing, and nothing is left."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from elasticsearch import Elasticsearch
from loadgen.options import Load
from sinkbench.limits.clients import make_records
from sinkbench.limits.measure import connector_limit
from sinkbench.plan.cells import expand
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Destination, Sink, needed, open_sink, open_writer, sink_kind
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import PREFIX, Names
from sinkbench.trial.observer import Observer
from sinkbench.trial.resources import Resources
from tests.e2e.races import left_behind
from tests.support.trials import plan_of

RECORDS = 150_000
NAMES = Names.of("abcdef_limit_connector")
EXACTLY_ONCE = {"pipeline": "postgres/reference-copy-exactly-once", "target": "postgres/targets/positions.sql"}


@pytest.fixture
def target(sink: Sink) -> Iterator[str]:
    """A null target of each sink in turn, removed at the end at the latest."""
    target = f"{PREFIX}abcdef_limit_test"
    sink.create(target)
    needed(sink.capabilities.discarding, "discarding").discard(target)
    yield target
    sink.drop(target)


def pipelines_of_ours(stack: LocalStack) -> list[str]:
    """Ingest pipelines, which are no target: Elasticsearch lists them apart from indices."""
    with closing(Elasticsearch(stack.endpoints.sinks["elasticsearch"].address)) as client:
        return [name for name in client.options(ignore_status=404).ingest.get_pipeline() if name.startswith(PREFIX)]


def test_what_plain_clients_write_is_acknowledged_and_not_kept_and_dropping_removes_all(
    stack: LocalStack, sink: Any, target: str
) -> None:
    records = make_records(Load(bootstrap="-", topic="-", run="x", count=200))
    for way in sink_kind(sink.name).writers:
        to = Destination(sink.name, way, target, stack.endpoints.sinks[sink.name])
        with closing(open_writer(to)) as writer:
            # A refused record raises.
            writer.write(writer.batch(records))
    sink.settle(target)
    assert sink.count(target) == 0
    assert sink.leftovers(target) == [target]
    sink.drop(target)
    assert sink.leftovers(target) == []
    assert target not in pipelines_of_ours(stack)


@pytest.mark.parametrize("sink", ["elasticsearch"], indirect=True)
def test_a_pipeline_whose_index_is_gone_is_a_leftover_and_one_that_is_not_ours_stays(
    stack: LocalStack, sink: Sink, target: str
) -> None:
    theirs = f"{target}_theirs"
    with closing(Elasticsearch(stack.endpoints.sinks["elasticsearch"].address)) as client:
        client.ingest.put_pipeline(id=theirs, processors=[])
        try:
            client.indices.delete(index=target)
            assert sink.leftovers(target) == [target]
            sink.drop(target)
            sink.drop(theirs)
            assert sink.leftovers(target) == []
            assert pipelines_of_ours(stack) == [theirs]
        finally:
            client.ingest.delete_pipeline(id=theirs)


class Looking(Observer):
    """Counts by another connection what the target has when the connector has committed every record."""

    def __init__(self, stack: LocalStack, sink: str) -> None:
        self.kept: int | None = None
        self._stack, self._sink, self._phase = stack, sink, ""

    def phase(self, text: str) -> None:
        self._phase = text

    def progress(self, done: int, total: int) -> None:
        if done == total and self._phase.startswith("writing"):
            with closing(open_sink(self._sink, self._stack.endpoints, CHECKOUT)) as sink:
                sink.settle(NAMES.target)
                self.kept = sink.count(NAMES.target)


@pytest.mark.long
@pytest.mark.parametrize(
    "pipeline",
    [
        "elasticsearch/reference-bulk",
        pytest.param("elasticsearch/reference-bulk-exactly-once", marks=pytest.mark.rare),
        pytest.param("elasticsearch/camel-bulk", marks=pytest.mark.rare),
        "postgres/reference-copy",
        EXACTLY_ONCE,
        "postgres/jdbc",
    ],
    ids=lambda pipeline: pipeline if isinstance(pipeline, str) else pipeline["pipeline"],
)
def test_a_connector_commits_every_record_to_a_target_that_keeps_none(stack: LocalStack, pipeline: object) -> None:
    plan = plan_of(pipeline, seed=1)
    (cell,) = expand(plan, stack.workers)
    looking = Looking(stack, cell.sink)
    with closing(Cluster(stack, plan, CHECKOUT)) as bench:
        found = connector_limit(Resources(bench, cell, NAMES, RECORDS, looking))
        assert [group for group in bench.kafka.groups() if "_limit" in group] == []
    # A rate needs the committed offsets of all records.
    assert (found.problem, looking.kept) == (None, 0)
    assert found.records_per_second
    assert (found.cpu_seconds_per_million["connect"] or 0) > 0
    assert left_behind(stack) == []
    assert pipelines_of_ours(stack) == []
