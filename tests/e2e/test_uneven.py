"""Work that somebody has spread unevenly over real nodes: a trial of it is invalid, and says why."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from sinkbench.analysis.replication import topic_replication
from sinkbench.errors import ReasonCode
from sinkbench.load.records import keep_records
from sinkbench.results import TrialRecord
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from tests.e2e import onetrial
from tests.e2e.onetrial import NAMES, PARTITIONS, index_with, reasons_but_size
from tests.e2e.ownstacks import own_stack
from tests.e2e.races import cluster_set, remove_connectors
from tests.support.observers import At
from tests.support.trials import config_of, plan_in
from tests.support.waiting import until

OFFSET = 3500
RECORDS = 20_000
BROKERS = ("kafka", "kafka-2", "kafka-3")
BULK, JDBC = "elasticsearch/camel-bulk", "postgres/jdbc"
SOMEBODYS = "tides_somebodys"
NO_REBALANCE = {"cluster.routing.rebalance.enable": "none"}
LEFT_OUT = {"cluster.routing.allocation.exclude._name": "elasticsearch-3"}

taken = partial(onetrial.taken, records=RECORDS)
pytestmark = [pytest.mark.long, pytest.mark.rare]


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    """The published stack: three brokers, six workers, three data nodes, and a replica of PostgreSQL."""
    with own_stack("stack with uneven work", OFFSET, TOPOLOGY="published") as stack:
        stack.up(lambda line: None)
        yield stack


@pytest.mark.parametrize("pipeline", [BULK, JDBC])
def test_what_nobody_has_touched_is_spread_evenly_and_its_trial_counts(
    stack: LocalStack, tmp_path: Path, pipeline: str
) -> None:
    record = taken(stack, tmp_path, pipeline)
    assert reasons_but_size(record) == []
    assert not any(note.startswith("not checked") for note in record.notes)
    assert set(record.placement.values()) == {1}
    assert (record.audit.stored, record.audit.lost) == (RECORDS, 0)


def move_beside_another(stack: LocalStack) -> None:
    """Moves one primary shard of the trial's index onto the node that has another one."""
    address, index = stack.endpoints.sinks["elasticsearch"].address, NAMES.target

    def rests(waited_for: dict[str, str]) -> None:
        found = httpx.get(f"{address}/_cluster/health/{index}", params={**waited_for, "timeout": "30s"}, timeout=60)
        assert found.json()["timed_out"] is False

    rests({"wait_for_status": "green"})
    rows = httpx.get(f"{address}/_cat/shards/{index}", params={"format": "json", "h": "shard,prirep,node"}).json()
    there = {row["node"] for row in rows if row["shard"] == "0"}
    origin = next(row["node"] for row in rows if (row["shard"], row["prirep"]) == ("0", "p"))
    free = next(row["node"] for row in rows if row["prirep"] == "p" and row["node"] not in there)
    move = {"index": index, "shard": 0, "from_node": origin, "to_node": free}
    httpx.post(f"{address}/_cluster/reroute", json={"commands": [{"move": move}]}).raise_for_status()
    rests({"wait_for_no_relocating_shards": "true"})


def check_shards(record: TrialRecord) -> None:
    (reason,) = record.reasons
    assert reason.code == ReasonCode.SHARDS_UNEVEN
    assert reason.figures == {"nodes_used": 2, "nodes": 3}
    assert (record.audit, record.not_audited) == (None, "the connector was not started")


def test_a_primary_shard_that_was_moved_beside_another_makes_the_trial_invalid(
    stack: LocalStack, tmp_path: Path
) -> None:
    with cluster_set(stack, NO_REBALANCE):
        check_shards(taken(stack, tmp_path, BULK, observer=At(loading=lambda: move_beside_another(stack))))


def test_a_data_node_that_the_cluster_leaves_out_makes_the_trial_invalid(stack: LocalStack, tmp_path: Path) -> None:
    with cluster_set(stack, LEFT_OUT):
        check_shards(taken(stack, tmp_path, BULK))


def test_shards_that_their_index_itself_keeps_from_a_node_are_not_checked_and_never_called_even(
    stack: LocalStack, tmp_path: Path
) -> None:
    kept = {"index.routing.allocation.exclude._name": "elasticsearch-3", "number_of_shards": 3, "number_of_replicas": 1}
    index_with(tmp_path, "kept.json", **kept)
    record = taken(stack, tmp_path, BULK, "kept.json")
    assert reasons_but_size(record) == []
    assert [note for note in record.notes if note.startswith("not checked whether the shards of the index are spread")]


def test_an_index_whose_primary_shards_are_uneven_is_made_again_until_they_are_not(stack: LocalStack) -> None:
    address, made = stack.endpoints.sinks["elasticsearch"].address, []

    def let_it_be_used_once_it_is_made() -> None:
        while not (found := httpx.get(f"{address}/{NAMES.target}/_settings")).is_success:
            time.sleep(0.05)
        made.append(found.json()[NAMES.target]["settings"]["index"]["uuid"])
        body = {"persistent": dict.fromkeys(LEFT_OUT)}
        httpx.put(f"{address}/_cluster/settings", json=body).raise_for_status()

    with (
        closing(open_sink("elasticsearch", stack.endpoints, CHECKOUT)) as sink,
        cluster_set(stack, {**NO_REBALANCE, **LEFT_OUT}),
    ):
        other = threading.Thread(target=let_it_be_used_once_it_is_made)
        other.start()
        try:
            sink.create(NAMES.target)
            held = sink.capabilities.replication.check(NAMES.target, {})
            kept = httpx.get(f"{address}/{NAMES.target}/_settings").json()[NAMES.target]["settings"]["index"]["uuid"]
        finally:
            other.join()
            sink.drop(NAMES.target)
    assert held.broken == ()
    assert kept != made[0]


