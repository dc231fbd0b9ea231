"""A member of a consumer group in a worker process: it joins, reads when it is told to, and counts."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from confluent_kafka import Consumer, KafkaException

from sinkbench.services.failures import map_exceptions

JOIN_SECONDS = 60.0
CONSUMED_AT_ONCE = 10_000
WAIT_SECONDS = 0.05


@dataclass(frozen=True)
class Consume:
    """Order to join a consumer group on `topic`. The next message starts the reading, and the one after it ends it.
    Meanwhile the count is reported every `report_seconds`."""

    topic: str
    group: str
    settings: Mapping[str, str] = field(repr=False)
    report_seconds: float = WAIT_SECONDS


def consume(connection: Connection) -> None:
    """Worker that obeys Consume; sends time, partitions and records read at every change and at the end, then None."""
    what: Consume = connection.recv()
    partitions: list[Any] = []

    def assigned(consumer: Any, given: list[Any]) -> None:
        # No member reads before all have their partitions.
        partitions[:] = given
        consumer.assign(given)
        consumer.pause(given)
        connection.send((time.monotonic(), len(given), 0))

    # Without commits, the group vanishes with its members if the controller is killed.
    own = {"group.id": what.group, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with map_exceptions(KafkaException), closing(Consumer({**what.settings, **own})) as consumer:
        consumer.subscribe([what.topic], on_assign=assigned)
        while not connection.poll():
            consumer.consume(num_messages=1, timeout=WAIT_SECONDS)
        connection.recv()
        consumer.resume(partitions)
        records, reported = 0, time.monotonic()
        while not connection.poll():
            # After a rebalance all are paused, and too few records are read.
            records += sum(message.error() is None for message in consumer.consume(CONSUMED_AT_ONCE, WAIT_SECONDS))
            if (now := time.monotonic()) - reported >= what.report_seconds:
                connection.send((now, len(partitions), records))
                reported = now
        connection.recv()
        connection.send((time.monotonic(), len(partitions), records))
    connection.send(None)
