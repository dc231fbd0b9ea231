"""The controller's side of the plain clients: it starts their processes and tells them what to do."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from types import TracebackType

from sinkbench.errors import SinkbenchError
from sinkbench.limits.orders import Consume, MakeRecords, Open, Problem, Ready, Seen, Write, Written
from sinkbench.limits.writers import Destination

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


class Clients:
    """Processes with one connection each. They live no longer than this one; none is started before it is needed."""

    def __init__(self, records: MakeRecords | None = None) -> None:
        """`records`: what each is to write: that many records, those of the next one where the ones before end."""
        self._records = records
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ends: list[Connection] = []

    def write(self, to: Destination, batch: int, connections: int, seconds: float) -> list[Written]:
        """Writes batches of `batch` records over `connections` connections for so many seconds.

        Returns:
            What came of each connection.

        Raises:
            ClientFailed: one could not connect, or died.
        """
        ends = self._at_least(connections)
        self._tell(ends, [Open(to, batch)] * connections, START_SECONDS)
        order = Write(time.monotonic() + HEAD_START_SECONDS, seconds)
        answers = self._tell(ends, [order] * connections, seconds + GRACE_SECONDS)
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
        while sum(seen.partitions for seen in last.values()) != partitions:
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
        """Ends all of them at once; it can be called again."""
        for end in self._ends:
            end.close()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait(END_SECONDS)
        self._ends.clear()
        self._processes.clear()

    def __enter__(self) -> Clients:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _at_least(self, number: int) -> list[Connection]:
        before = len(self._ends)
        while len(self._ends) < number:
            self._start()
        if self._records is not None:
            wanted = self._records
            orders = [
                MakeRecords(wanted.run, place * wanted.count, wanted.count, wanted.keys, wanted.record_bytes)
                for place in range(before, len(self._ends))
            ]
            self._tell(self._ends[before:], orders, START_SECONDS)
        return self._ends[:number]

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "sinkbench.limits.worker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                # A Ctrl-C is for the controller.
                start_new_session=True,
            )
        self._processes.append(process)
        self._ends.append(Connection(ours.detach()))

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
