"""The workers of a limit: each writes to a sink or reads from Kafka on one connection, as the controller orders."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from loadgen.dataset.store import Dataset, DatasetMaker
from loadgen.options import Load
from loadgen.records import RecordMaker, made_by
from sinkbench.errors import ServiceError
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import kafka_errors
from sinkbench.sinks import Destination, Writer, open_writer

CONSUMED_AT_ONCE = 10_000
REPORT_SECONDS = 0.05


@dataclass(frozen=True)
class MakeRecords:
    """Order to make `count` records from `first_seq` on, to write again and again. The fields are loadgen's options;
    `dataset` is the file of the data set, None for NOAA's records.
    """

    run: str
    first_seq: int
    count: int
    keys: int
    record_bytes: int
    dataset: Path | None = None


@dataclass(frozen=True)
class Open:
    """Order to connect, and to cut the records into batches of `batch`."""

    to: Destination
    batch: int


@dataclass(frozen=True)
class Write:
    """Order to write for `seconds` from the monotonic time `start`, then to close."""

    start: float
    seconds: float


@dataclass(frozen=True)
class Written:
    """The result of writing: records acknowledged, and why it ended early, if it did. `in_time` counts records within
    the time; a batch at its end counts by the share of its duration within.
    """

    stored: int
    in_time: float
    problem: str | None = None
    cpu_seconds: float = 0.0


@dataclass(frozen=True)
class Consume:
    """Order to join a consumer group on `topic`. The next message starts the reading, and the one after it ends it."""

    topic: str
    group: str
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Seen:
    """A consumer's numbers of partitions and of records read, at the monotonic time `at`."""

    at: float
    partitions: int
    records: int


def make_records(wanted: MakeRecords) -> list[bytes]:
    """The records as loadgen makes them, in order of seq."""
    if wanted.dataset is not None:
        return made_by(DatasetMaker(Dataset.read(wanted.dataset), wanted.run), wanted.first_seq, wanted.count)
    options = {key: value for key, value in asdict(wanted).items() if key != "dataset"}
    return made_by(RecordMaker(Load(bootstrap="-", topic="-", **options)), wanted.first_seq, wanted.count)


def write(connection: Connection) -> None:
    """Worker that obeys MakeRecords, then Open and Write in turn; answers None when ready, and Write with Written."""
    records = make_records(connection.recv())
    connection.send(None)
    while True:
        opened: Open = connection.recv()
        size = opened.batch
        with closing(open_writer(opened.to)) as writer:
            batches = [writer.batch(records[at : at + size]) for at in range(0, len(records) - size + 1, size)]
            connection.send(None)
            written = write_for(writer, batches, size, connection.recv())
        connection.send(written)


def write_for(writer: Writer, batches: list[Any], batch: int, order: Write) -> Written:
    """Writes the batches of `batch` records repeatedly until the time is over."""
    deadline = order.start + order.seconds
    stored, in_time = 0, 0.0
    time.sleep(max(0.0, order.start - time.monotonic()))
    used = time.process_time()
    try:
        while (began := time.monotonic()) < deadline:
            writer.write(batches[stored // batch % len(batches)])
            ended = time.monotonic()
            stored += batch
            in_time += batch if ended <= deadline else batch * (deadline - began) / (ended - began)
    except ServiceError as error:
        return Written(stored, in_time, in_one_line(error), time.process_time() - used)
    return Written(stored, in_time, cpu_seconds=time.process_time() - used)


def consume(connection: Connection) -> None:
    """Worker that obeys Consume; sends Seen on every change, and None at the end."""
    order: Consume = connection.recv()
    with kafka_errors():
        _consume(connection, order)
    connection.send(None)


def _consume(connection: Connection, order: Consume) -> None:
    partitions: list[Any] = []
    moved: list[bool] = []

    def assigned(consumer: Any, given: list[Any]) -> None:
        # No member reads before all have their partitions.
        partitions[:] = given
        consumer.assign(given)
        consumer.pause(given)
        connection.send(Seen(time.monotonic(), len(given), 0))

    def revoked(_: Any, __: list[Any]) -> None:
        partitions.clear()
        moved.append(True)
        connection.send(Seen(time.monotonic(), 0, 0))

    consumer = Consumer(
        # Without commits, the group vanishes with its members if the controller is killed.
        {**order.settings, "group.id": order.group, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    )
    try:
        consumer.subscribe([order.topic], on_assign=assigned, on_revoke=revoked)
        while not connection.poll():
            consumer.consume(num_messages=1, timeout=REPORT_SECONDS)
        connection.recv()
        moved.clear()
        consumer.resume(partitions)
        records, reported = 0, 0.0
        while not connection.poll():
            if moved:
                raise ServiceError("the consumer group was rebalanced while it read")
            records += sum(message.error() is None for message in consumer.consume(CONSUMED_AT_ONCE, REPORT_SECONDS))
            if (now := time.monotonic()) - reported >= REPORT_SECONDS:
                connection.send(Seen(now, len(partitions), records))
                reported = now
        connection.recv()
    finally:
        consumer.close()
