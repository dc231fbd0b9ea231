"""The controller's side of the plain clients: worker processes with one connection each to a sink or to Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from sinkbench.limits.process import Consume, MakeRecords, Open, Seen, Write, Written, consume, write
from sinkbench.services.worker import WorkerFailed, Workers, answer_of, order
from sinkbench.sinks import Destination

# Time to import libraries and make records, on a busy machine.
START_SECONDS = 60.0
# A batch that began in time may end this much later.
GRACE_SECONDS = 90.0
JOIN_SECONDS = 60.0
# Between the order and the start, so that all clients have read the order.
HEAD_START_SECONDS = 0.05


class Writers:
    """Clients that write. Each starts when it is first needed, and ends with this object at the latest."""

    def __init__(self, records: MakeRecords) -> None:
        """`records` are the first client's; each further one gets the same number of the records that follow."""
        self._records = records
        self._workers = Workers()
        self._ends: list[Connection] = []

    def open(self, to: Destination, batch: int, connections: int) -> None:
        """Connects `connections` clients, which make batches of `batch` records. Raises WorkerFailed if one fails."""
        before = len(self._ends)
        self._ends += [self._workers.start(write) for _ in range(before, connections)]
        count = self._records.count
        wanted = [replace(self._records, first_seq=at * count) for at in range(before, len(self._ends))]
        _ask(self._ends[before:], wanted, START_SECONDS)
        _ask(self._ends[:connections], [Open(to, batch)] * connections, START_SECONDS)

    def write(self, connections: int, seconds: float) -> list[Written]:
        """Writes over the opened connections for `seconds`, closes them, and returns one result for each. Raises
        WorkerFailed if a client dies.
        """
        what = Write(time.monotonic() + HEAD_START_SECONDS, seconds)
        return _ask(self._ends[:connections], [what] * connections, seconds + GRACE_SECONDS)

    def close(self) -> None:
        """Ends all clients and waits until they are gone. May be called again."""
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
    """Reads `topic` as consumer group `group` until `see` returns False; `settings` are librdkafka's. `see` gets the
    monotonic time and the number of records read by then. No consumer reads before all `partitions` are assigned.
    Raises WorkerFailed if the group does not form or a consumer dies.
    """
    with Workers() as workers:
        ends = [workers.start(consume) for _ in range(consumers)]
        for end in ends:
            order(end, Consume(topic, group, settings))
        last = dict.fromkeys(ends, Seen(0.0, 0, 0))

        def follow(until: float) -> float:
            """Takes the consumers' next messages and returns their time."""
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
    """Whether all consumers have partitions. The first to join has all of them until the next joins."""
    return sum(given) == partitions and sum(map(bool, given)) == min(len(given), partitions)
