"""What the workers of a limit do: write to a sink or read from Kafka on one connection, as the controller orders."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from loadgen.dataset.maker import DatasetMaker
from loadgen.dataset.store import Dataset
from loadgen.options import Load
from loadgen.records import RecordMaker, made_by
from sinkbench.errors import ServiceError
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import kafka_errors
from sinkbench.sinks import Destination, Writer, open_writer

__all__ = [
    "Consume",
    "MakeRecords",
    "Open",
    "Seen",
    "Write",
    "Written",
    "consume",
    "make_records",
    "write",
    "write_for",
]

CONSUMED_AT_ONCE = 10_000
REPORT_SECONDS = 0.05


@dataclass(frozen=True)
class MakeRecords:
    """Make `count` records from `first_seq` on, to write again and again.

    Attributes:
        run, first_seq, count, keys, record_bytes: as loadgen's options.
        dataset: the file of the data set that they are made from, if they are not noaa's.
    """

    run: str
    first_seq: int
    count: int
    keys: int
    record_bytes: int
    dataset: Path | None = None


@dataclass(frozen=True)
class Open:
    """Connect, and cut the records into batches of `batch`."""

    to: Destination
    batch: int


@dataclass(frozen=True)
class Write:
    """Write for `seconds` from the monotonic time `start`, then close."""

    start: float
    seconds: float


@dataclass(frozen=True)
class Written:
    """The result of writing.

    Attributes:
        stored: records that the sink has acknowledged.
        in_time: those of them within the time; a batch at its end counts by the share of its duration within.
        problem: why it ended early, if it did.
        cpu_seconds: CPU time that the client took for it.
    """

    stored: int
    in_time: float
    problem: str | None = None
    cpu_seconds: float = 0.0


@dataclass(frozen=True)
class Consume:
    """Join a consumer group on `topic`. The next message starts the reading, and the one after it ends it."""

    topic: str
    group: str
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Seen:
    """A consumer at the monotonic time `at`: the number of its partitions, and of the records that it has read."""

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
    """Obeys MakeRecords, then Open and Write in turn; answers None when ready, and each Write with Written."""
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
    """Writes the batches, of `batch` records each, again and again until the time is over."""
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
    """Obeys Consume: sends Seen whenever anything changes, and None in the end."""
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
        # Without commits, a group vanishes with its members if the controller is killed.
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
