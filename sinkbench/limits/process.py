"""The process of a plain client: it writes to a sink or reads from Kafka on one connection, as the controller orders.

The controller starts `python -m sinkbench.limits.process FD`, where FD is one end of a socket pair. That process does
no work itself: for each socket that it is sent it forks a client, which costs less than another interpreter with all of
its imports. Orders come through a client's socket, pickled, and not as arguments, which anybody who lists processes
sees. Each process ends when the other end of its socket closes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any

from confluent_kafka import Consumer

from loadgen.dataset.held import Dataset
from loadgen.dataset.maker import DatasetMaker
from loadgen.options import Load
from loadgen.records import Maker, RecordMaker, made_by
from sinkbench.errors import ServiceError
from sinkbench.limits.orders import Consume, MakeRecords, Open, Problem, Ready, Seen, Write, Written
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import kafka_errors
from sinkbench.sinks import Writer, open_writer

__all__ = ["main", "make_records", "write_for"]

CONSUMED_AT_ONCE = 10_000
REPORT_SECONDS = 0.05


def make_records(wanted: MakeRecords) -> list[bytes]:
    """The records as loadgen makes them, in order of seq."""
    return made_by(_maker(wanted), wanted.first_seq, wanted.count)


def _maker(wanted: MakeRecords) -> Maker:
    if wanted.dataset is not None:
        return DatasetMaker(Dataset.read(wanted.dataset), wanted.run)
    options = {key: value for key, value in asdict(wanted).items() if key != "dataset"}
    return RecordMaker(Load(bootstrap="-", topic="-", **options))


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


def consume(connection: Connection, order: Consume) -> None:
    partitions: list[Any] = []
    moved: list[bool] = []

    def assigned(consumer: Any, given: list[Any]) -> None:
        # Nobody reads before every member has its partitions.
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


class _Client:
    """The state between orders."""

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
            with kafka_errors():
                consume(self._connection, order)
            return Ready()
        return Problem(f"not understood: {type(order).__name__}")

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer, self._batches = None, []


def main(descriptor: int) -> None:
    """Forks a client for each socket that comes, until the controller closes its end of the socket pair."""
    # Ctrl-C is for the controller, which ends its clients itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # So that no client that has ended is left as a zombie.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with Connection(descriptor) as connection, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            socket = recv_handle(connection)
            if os.fork() == 0:
                try:
                    connection.close()
                    serve(socket)
                finally:
                    # What this process has open is its parent's to close.
                    os._exit(0)
            os.close(socket)


def serve(descriptor: int) -> None:
    """Obeys orders as a client, until the controller closes its end of that socket."""
    with Connection(descriptor) as connection, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        client = _Client(connection)
        while True:
            order = connection.recv()
            try:
                answer = client.obey(order)
            except ServiceError as error:
                answer = Problem(in_one_line(error))
            connection.send(answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
