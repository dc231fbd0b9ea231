"""Reads the records of a topic on any cluster, up to its end offsets at the start."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from loadgen.clientconfig import hide
from loadgen.dataset.facts import SCHEME
from loadgen.errors import DatasetError
from loadgen.topic import BROKER_TIMEOUT_SECONDS, open_client

AT_ONCE = 2_000
POLL_SECONDS = 0.5
SILENT_SECONDS = 30.0


class TopicAddress(NamedTuple):
    """The address `kafka://HOST:PORT/TOPIC`; several brokers have commas between them."""

    bootstrap: str
    topic: str

    @classmethod
    def of(cls, text: str) -> TopicAddress:
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


class TopicRecords(NamedTuple):
    """The records of a topic by time, and the number of its tombstones.

    If not `whole`, they are those up to one moment, from all partitions.
    """

    messages: list[Message]
    whole: bool
    left_out: int


@dataclass
class _Partition:
    end: int
    most_bytes: int
    bytes: int = 0
    cut: bool = False
    done: bool = False
    messages: list[Message] = field(default_factory=list)


def read_topic(address: TopicAddress, client_settings: Mapping[str, str], most_bytes: int) -> TopicRecords:
    """Reads a topic from its beginning to its current end, at most `most_bytes` with keys.

    Raises DatasetError if the cluster does not answer, has no such topic, or sends nothing for 30 s.
    """
    errors: list[Any] = []
    config = {
        "bootstrap.servers": address.bootstrap,
        "group.id": "sinkbench-records",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        **client_settings,
        "error_cb": errors.append,
    }
    consumer = open_client(Consumer, config, client_settings)
    try:
        partitions = _partitions(consumer, address, most_bytes)
        left_out = _read(consumer, address, partitions)
    except KafkaException as error:
        reasons = [each for each in errors if each.name() != "_ALL_BROKERS_DOWN"] or list(error.args)
        why = hide(str(reasons[-1].str()), client_settings)
        raise DatasetError(
            f"kafka://{address.bootstrap}/{address.topic}: cannot be read ({why}); check the address and how to get in"
        ) from None
    finally:
        consumer.close()
    cut = [each.messages[-1].timestamp_ms for each in partitions.values() if each.cut and each.messages]
    every = sorted(
        (message for each in partitions.values() for message in each.messages),
        key=lambda message: (message.timestamp_ms, message.partition, message.offset),
    )
    # After that moment some partitions are missing, which would change the mixture of keys.
    kept = [message for message in every if message.timestamp_ms <= min(cut)] if cut else every
    return TopicRecords(kept or every[:1], not cut, left_out)


def _partitions(consumer: Any, address: TopicAddress, most_bytes: int) -> dict[int, _Partition]:
    """Assigns the consumer to the partitions that have records; returns each with its end."""
    topic = consumer.list_topics(address.topic, timeout=BROKER_TIMEOUT_SECONDS).topics[address.topic]
    if topic.error is not None:
        raise DatasetError(
            f"kafka://{address.bootstrap}/{address.topic}: there is no such topic to read ({topic.error.str()}); name"
            " another, or have yourself let in"
        )
    found = {}
    for number in topic.partitions:
        start, end = consumer.get_watermark_offsets(
            TopicPartition(address.topic, number), timeout=BROKER_TIMEOUT_SECONDS
        )
        if end > start:
            found[number] = (start, end)
    partitions = {number: _Partition(end, most_bytes // len(found)) for number, (_, end) in found.items()}
    # Without a subscription no group is joined, and nothing is committed.
    consumer.assign([TopicPartition(address.topic, number, start) for number, (start, _) in found.items()])
    return partitions


def _read(consumer: Any, address: TopicAddress, partitions: Mapping[int, _Partition]) -> int:
    """Reads each partition up to its end or limit; returns the number of tombstones."""
    left_out, moved = 0, time.monotonic()
    while not all(each.done for each in partitions.values()):
        some = consumer.consume(AT_ONCE, POLL_SECONDS)
        if some:
            moved = time.monotonic()
        elif time.monotonic() - moved > SILENT_SECONDS:
            raise DatasetError(
                f"kafka://{address.bootstrap}/{address.topic}: nothing more comes of it for {SILENT_SECONDS:g} s;"
                " check its brokers"
            )
        for message in some:
            partition, error = partitions[message.partition()], message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                # Transaction markers take offsets, too.
                partition.done = True
                continue
            if partition.done or message.offset() >= partition.end:
                partition.done = True
            elif message.value() is None:
                left_out += 1
            else:
                _take(partition, message)
            partition.done |= message.offset() >= partition.end - 1
        consumer.pause([TopicPartition(address.topic, number) for number, each in partitions.items() if each.done])
    return left_out


def _take(partition: _Partition, message: Any) -> None:
    key, value = message.key(), message.value()
    size = len(value) + len(key or b"")
    if partition.messages and partition.bytes + size > partition.most_bytes:
        partition.cut = partition.done = True
        return
    partition.bytes += size
    partition.messages.append(Message(message.timestamp()[1], message.partition(), message.offset(), key, value))
