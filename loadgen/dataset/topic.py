"""Reads the records of a topic on any cluster, up to its end offsets at the start."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from loadgen.client import BROKER_TIMEOUT_SECONDS, open_client, why
from loadgen.errors import DatasetError
from loadgen.summary import SCHEME

AT_ONCE = 2_000
POLL_SECONDS = 0.5
SILENT_SECONDS = 30.0


class TopicAddress(NamedTuple):
    """The address `kafka://HOST:PORT/TOPIC`; several brokers have commas between them."""

    bootstrap: str
    topic: str

    @classmethod
    def of(cls, text: str) -> "TopicAddress":
        bootstrap, _, topic = text.removeprefix(SCHEME).partition("/")
        if not text.startswith(SCHEME) or not bootstrap or not topic or "/" in topic or "@" in bootstrap:
            raise DatasetError(
                f"{text if '@' not in text else SCHEME + '...'}: names no topic; write kafka://HOST:PORT/TOPIC, and"
                " how to get into the cluster separately"
            )
        return cls(bootstrap, topic)


class Message(NamedTuple):
    """A record of a topic; `timestamp_ms` is the broker's or the producer's, as the topic is configured."""

    timestamp_ms: int
    partition: int
    offset: int
    key: bytes | None
    value: bytes


@dataclass
class _Partition:
    end: int
    most_bytes: int
    bytes: int = 0
    cut: bool = False
    done: bool = False
    left_out: int = 0
    messages: list[Message] = field(default_factory=list)

    def take(self, message: Any) -> None:
        key, value, offset = message.key(), message.value(), message.offset()
        if self.done or offset >= self.end:
            self.done = True
            return
        size = len(value or b"") + len(key or b"")
        if value is None:
            self.left_out += 1
        elif self.messages and self.bytes + size > self.most_bytes:
            self.cut = self.done = True
        else:
            self.bytes += size
            self.messages.append(Message(message.timestamp()[1], message.partition(), offset, key, value))
        self.done |= offset >= self.end - 1


def read_topic(address: TopicAddress, settings: Mapping[str, str], most_bytes: int) -> tuple[list[Message], bool, int]:
    """Reads a topic from its beginning to its current end, at most `most_bytes` with keys.

    Returns its records by time, whether these are all (else they are those up to one moment, from all partitions), and
    the number of its tombstones. DatasetError if the cluster is silent for 30 s, or has no such topic."""
    errors: list[Any] = []
    config = {
        "bootstrap.servers": address.bootstrap,
        "group.id": "sinkbench-records",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "error_cb": errors.append,
    }
    name = f"kafka://{address.bootstrap}/{address.topic}"
    consumer = open_client(Consumer, config, settings)
    try:
        partitions = _partitions(consumer, address.topic, name, most_bytes)
        moved = time.monotonic()
        while not all(each.done for each in partitions.values()):
            some = consumer.consume(AT_ONCE, POLL_SECONDS)
            moved = time.monotonic() if some else moved
            if time.monotonic() - moved > SILENT_SECONDS:
                raise DatasetError(f"{name}: nothing more comes of it for {SILENT_SECONDS:g} s; check its brokers")
            for message in some:
                if (error := message.error()) is None:
                    partitions[message.partition()].take(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    # Transaction markers take offsets, too.
                    partitions[message.partition()].done = True
                else:
                    raise KafkaException(error)  # noqa: TRY301  as the client's own
            consumer.pause([TopicPartition(address.topic, number) for number, each in partitions.items() if each.done])
    except KafkaException as error:
        cause = why(error, settings, errors)
        raise DatasetError(f"{name}: cannot be read ({cause}); check the address and how to get in") from None
    finally:
        consumer.close()
    cut = [each.messages[-1].timestamp_ms for each in partitions.values() if each.cut and each.messages]
    every = sorted((message for each in partitions.values() for message in each.messages), key=lambda each: each[:3])
    # After that moment some partitions are missing, which would change the mixture of keys.
    kept = [message for message in every if message.timestamp_ms <= min(cut)] if cut else every
    return kept or every[:1], not cut, sum(each.left_out for each in partitions.values())


def _partitions(consumer: Any, name: str, address: str, most_bytes: int) -> dict[int, _Partition]:
    """Assigns the consumer to the partitions of a topic that have records; returns each with its end."""
    topic = consumer.list_topics(name, timeout=BROKER_TIMEOUT_SECONDS).topics[name]
    if topic.error is not None:
        raise DatasetError(
            f"{address}: there is no such topic to read ({topic.error.str()}); name another, or have yourself let in"
        )
    every = {
        number: consumer.get_watermark_offsets(TopicPartition(name, number), timeout=BROKER_TIMEOUT_SECONDS)
        for number in topic.partitions
    }
    found = {number: (start, end) for number, (start, end) in every.items() if end > start}
    # Without a subscription no group is joined, and nothing is committed.
    consumer.assign([TopicPartition(name, number, start) for number, (start, _) in found.items()])
    return {number: _Partition(end, most_bytes // len(found)) for number, (_, end) in found.items()}
