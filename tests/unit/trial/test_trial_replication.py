"""A trial in which something does not hold that must is invalid and says which; after a fault it is a note."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from sinkbench.analysis.replication import Broken, Promise, ReplicationState
from sinkbench.errors import ReasonCode, ServiceError
from sinkbench.plan.cells import expand
from sinkbench.results import Durability
from sinkbench.summary.cells import summarize
from sinkbench.trial import cluster as cluster_module
from sinkbench.trial import trial
from sinkbench.trial.names import Names
from tests.support.fakecluster import FakeCluster, FakeSink, codes, drained
from tests.support.trials import plan_of
from tests.unit.trial.test_faults import plan_with, take

PLAN = plan_of()
CODES = ReasonCode
GOOD = ReplicationState(copies=2, asked=2)
YELLOW = ReplicationState(
    (Broken(CODES.INDEX_NOT_GREEN, "the index is yellow", "add a node", {"missing": 3}),), copies=1, asked=2
)
BEHIND = {number: (1 + number % 3, (1, 2, 3), (1, 2)) for number in range(3)}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for."""
    monkeypatch.setattr(trial, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(cluster_module, "AGAIN_SECONDS", 0.0)


def test_an_index_that_stays_yellow_ends_the_trial_before_its_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(PLAN, helds=[YELLOW] * 50)
    record = drained(cluster)
    assert codes(record) == [CODES.INDEX_NOT_GREEN]
    assert (record.reasons[0].text, record.reasons[0].figures) == ("the index is yellow; add a node", {"missing": 3})
    assert cluster.calls == ["check", "load"]
    (cell,) = summarize(expand(PLAN, 3), [record])
    assert cell.verdict == "invalid: the index is yellow; add a node"
    # What comes to rest is waited for.
    monkeypatch.setattr(trial, "SETTLE_SECONDS", 60.0)
    assert drained(FakeCluster(PLAN, helds=[YELLOW, YELLOW, GOOD])).reasons == []


def test_a_partition_that_is_not_in_sync_makes_the_trial_invalid_and_all_that_is_wrong_is_told() -> None:
    assert codes(drained(FakeCluster(PLAN, partitions=BEHIND))) == [CODES.PARTITIONS_NOT_IN_SYNC]
    both = drained(FakeCluster(PLAN, partitions=BEHIND, helds=[YELLOW] * 50))
    assert codes(both) == [CODES.INDEX_NOT_GREEN, CODES.PARTITIONS_NOT_IN_SYNC]


def test_what_does_not_hold_any_more_when_the_connector_is_gone_makes_the_trial_invalid_and_is_audited() -> None:
    record = drained(FakeCluster(PLAN, helds=[GOOD, YELLOW]))
    assert codes(record) == [CODES.INDEX_NOT_GREEN]
    assert record.audit.clean


def test_what_a_fault_has_broken_is_a_note_and_no_reason() -> None:
    record = take(FakeCluster(plan_with({"what": "none"}), helds=[GOOD, YELLOW]))
    assert record.reasons == []
    assert "in the end the index is yellow; add a node" in record.notes
    assert record.recovery is not None


def test_a_sink_that_cannot_tell_is_not_checked_and_never_called_well() -> None:
    cluster = FakeCluster(PLAN)
    sink = FakeSink(cluster)
    sink.capabilities = replace(sink.capabilities, replication=None)
    cluster.sink = lambda name: sink  # type: ignore[method-assign]
    record = drained(cluster)
    assert (record.reasons, record.notes) == ([], ["not checked what must hold in postgres: this sink does not tell"])


def test_what_may_not_be_seen_is_not_checked_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "whether PostgreSQL's standbys are in sync: GRANT pg_read_all_stats"
    hidden = ReplicationState(unchecked=(why,), asked=2)
    record = drained(FakeCluster(PLAN, helds=[hidden, hidden]))
    assert (record.reasons, record.notes) == ([], [f"not checked {why}"])
    # What was seen once only was not seen all the time.
    assert drained(FakeCluster(PLAN, helds=[GOOD, hidden])).notes == record.notes
    monkeypatch.setattr(FakeSink, "check", Mock(side_effect=ServiceError("no answer")))
    assert drained(FakeCluster(PLAN)).notes == ["not checked what must hold in postgres: no answer"]


def test_what_one_node_holds_alone_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    state: Any = ReplicationState(copies=1, asked=1, alone=True)
    monkeypatch.setattr(FakeSink, "check", lambda sink, target, config: asked.append(target) or state)
    cluster = FakeCluster(PLAN)
    copies = cluster.kafka.copies
    cluster.kafka.copies = lambda topic: (asked.append(topic), copies(topic))[1]
    assert drained(cluster).reasons == []
    names = Names.of("abcdef_001")
    assert asked == [names.target, names.topic]


def test_a_trial_keeps_what_is_on_how_many_nodes_when_a_record_counts_as_stored() -> None:
    cluster = FakeCluster(PLAN, promise=Promise(None, "all", 2), helds=[GOOD, GOOD])
    cluster.partitions = {number: (1 + number % 3, (1, 2, 3), (1, 2, 3)) for number in range(3)}
    both = Durability(text="2 nodes, disk", nodes=2, on_disk=2, kafka="acks all, 3 of 3 in sync", kafka_nodes=3)
    assert drained(cluster).durability == both.model_copy(update={"settings": {"fsync": "on"}})
    found = drained(FakeCluster(PLAN, promise=None)).durability
    assert (found.text, found.nodes, found.kafka) == ("", None, "acks all, 1 of 1 in sync")
