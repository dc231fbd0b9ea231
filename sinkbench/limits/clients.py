"""Plain clients in worker processes, with one connection each: they write to a sink, or read from Kafka."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from loadgen.dataset.store import Dataset, DatasetMaker
from loadgen.options import Load
from loadgen.records import RecordMaker, made_by
from sinkbench.errors import ServiceError
from sinkbench.services.consumers import JOIN_SECONDS, Consume, consume
from sinkbench.services.failures import in_one_line
from sinkbench.services.worker import WorkerFailed, Workers, answer_of, order
from sinkbench.sinks import Destination, Writer, open_writer

# Time to import libraries and make records, on a busy machine.
START_SECONDS = 60.0
# A batch that began in time may end this much later.
GRACE_SECONDS = 90.0
# Between the order and the start, so that all clients have read the order.
HEAD_START_SECONDS = 0.05


@dataclass(frozen=True)
class Written:
    """Records acknowledged, in how many seconds, and why the writing ended early, if it did."""

    stored: int
    seconds: float
    problem: str | None = None
    cpu_seconds: float = 0.0


def rate_of(written: Sequence[Written]) -> float:
    """Records per second of clients that began together, until the last one's last batch was acknowledged: a sink that
    lets batches wait has done nothing yet for those that are under way, so that no part of one may count."""
    return sum(each.stored for each in written) / max(each.seconds for each in written)


def make_records(wanted: Load, dataset: Path | None = None) -> list[bytes]:
    """The records as loadgen makes them, of NOAA or of a data set's file, in order of seq."""
    maker = RecordMaker(wanted) if dataset is None else DatasetMaker(Dataset.read(dataset), wanted.run)
    return made_by(maker, wanted.first_seq, wanted.count or 0)


def write(connection: Connection) -> None:
    """Worker that gets the arguments of `make_records`, then in turn a destination with a batch size, and when to start
    (monotonic) and for how many seconds to write; answers None when ready, and the latter with Written."""
    records = make_records(*connection.recv())
    connection.send(None)
    while True:
        to, size = connection.recv()
        with closing(open_writer(to)) as writer:
            batches = [writer.batch(records[at : at + size]) for at in range(0, len(records) - size + 1, size)]
            connection.send(None)
            written = write_for(writer, batches, size, *connection.recv())
        connection.send(written)


def write_for(writer: Writer, batches: list[Any], batch: int, start: float, seconds: float) -> Written:
    """Writes the batches of `batch` records repeatedly; begins none when the time is over."""
    stored, problem = 0, None
    time.sleep(max(0.0, start - time.monotonic()))
    used = time.process_time()
    try:
        while time.monotonic() < start + seconds:
            writer.write(batches[stored // batch % len(batches)])
            stored += batch
    except ServiceError as error:
        problem = in_one_line(error)
    return Written(stored, time.monotonic() - start, problem, time.process_time() - used)


class Writers:
    """Clients that write. Each starts when it is first needed, and ends with this object at the latest."""

    def __init__(self, load: Load, dataset: Path | None = None) -> None:
        """The records are the first client's; each further one gets the same number of those that follow."""
        self._load, self._dataset = load, dataset
        self._workers = Workers()
        self._ends: list[Connection] = []

    def open(self, to: Destination, batch: int, connections: int) -> None:
        """Connects `connections` clients, which make batches of `batch` records. Raises WorkerFailed if one fails."""
        before = len(self._ends)
        self._ends += [self._workers.start(write) for _ in range(before, connections)]
        firsts = [at * (self._load.count or 0) for at in range(before, len(self._ends))]
        wanted = [(self._load.model_copy(update={"first_seq": first}), self._dataset) for first in firsts]
        _ask(self._ends[before:], wanted, START_SECONDS)
        _ask(self._ends[:connections], [(to, batch)] * connections, START_SECONDS)

    def write(self, connections: int, seconds: float) -> list[Written]:
        """Writes over the connections for `seconds`, closes them; a result for each. WorkerFailed if a client dies."""
        what = (time.monotonic() + HEAD_START_SECONDS, seconds)
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


def consume_as_group(what: Consume, consumers: int, partitions: int, see: Callable[[float, int], bool]) -> None:
    """Reads a topic of so many partitions by a group of `consumers` until `see` returns False; it gets the monotonic
    time and the number of records read by then. No consumer reads before all partitions are assigned. Raises
    WorkerFailed if the group does not form or a consumer dies."""
    with Workers() as workers:
        ends = [workers.start(consume) for _ in range(consumers)]
        last = dict.fromkeys(ends, (0.0, 0, 0))

        def tell(message: object) -> None:
            for end in ends:
                order(end, message)

        def follow(until: float) -> float:
            """Takes the consumers' next messages and returns their time."""
            ready = [end for end in wait(ends, max(0.0, until - time.monotonic())) if isinstance(end, Connection)]
            if not ready:
                raise WorkerFailed(f"the consumers of {what.topic} said nothing for too long")
            last.update({end: answer_of(end, 0.0) for end in ready})
            return max(last[end][0] for end in ready)

        tell(what)
        joined, given = time.monotonic() + JOIN_SECONDS, [0]
        # The first to join has all partitions until the next joins.
        while sum(given) != partitions or sum(map(bool, given)) != min(consumers, partitions):
            follow(joined)
            given = [partitions_of for _, partitions_of, _ in last.values()]
        tell("read")
        while see(follow(time.monotonic() + JOIN_SECONDS), sum(records for _, _, records in last.values())):
            pass
        tell("end")
        # None comes once a consumer has left its group.
        for end in ends:
            while answer_of(end, JOIN_SECONDS) is not None:
                pass