def seen_by_all(found: Callable[[], bool]) -> None:
    """Waits until it is so however often it is asked: nodes learn of a change one after the other."""
    until(lambda: all(found() for _ in range(5)), 30)


def topic_codes(stack: LocalStack, partitions: int) -> list[ReasonCode] | None:
    """What does not hold of the trial's topic; None until Kafka shows so many partitions, with all copies in sync."""
    brokers, topics = Kafka(stack.endpoints.kafka).copies(NAMES.topic)
    found = topics.get(NAMES.topic, {})
    codes = [each.code for each in topic_replication(brokers, found).broken]
    in_sync = len(brokers) == 3 and ReasonCode.PARTITIONS_NOT_IN_SYNC not in codes
    return codes if len(found) == partitions and in_sync else None


def test_a_broker_that_leads_more_partitions_makes_the_trial_invalid(stack: LocalStack, tmp_path: Path) -> None:
    more = PARTITIONS + 2

    def lead_by_the_first() -> None:
        admin = AdminClient({"bootstrap.servers": stack.endpoints.kafka})
        added = admin.create_partitions([NewPartitions(NAMES.topic, more, [[1, 2, 3], [1, 2, 3]])])
        added[NAMES.topic].result()
        seen_by_all(lambda: topic_codes(stack, more) is not None)

    record = taken(stack, tmp_path, JDBC, observer=At(draining=lead_by_the_first))
    (reason,) = record.reasons
    assert reason.code == ReasonCode.LEADERS_UNEVEN
    assert reason.figures == {"most": 4, "least": 2}
    assert (record.audit, record.not_audited) == (None, "the connector was not started")


def test_a_broker_that_came_back_leads_nothing_until_leaders_are_elected_and_then_the_trial_counts(
    stack: LocalStack, tmp_path: Path
) -> None:
    seen: list[list[ReasonCode] | None] = []

    def bounce_and_elect() -> None:
        stack.faults.do("kill", "kafka-2")
        stack.faults.do("start", "kafka-2")
        seen_by_all(lambda: topic_codes(stack, PARTITIONS) is not None)
        seen.append(topic_codes(stack, PARTITIONS))
        # What the reason says that mends it.
        admin = AdminClient({"bootstrap.servers": stack.endpoints.kafka})
        partitions = [TopicPartition(NAMES.topic, number) for number in range(PARTITIONS)]
        admin.elect_leaders(ElectionType.PREFERRED, partitions).result()
        seen_by_all(lambda: topic_codes(stack, PARTITIONS) == [])

    record = taken(stack, tmp_path, JDBC, observer=At(draining=bounce_and_elect))
    assert seen == [[ReasonCode.LEADERS_UNEVEN]]
    assert reasons_but_size(record) == []
    assert record.audit.lost == 0


def test_what_leaders_alone_acknowledged_is_waited_for_until_the_others_have_it(
    stack: LocalStack, tmp_path: Path
) -> None:
    plan = plan_in(tmp_path, f"pipelines: [{JDBC}]\nload: {{partitions: 1, acks: 1}}\n")
    kafka = Kafka(stack.endpoints.kafka)
    kafka.create_topic(NAMES.topic, 1, 3)
    seen_by_all(lambda: topic_codes(stack, 1) == [])
    leader = kafka.copies(NAMES.topic)[1][NAMES.topic][0].leader
    follower = next(name for number, name in enumerate(BROKERS, 1) if number != leader)
    with keep_records(plan.load, lambda: stack.endpoints) as own, closing(Cluster(stack, plan, CHECKOUT, own)) as bench:
        stack.faults.do("freeze", follower)
        later = threading.Timer(3, stack.faults.do, ["thaw", follower])
        later.start()
        try:
            loaded = bench.load(NAMES, 1000, lambda done: None)
        finally:
            later.join()
            kafka.delete_topic(NAMES.topic)
    assert (loaded.acknowledged, loaded.in_topic) == (1000, 1000)


@contextmanager
def three_other_tasks(stack: LocalStack) -> Iterator[None]:
    """A connector of somebody else's, with tasks on three of the six workers that have nothing to do."""
    config = config_of(JDBC)
    kafka = Kafka(stack.endpoints.kafka)
    kafka.create_topic(SOMEBODYS, 3)
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        connect.create(SOMEBODYS, {**config, "topics": SOMEBODYS, "tasks.max": "3"})
        try:
            connect.wait_for_tasks(SOMEBODYS, 3)
            yield
        finally:
            remove_connectors(connect, kafka, SOMEBODYS)
            kafka.delete_topic(SOMEBODYS)


def test_tasks_that_were_placed_unevenly_beside_somebody_elses_make_the_trial_invalid(
    stack: LocalStack, tmp_path: Path
) -> None:
    with three_other_tasks(stack):
        record = taken(stack, tmp_path, JDBC)
    assert [each.code for each in reasons_but_size(record)] == [ReasonCode.TASKS_UNEVEN]
    # Connect makes the workers' sums even, and fills up those first that have least.
    assert sorted(record.placement.values()) == [0, 0, 0, 2, 2, 2]
    # What came of it is audited all the same.
    assert (record.audit.stored, record.audit.lost) == (RECORDS, 0)
