"""Consumer groups of runs that were killed after their connector was gone: the next race removes them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from sinkbench.race.leftovers import book_of, note_run, sweep
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.stack import Stack
from sinkbench.stack.external import ExternalStack
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from tests.e2e.races import stack_file
from tests.support.trials import plan_of

PLAN = plan_of(seed=1)
TOPIC = "somebodys"
LEFT, HELD, OTHERS = "connect-tides_ab12cd_001", "connect-tides_ab12cd_002", "connect-tides_999999_001"
SOMEBODYS = "connect-mine"


def group(stack: LocalStack, name: str) -> Consumer:
    """A consumer whose group has committed an offset."""
    consumer = Consumer({"bootstrap.servers": stack.endpoints.kafka, "group.id": name})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 0)], asynchronous=False)
    return consumer


@pytest.fixture
def groups(stack: LocalStack, kafka: Kafka) -> Iterator[Kafka]:
    """Four groups, of which one has a member."""
    kafka.create_topic(TOPIC, 1)
    for name in (LEFT, OTHERS, SOMEBODYS):
        group(stack, name).close()
    member = group(stack, HELD)
    member.subscribe([TOPIC])
    for _ in range(100):
        member.poll(0.2)
        if kafka.members(HELD):
            break
    yield kafka
    member.close()
    for name in (LEFT, HELD, OTHERS, SOMEBODYS):
        kafka.delete_group(name)
    kafka.delete_topic(TOPIC)


def swept(stack: Stack) -> list[str]:
    with closing(Cluster(stack, PLAN, CHECKOUT)) as bench:
        return sweep(bench)


def test_groups_that_were_left_behind_are_removed_from_ones_own_stack(stack: LocalStack, groups: Kafka) -> None:
    assert {f"consumer group {name}" for name in (LEFT, OTHERS)} <= set(swept(stack))
    assert {HELD, SOMEBODYS} <= set(groups.groups())
    assert not {LEFT, OTHERS} & set(groups.groups())


def test_groups_of_ones_own_runs_alone_are_removed_from_others_clusters(
    stack: LocalStack, groups: Kafka, tmp_path: Path
) -> None:
    external = ExternalStack(stack_file(tmp_path, stack.endpoints))
    note_run(external, "ab12cd")
    assert swept(external) == [f"consumer group {LEFT}"]
    assert {HELD, OTHERS, SOMEBODYS} <= set(groups.groups())
    # What still has members is removed by a later race.
    assert book_of(external).read_text() == "ab12cd\n"
    book_of(external).unlink()
