"""The limit of a sink: the rate at which plain clients write the same records to it, tuned until it no longer gains."""

from __future__ import annotations

from collections.abc import Callable

from sinkbench.bench import Bench, Names
from sinkbench.limits.cleaning import cleaning
from sinkbench.limits.clients import ClientFailed, Clients
from sinkbench.limits.orders import MakeRecords
from sinkbench.limits.tune import Measured, Point, Tuned, tune
from sinkbench.limits.writers import Destination
from sinkbench.plan import Load
from sinkbench.probes import CLIENT_ERRORS, in_one_line
from sinkbench.sinks import Sink
from sinkbench.stack import Endpoints

__all__ = ["SinkClient", "destination", "sink_limit"]

STEP_SECONDS = 2.5
CONFIRM_SECONDS = 5.0
FIRST_BATCH = 256
LARGEST_BATCH = 16_384
MOST_CONNECTIONS = 16
# What each connection has ready to send, again and again; far more than a sink compresses together.
POOL_BYTES = 16 << 20


def destination(endpoints: Endpoints, sink: str, way: str, target: str) -> Destination:
    """Where and how a plain client writes to a sink of a stack that has it."""
    if sink == "elasticsearch":
        alias, access = endpoints.elasticsearch_index, endpoints.elasticsearch_access
        return Destination(way, target, endpoints.elasticsearch or "", alias, access)
    return Destination(way, target, endpoints.postgres or "")


class SinkClient:
    """Plain clients of one sink, all of them with records of the plan's load."""

    def __init__(self, sink: Sink, to: Destination, load: Load) -> None:
        """
        Args:
            sink: makes and removes what is written to, and counts.
            to: where the clients write, and how.
            load: what the records are like.
        """
        pool = max(2, POOL_BYTES // load.record_bytes)
        self.largest_batch = min(LARGEST_BATCH, pool // 2)
        self._sink = sink
        self._to = to
        self._clients = Clients(MakeRecords(to.target, 0, pool, load.keys, load.record_bytes))

    def measure(self, point: Point, seconds: float) -> Measured:
        """Writes for so many seconds into a fresh index or table, which is removed however it ends.

        Returns:
            The records stored per second; none if the sink rejected a record, or holds another number of them than
            it has acknowledged.

        Raises:
            What the sink's own client raises, if the index or table cannot be removed.
        """
        with cleaning(self._clean):
            try:
                return self._measure(point, seconds)
            except ClientFailed as error:
                # What is left of them may still wait for something.
                self._clients.close()
                return Measured(None, str(error))
            except CLIENT_ERRORS as error:
                return Measured(None, in_one_line(error))
            except BaseException:
                # A client that still writes would keep PostgreSQL from dropping the table.
                self._clients.close()
                raise

    def _measure(self, point: Point, seconds: float) -> Measured:
        target = self._to.target
        self._sink.create(target)
        written = self._clients.write(self._to, point.batch, point.connections, seconds)
        problem = next((each.problem for each in written if each.problem is not None), None)
        if problem is not None:
            return Measured(None, problem)
        self._sink.settle(target)
        acknowledged, stored = sum(each.stored for each in written), self._sink.count(target)
        if stored != acknowledged:
            return Measured(None, f"{acknowledged:,} records were acknowledged, but {stored:,} are stored")
        return Measured(round(sum(each.in_time for each in written) / seconds, 1))

    def _clean(self) -> None:
        self._sink.drop(self._to.target)

    def close(self) -> None:
        """Ends the clients."""
        self._clients.close()


def sink_limit(
    bench: Bench,
    sink: str,
    way: str,
    names: Names,
    phase: Callable[[str], None],
    step_seconds: float = STEP_SECONDS,
    confirm_seconds: float = CONFIRM_SECONDS,
) -> Tuned:
    """Searches for the highest rate at which a sink takes the plan's records in one way.

    Args:
        bench: the stack and its plan.
        sink, way: what to measure; see `limits.writers.WAYS`.
        names: what the index or table is called.
        phase: is told what is measured.
        step_seconds, confirm_seconds: how long a step of the search is measured, and how long its result.

    Returns:
        What was found; the index or table is gone.
    """
    to = destination(bench.stack.endpoints, sink, way, names.target)
    client = SinkClient(bench.sink(sink), to, bench.plan.load)

    def measure(point: Point, confirms: bool) -> Measured:
        phase(f"{way} of {point.batch:,} records, {point.connections} connections{', for longer' if confirms else ''}")
        return client.measure(point, confirm_seconds if confirms else step_seconds)

    try:
        first = Point(min(FIRST_BATCH, client.largest_batch), 1)
        return tune(measure, first, Point(client.largest_batch, MOST_CONNECTIONS))
    finally:
        client.close()
