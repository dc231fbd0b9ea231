"""The limit of a connector whose target keeps nothing, on a cluster without services."""

import pytest

from sinkbench.errors import ServiceError, StackError
from sinkbench.limits import measure
from sinkbench.limits.measure import LimitJob, connector_jobs, connector_limit
from sinkbench.plan.cells import expand
from sinkbench.sinks import Capabilities
from sinkbench.trial.names import Names
from sinkbench.trial.observer import Observer
from tests.support.fakecluster import FakeCluster, FakeSink, resources
from tests.support.trials import plan_of

PIPELINES = [
    "postgres/jdbc",
    {"pipeline": "postgres/jdbc", "label": "indexed", "target": "postgres/targets/indexed.sql"},
    {"pipeline": "postgres/jdbc", "label": "one by one", "overrides": {"batch.size": "1"}},
    "elasticsearch/camel-bulk",
]


class DiscardingSink(FakeSink):
    def __init__(self, cluster: "Discarding") -> None:
        super().__init__(cluster)
        self.count = lambda target: cluster.kept  # type: ignore[method-assign]
        self.capabilities = Capabilities(service_settings=self, discarding=self)

    def discard(self, target: str) -> None:
        if not self._cluster.can_discard:
            raise StackError("no drop")
        self._cluster.calls.append("discard")


class Discarding(FakeCluster):
    """Commits a twentieth of what was loaded at every look."""

    kept, can_discard, gone = 0, True, False

    def sink(self, name: str) -> FakeSink:
        return DiscardingSink(self) if name == "postgres" else FakeSink(self)

    def consumed(self) -> int:
        if self.gone:
            raise ServiceError("Kafka does not answer")
        self.stored = min(self.offered, self.stored + self.offered // 20 + 1)
        return self.stored

    def create_target(self, target: str) -> None:
        self.stored = 0
        super().create_target(target)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Discarding:
    monkeypatch.setattr(measure, "POLL_SECONDS", 0.001)
    return Discarding(plan_of(*PIPELINES, seed=1, limits=True))


def jobs(cluster: Discarding) -> list[LimitJob]:
    names = Names.of("abcdef_limit_connector")
    return list(connector_jobs(cluster, expand(cluster.plan, 3), names, lambda cell: 1e4))  # type: ignore[arg-type]


def test_the_whole_connector_runs_into_a_target_that_keeps_nothing_and_all_is_removed(cluster: Discarding) -> None:
    assert connector_limit(resources(cluster)).records_per_second
    (config,) = cluster.configs
    assert config["consumer.override.enable.auto.commit"] == "true"
    assert not any(name.startswith("transforms.sinkbench") for name in config)
    # The connector finds the target as it will be.
    assert cluster.calls.index("discard") < cluster.calls.index("start")
    assert cluster.there == set()


@pytest.mark.parametrize(
    ("what", "value", "problem"),
    [
        ("kept", 3, "3 records are stored in tides_abcdef_001, which should keep none"),
        ("can_discard", False, "no drop"),
        ("gone", True, "Kafka does not answer"),
    ],
)
def test_without_a_null_target_there_is_no_rate_and_nothing_is_left(
    cluster: Discarding, what: str, value: object, problem: str
) -> None:
    setattr(cluster, what, value)
    found = connector_limit(resources(cluster))
    assert (found.records_per_second, found.problem) == (None, problem)
    assert cluster.there == set()


def test_cells_that_differ_in_their_target_share_a_limit_and_a_sink_without_the_capability_has_none(
    cluster: Discarding,
) -> None:
    shared = ("postgres/jdbc@3x1", "indexed@3x1")
    assert [job.cells for job in jobs(cluster)] == [shared, ("one by one@3x1",)]


def test_its_topic_is_sized_by_the_pilot_and_what_was_found_is_measured_in_blocks(cluster: Discarding) -> None:
    job = jobs(cluster)[0]
    limit = job.run(Observer())
    assert (limit.sink, limit.way, limit.connections) == ("connector", "postgres/jdbc@3x1", 3)
    assert limit.path[0].batch == 30_000
    assert job.in_block(limit, 2, 0.1, Observer()).records_per_second
    assert cluster.offered == limit.batch
