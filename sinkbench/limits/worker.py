"""A process that writes to a sink or reads from Kafka, on one connection, as the controller tells it.

The controller starts it as `python -m sinkbench.limits.worker FD`, where FD is one end of a socket pair; what it is to
do comes through that, as pickled commands, since whoever lists processes sees their arguments. It ends when the other
end is closed, whatever has become of the controller.
"""

from __future__ import annotations

import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from confluent_kafka import Consumer, KafkaException

from loadgen.options import Load
from loadgen.records import RecordMaker
from sinkbench.limits.orders import Consume, MakeRecords, Open, Problem, Ready, Seen, Write, Written
from sinkbench.limits.writers import Refused, Writer, open_writer
from sinkbench.probes import CLIENT_ERRORS, in_one_line
from sinkbench.secrets import redacted

__all__ = ["main", "make_records", "write_for"]

CONSUMED_AT_ONCE = 10_000
REPORT_SECONDS = 0.05


def make_records(wanted: MakeRecords) -> list[bytes]:
    """The records, as loadgen makes them, in their order."""
    options = {"run": wanted.run, "first_seq": wanted.first_seq, "count": wanted.count, "keys": wanted.keys}
    maker = RecordMaker(Load(bootstrap="-", topic="-", record_bytes=wanted.record_bytes, **options))  # type: ignore[arg-type]
    now_us = time.time_ns() // 1000
    made: list[bytes] = []
    while len(made) < wanted.count:
        seq = wanted.first_seq + len(made)
        few = min(maker.longest_batch(seq), wanted.count - len(made))
        made += [str(message["value"]).encode("ascii") for message in maker.batch(seq, few, now_us, now_us)]
    return made


def write_for(writer: Writer, batches: list[Any], batch: int, order: Write) -> Written:
    """Writes batches of `batch` records in turn, until the time is over."""
    deadline = order.start + order.seconds
    stored, in_time = 0, 0.0
    time.sleep(max(0.0, order.start - time.monotonic()))
    try:
        while (began := time.monotonic()) < deadline:
            writer.write(batches[stored // batch % len(batches)])
            ended = time.monotonic()
            stored += batch
            in_time += batch if ended <= deadline else batch * (deadline - began) / (ended - began)
    except Refused as error:
        return Written(stored, in_time, " ".join(redacted(str(error)).split())[:200])
    except CLIENT_ERRORS as error:
        return Written(stored, in_time, in_one_line(error))
    return Written(stored, in_time)


def consume(connection: Connection, order: Consume) -> None:
    """Reads as a member of a group, as `Consume` says."""
    partitions: list[Any] = []

    def assigned(consumer: Any, given: list[Any]) -> None:
        # Nobody begins before everybody has a share.
        partitions[:] = given
        consumer.assign(given)
        consumer.pause(given)
        connection.send(Seen(time.monotonic(), len(given), 0))

    consumer = Consumer(
        # Nothing is committed, so that a group whose controller was killed is gone with its members.
        {**order.settings, "group.id": order.group, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    )
    try:
        consumer.subscribe([order.topic], on_assign=assigned, on_revoke=lambda *_: partitions.clear())
        while not connection.poll():
            consumer.consume(num_messages=1, timeout=REPORT_SECONDS)
        connection.recv()
        consumer.resume(partitions)
        records, reported = 0, 0.0
        while not connection.poll():
            records += sum(message.error() is None for message in consumer.consume(CONSUMED_AT_ONCE, REPORT_SECONDS))
            if (now := time.monotonic()) - reported >= REPORT_SECONDS:
                connection.send(Seen(now, len(partitions), records))
                reported = now
        connection.recv()
    finally:
        consumer.close()


class _Client:
    """What is kept from one command to the next."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._records: list[bytes] = []
        self._writer: Writer | None = None
        self._batches: list[Any] = []
        self._batch = 0

    def obey(self, order: object) -> object:
        if isinstance(order, MakeRecords):
            self._records = make_records(order)
            return Ready()
        if isinstance(order, Open):
            self.close()
            self._writer = open_writer(order.to)
            self._batch = order.batch
            whole = range(0, len(self._records) - order.batch + 1, order.batch)
            self._batches = [self._writer.batch(self._records[at : at + order.batch]) for at in whole]
            return Ready()
        if isinstance(order, Write) and self._writer is not None:
            written = write_for(self._writer, self._batches, self._batch, order)
            self.close()
            return written
        if isinstance(order, Consume):
            consume(self._connection, order)
            return Ready()
        return Problem(f"not understood: {type(order).__name__}")

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer, self._batches = None, []


def main(descriptor: int) -> None:
    """Obeys until the controller closes its end."""
    # A Ctrl-C is for the controller, which then ends its clients itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(descriptor) as connection:
        client = _Client(connection)
        try:
            while True:
                order = connection.recv()
                try:
                    answer = client.obey(order)
                except (*CLIENT_ERRORS, KafkaException) as error:
                    answer = Problem(in_one_line(error))
                connection.send(answer)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main(int(sys.argv[1]))
