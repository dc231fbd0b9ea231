"""The limit of a sink: the rate at which plain clients write the same records to it.

`sink_limit` searches for the connections and the batch at which it no longer gains; `sink_limit_again` measures those
once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial

from sinkbench.analysis.samples import CONTROLLER, Sample
from sinkbench.errors import ServiceError
from sinkbench.limits.clients import Writers
from sinkbench.limits.costs import costs_between
from sinkbench.limits.process import MakeRecords
from sinkbench.limits.tune import Measured, Point, Tuned, tune
from sinkbench.load.records import KeptRecords
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.failures import in_one_line
from sinkbench.services.worker import WorkerFailed
from sinkbench.sinks import Destination, Sink
from sinkbench.trial.cleaning import cleaning
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.sampler import usage_signs

__all__ = ["BLOCK_SECONDS", "SinkClient", "sink_limit", "sink_limit_again"]

STEP_SECONDS = 2.5
CONFIRM_SECONDS = 5.0
BLOCK_SECONDS = 2.0
"""How long a limit is measured in a block: there are many blocks, and each gets longer by it for each way to write."""
FIRST_BATCH = 256
LARGEST_BATCH = 16_384
MOST_CONNECTIONS = 16
# What each connection has ready to send, again and again; far more than a sink compresses together.
POOL_BYTES = 16 << 20

Look = Callable[[], Sample]


class SinkClient:
    """Plain clients of one sink, all of them with records of the plan's load."""

    def __init__(
        self,
        sink: Sink,
        to: Destination,
        load: PlanLoad,
        look: Look | None = None,
        records: KeptRecords | None = None,
    ) -> None:
        """
        Args:
            sink: makes and removes what is written to, and counts.
            to: where the clients write, and how.
            load: what the records are like.
            look: reads what the services have used so far; None if that is not needed.
            records: the records, if they are not noaa's.
        """
        pool = max(2, int(POOL_BYTES / (load.record_bytes if records is None else records.facts.mean_bytes)))
        self.largest_batch = min(LARGEST_BATCH, pool // 2)
        self._sink = sink
        self._to = to
        self._look = look
        self._clients = Writers(
            MakeRecords(to.target, 0, pool, load.keys, load.record_bytes, None if records is None else records.path)
        )

    def measure(self, point: Point, seconds: float) -> Measured:
        """Writes for `seconds` into a fresh index or table, which is removed however it ends.

        Returns:
            The records stored per second; none if the sink rejected a record, or has another number of them than
            it has acknowledged.

        Raises:
            ServiceError: the index or table cannot be removed.
        """
        with cleaning(lambda: self._sink.drop(self._to.target)):
            try:
                return self._measure(point, seconds)
            except WorkerFailed as error:
                # What is left of them may still wait for something.
                self._clients.close()
                return Measured(None, str(error))
            except ServiceError as error:
                return Measured(None, in_one_line(error))
            except BaseException:
                # A client that still writes would keep a database from dropping the table.
                self._clients.close()
                raise

    def _measure(self, point: Point, seconds: float) -> Measured:
        target = self._to.target
        self._sink.create(target)
        self._clients.open(self._to, point.batch, point.connections)
        before = self._look and self._look()
        written = self._clients.write(point.connections, seconds)
        after = self._look and self._look()
        problem = next((each.problem for each in written if each.problem is not None), None)
        if problem is not None:
            return Measured(None, problem)
        self._sink.settle(target)
        acknowledged, stored = sum(each.stored for each in written), self._sink.count(target)
        if stored != acknowledged:
            return Measured(None, f"{acknowledged:,} records were acknowledged, but {stored:,} are stored")
        rate = round(sum(each.in_time for each in written) / seconds, 1)
        if before is None or after is None:
            return Measured(rate)
        own = sum(each.cpu_seconds for each in written)
        return Measured(rate, costs=costs_between(before, after, stored, own))

    def close(self) -> None:
        """Ends the clients."""
        self._clients.close()


def sink_limit(
    cluster: Cluster,
    to: Destination,
    phase: Callable[[str], None],
    step_seconds: float = STEP_SECONDS,
    confirm_seconds: float = CONFIRM_SECONDS,
) -> Tuned:
    """Searches for the highest rate at which a sink takes the plan's records in one way.

    Args:
        cluster: the stack and its plan.
        to: what to measure, and what the index or table is called.
        phase: gets what is measured.
        step_seconds, confirm_seconds: how long a step of the search is measured, and how long its result.

    Returns:
        What was found; the index or table is gone.
    """

    def measure(point: Point, confirms: bool) -> Measured:
        phase(f"{_in_words(to, point)}{', for longer' if confirms else ''}")
        return client.measure(point, confirm_seconds if confirms else step_seconds)

    with closing(SinkClient(cluster.sink(to.sink), to, cluster.plan.load, records=cluster.records)) as client:
        first = Point(min(FIRST_BATCH, client.largest_batch), 1)
        return tune(measure, first, Point(client.largest_batch, MOST_CONNECTIONS))


def sink_limit_again(
    cluster: Cluster, to: Destination, point: Point, phase: Callable[[str], None], seconds: float = BLOCK_SECONDS
) -> Measured:
    """Measures once more what a search has settled, by new clients, and what it took; the rest as of `sink_limit`.

    The clients live no longer than that: during a trial they would take memory.
    """
    phase(_in_words(to, point))
    with closing(
        SinkClient(cluster.sink(to.sink), to, cluster.plan.load, partial(_look, cluster), cluster.records)
    ) as client:
        return client.measure(point, seconds)


def _in_words(to: Destination, point: Point) -> str:
    return f"{to.way} of {point.batch:,} records, {point.connections} connections"


def _look(cluster: Cluster) -> Sample:
    """What the services and sinkbench itself have used so far; as far as they can be asked."""
    used: Mapping[str, float | None] = {}
    signs: Mapping[str, float] = {}
    with suppress(ServiceError, OSError):
        found = cluster.stack.usage()
        used, signs = found.cpu_seconds, usage_signs(found)
    own = {CONTROLLER: time.process_time()} if used else {}
    nothing = (None, None, None, None, None, None, None)
    return Sample(time.monotonic(), *nothing, cpu_seconds={**used, **own}, signs=signs)
