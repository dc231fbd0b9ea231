"""The controller's side of the plain clients: it starts their processes and tells them what to do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import send_handle

from sinkbench.errors import SinkbenchError
from sinkbench.limits.orders import Consume, MakeRecords, Open, Problem, Ready, Seen, Write, Written
from sinkbench.sinks import Destination

__all__ = ["ClientFailed", "Clients"]

# To import its libraries and make its records, on a machine that is busy.
START_SECONDS = 60.0
# A batch that was begun in time may end so much later.
GRACE_SECONDS = 90.0
JOIN_SECONDS = 60.0
# Between the order and the start: all clients must have read it.
HEAD_START_SECONDS = 0.05
END_SECONDS = 5.0


class ClientFailed(SinkbenchError):
    """A plain client could not do what it was told; the text says why."""


def _all_joined(given: Sequence[int], partitions: int) -> bool:
    """Whether all consumers have their partitions; the first to join has every one until the next joins."""
    return sum(given) == partitions and sum(map(bool, given)) == min(len(given), partitions)


class Clients:
    """Processes with one connection each. They live no longer than this one; none is started before it is needed."""

    def __init__(self, records: MakeRecords | None = None) -> None:
        """`records`: what each is to write: that many records, those of the next one where the ones before end."""
        self._records = records
        self._parent: subprocess.Popen[bytes] | None = None
        self._orders: Connection | None = None
        self._ends: list[Connection] = []

    def open(self, to: Destination, batch: int, connections: int) -> None:
        """Connects so many clients, and has them make batches of `batch` records.

        Raises:
            ClientFailed: one could not connect, or died.
        """
        self._tell(self._at_least(connections), [Open(to, batch)] * connections, START_SECONDS)

    def write(self, connections: int, seconds: float) -> list[Written]:
        """Writes over as many connections as were opened, for so many seconds, and closes them.

        Returns:
            What came of each connection.

        Raises:
            ClientFailed: one died.
        """
        order = Write(time.monotonic() + HEAD_START_SECONDS, seconds)
        answers = self._tell(self._ends[:connections], [order] * connections, seconds + GRACE_SECONDS)
        return [answer for answer in answers if isinstance(answer, Written)]

    def consume(
        self,
        topic: str,
        group: str,
        settings: Mapping[str, str],
        consumers: int,
        partitions: int,
        see: Callable[[float, int], bool],
    ) -> None:
        """Reads a topic as one group, until `see` returns False.

        Args:
            topic, group: what is read, and as whom.
            settings: of librdkafka, with the bootstrap servers.
            consumers: how many.
            partitions: how many the topic has; nobody begins before all have been given out.
            see: is told the monotonic time and the records that all have read by then.

        Raises:
            ClientFailed: the group does not come about, or a consumer died.
        """
        ends = self._at_least(consumers)
        for end in ends:
            self._send(end, Consume(topic, group, settings))
        last = dict.fromkeys(range(consumers), Seen(0.0, 0, 0))

        def follow(until: float) -> float:
            ready = wait(ends, max(0.0, until - time.monotonic()))
            if not ready:
                raise ClientFailed(f"the consumers of {topic} said nothing for too long")
            at = 0.0
            for end in ready:
                answer = self._receive(end)  # type: ignore[arg-type]
                if isinstance(answer, Seen):
                    last[ends.index(end)] = answer  # type: ignore[arg-type]
                    at = max(at, answer.at)
            return at

        joined = time.monotonic() + JOIN_SECONDS
        while not _all_joined([seen.partitions for seen in last.values()], partitions):
            follow(joined)
        for end in ends:
            self._send(end, Ready())
        while True:
            at = follow(time.monotonic() + JOIN_SECONDS)
            if not see(at, sum(seen.records for seen in last.values())):
                break
        for end in ends:
            self._send(end, Ready())
        for end in ends:
            while isinstance(self._answer(end, time.monotonic() + JOIN_SECONDS), Seen):
                pass

    def close(self) -> None:
        """Ends all of them at once, and returns when they are gone; it can be called again."""
        if self._parent is not None:
            # They are one group, see `_start_parent`.
            with suppress(ProcessLookupError):
                os.killpg(self._parent.pid, signal.SIGKILL)
            self._parent.wait(END_SECONDS)
        deadline = time.monotonic() + END_SECONDS
        for end in self._ends:
            # The kernel closes the other end with its process.
            with suppress(EOFError, OSError):
                while end.poll(max(0.0, deadline - time.monotonic())):
                    end.recv()
            end.close()
        if self._orders is not None:
            self._orders.close()
        self._ends.clear()
        self._parent = self._orders = None

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _at_least(self, number: int) -> list[Connection]:
        before = len(self._ends)
        while len(self._ends) < number:
            self._start()
        if (wanted := self._records) is not None:
            orders = [replace(wanted, first_seq=at * wanted.count) for at in range(before, len(self._ends))]
            self._tell(self._ends[before:], orders, START_SECONDS)
        return self._ends[:number]

    def _start(self) -> None:
        if self._parent is None or self._orders is None:
            self._parent, self._orders = self._start_parent()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                send_handle(self._orders, theirs.fileno(), self._parent.pid)
            except OSError:
                raise ClientFailed("the parent of the plain clients died") from None
        self._ends.append(Connection(ours.detach()))

    def _start_parent(self) -> tuple[subprocess.Popen[bytes], Connection]:
        """The process that forks a client for each socket that it is sent, and where to send it."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "sinkbench.limits.process", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                # A Ctrl-C is for the controller; and so it is a group of its own with its children.
                start_new_session=True,
            )
        return process, Connection(ours.detach())

    def _tell(self, ends: Sequence[Connection], orders: Sequence[object], seconds: float) -> list[object]:
        for end, order in zip(ends, orders, strict=True):
            self._send(end, order)
        deadline = time.monotonic() + seconds
        return [self._answer(end, deadline) for end in ends]

    def _send(self, end: Connection, order: object) -> None:
        try:
            end.send(order)
        except OSError:
            raise ClientFailed("a plain client died") from None

    def _answer(self, end: Connection, deadline: float) -> object:
        if not end.poll(max(0.0, deadline - time.monotonic())):
            raise ClientFailed("a plain client did not answer in time")
        return self._receive(end)

    def _receive(self, end: Connection) -> object:
        try:
            answer: object = end.recv()
        except (EOFError, OSError):
            raise ClientFailed("a plain client died") from None
        if isinstance(answer, Problem):
            raise ClientFailed(answer.reason)
        return answer
