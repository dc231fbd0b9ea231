"""What a topic holds, as a plain consumer reads it."""

from contextlib import closing

from confluent_kafka import Consumer, Message, TopicPartition

from sinkbench.services.kafka import Kafka
from tests.support.waiting import until


def records_of(kafka: Kafka, topic: str) -> list[Message]:
    """All records that the topic holds now, those of a partition in their order."""
    ends, found = kafka.end_offsets(topic), []

    def read() -> bool:
        found.extend(consumer.consume(10_000, timeout=1))
        return len(found) >= sum(ends.values())

    options = {"bootstrap.servers": kafka.bootstrap, "group.id": "read", "enable.auto.commit": False}
    with closing(Consumer(options)) as consumer:
        consumer.assign([TopicPartition(topic, number, 0) for number in ends])
        until(read)
    assert [each.error() for each in found if each.error() is not None] == []
    return found
