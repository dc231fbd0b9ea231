"""The controller's side of the plain clients: workers with one connection to a sink, or to Kafka, each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from sinkbench.limits.process import Consume, MakeRecords, Open, Seen, Write, Written, consume, write
from sinkbench.services.worker import WorkerFailed, Workers, answer_of, order
from sinkbench.sinks import Destination

__all__ = ["Writers", "consume_as_group"]

# To import its libraries and make its records, on a machine that is busy.
START_SECONDS = 60.0
# A batch that was begun in time may end that much later.
GRACE_SECONDS = 90.0
JOIN_SECONDS = 60.0
# Between the order and the start: all clients must have read it.
HEAD_START_SECONDS = 0.05


class Writers:
    """Clients that write. They live no longer than this one; none is started before it is needed."""

    def __init__(self, records: MakeRecords) -> None:
        """`records` are what the first client writes; each further one has the same number of those that follow."""
        self._records = records
        self._workers = Workers()
        self._ends: list[Connection] = []

    def open(self, to: Destination, batch: int, connections: int) -> None:
        """Connects `connections` clients, and has them make batches of `batch` records.

        Raises WorkerFailed if one cannot connect, or died.
        """
        before = len(self._ends)
        self._ends += [self._workers.start(write) for _ in range(before, connections)]
        count = self._records.count
        wanted = [replace(self._records, first_seq=at * count) for at in range(before, len(self._ends))]
        _ask(self._ends[before:], wanted, START_SECONDS)
        _ask(self._ends[:connections], [Open(to, batch)] * connections, START_SECONDS)

    def write(self, connections: int, seconds: float) -> list[Written]:
        """Writes over as many connections as were opened, for `seconds`, and closes them.

        Returns what came of each connection. Raises WorkerFailed if one died.
        """
        what = Write(time.monotonic() + HEAD_START_SECONDS, seconds)
        return _ask(self._ends[:connections], [what] * connections, seconds + GRACE_SECONDS)

    def close(self) -> None:
        """Ends all of them at once, and returns when they are gone; it can be called again."""
        self._workers.close()
        self._ends.clear()


def _ask(ends: Sequence[Connection], orders: Sequence[object], seconds: float) -> list[Any]:
    for end, each in zip(ends, orders, strict=True):
        order(end, each)
    deadline = time.monotonic() + seconds
    return [answer_of(end, deadline - time.monotonic()) for end in ends]


def consume_as_group(
    topic: str,
    group: str,
    settings: Mapping[str, str],
    consumers: int,
    partitions: int,
    see: Callable[[float, int], bool],
) -> None:
    """Reads a topic by plain clients, until `see` returns False.

    Args:
        topic, group: what is read, and as which group.
        settings: of librdkafka, with the bootstrap servers.
        consumers: how many.
        partitions: how many the topic has; no consumer begins before all have been given out.
        see: gets the monotonic time and the records that all have read by then.

    Raises WorkerFailed if the group does not come about, or a consumer died.
    """
    with Workers() as workers:
        ends = [workers.start(consume) for _ in range(consumers)]
        for end in ends:
            order(end, Consume(topic, group, settings))
        last = dict.fromkeys(ends, Seen(0.0, 0, 0))

        def follow(until: float) -> float:
            """Takes what the consumers say next; returns when it was so."""
            ready = [end for end in wait(ends, max(0.0, until - time.monotonic())) if isinstance(end, Connection)]
            if not ready:
                raise WorkerFailed(f"the consumers of {topic} said nothing for too long")
            last.update({end: answer_of(end, 0.0) for end in ready})
            return max(last[end].at for end in ready)

        joined = time.monotonic() + JOIN_SECONDS
        while not _all_joined([seen.partitions for seen in last.values()], partitions):
            follow(joined)
        for end in ends:
            order(end, "read")
        while see(follow(time.monotonic() + JOIN_SECONDS), sum(seen.records for seen in last.values())):
            pass
        for end in ends:
            order(end, "end")
        # None comes once a consumer has left its group.
        for end in ends:
            while answer_of(end, JOIN_SECONDS) is not None:
                pass


def _all_joined(given: Sequence[int], partitions: int) -> bool:
    """Whether all consumers have their partitions; the first to join has every one until the next joins."""
    return sum(given) == partitions and sum(map(bool, given)) == min(len(given), partitions)
