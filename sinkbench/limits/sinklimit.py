"""The limit of a sink: the rate at which plain clients write the same records to it."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from loadgen.options import Load
from sinkbench.analysis.samples import CONTROLLER, Sample
from sinkbench.errors import ServiceError
from sinkbench.limits.clients import Writers, rate_of
from sinkbench.limits.tune import Measured, Point, Tuned, tune, with_costs
from sinkbench.load.records import KeptRecords
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.failures import in_one_line
from sinkbench.services.worker import WorkerFailed
from sinkbench.sinks import Destination, Sink
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import cleaning
from sinkbench.trial.sampler import usage_signs

# Duration of a step of the search, and of the confirmation of its result.
STEP_SECONDS = 2.5
CONFIRM_SECONDS = 5.0
BLOCK_SECONDS = 2.0
"""Duration in each block. It is short: every way to write makes each of the many blocks longer."""
FIRST_BATCH = 256
LARGEST_BATCH = 16_384
MOST_CONNECTIONS = 16
# What each connection has ready and sends repeatedly; far more than a sink compresses together.
POOL_BYTES = 16 << 20


@dataclass(eq=False)
class SinkClient:
    """Plain clients of one sink, which write records of the plan's load, or your own `records`. `look` reads the
    services' usage so far, if costs are wanted."""

    sink: Sink
    to: Destination
    load: PlanLoad
    look: Callable[[], Sample] | None = None
    records: KeptRecords | None = None

    def __post_init__(self) -> None:
        load, own = self.load, self.records
        size, path = (load.record_bytes, None) if own is None else (own.facts.mean_bytes, own.path)
        pool = max(2, int(POOL_BYTES / size))
        self.largest_batch = min(LARGEST_BATCH, pool // 2)
        same: dict[str, Any] = {"keys": load.keys, "record_bytes": load.record_bytes}
        self._clients = Writers(Load(bootstrap="-", topic="-", run=self.to.target, count=pool, **same), path)

    def measure(self, point: Point, seconds: float) -> Measured:
        """Writes for `seconds` into a new index or table, which is always removed; returns records stored per second.
        There is no rate if the sink rejected a record, or stores another number than it acknowledged. Raises
        ServiceError if the index or table cannot be removed."""
        with cleaning(lambda: self.sink.drop(self.to.target)):
            try:
                return self._measure(point, seconds)
            except ServiceError as error:
                return Measured(None, in_one_line(error))
            except BaseException as error:
                # Clients that are left may wait for something, or keep a database from dropping the table.
                self._clients.close()
                if isinstance(error, WorkerFailed):
                    return Measured(None, str(error))
                raise

    def _measure(self, point: Point, seconds: float) -> Measured:
        target = self.to.target
        self.sink.create(target)
        self._clients.open(self.to, point.batch, point.connections)
        before = self.look and self.look()
        written = self._clients.write(point.connections, seconds)
        after = self.look and self.look()
        problem = next((each.problem for each in written if each.problem is not None), None)
        if problem is not None:
            return Measured(None, problem)
        self.sink.settle(target)
        acknowledged, stored = sum(each.stored for each in written), self.sink.count(target)
        if stored != acknowledged:
            return Measured(None, f"{acknowledged:,} records were acknowledged, but {stored:,} are stored")
        rate = round(rate_of(written), 1)
        if before is None or after is None:
            return Measured(rate)
        return with_costs(rate, before, after, stored, sum(each.cpu_seconds for each in written))

    def close(self) -> None:
        self._clients.close()


def sink_limit(cluster: Cluster, to: Destination, phase: Callable[[str], None]) -> Tuned:
    """Searches for the highest rate at which a sink takes the plan's records in one way; removes the index or table."""

    def measure(point: Point, confirms: bool) -> Measured:
        phase(f"{_in_words(to, point)}{', for longer' if confirms else ''}")
        return client.measure(point, CONFIRM_SECONDS if confirms else STEP_SECONDS)

    with closing(SinkClient(cluster.sink(to.sink), to, cluster.plan.load, records=cluster.records)) as client:
        first = Point(min(FIRST_BATCH, client.largest_batch), 1)
        return tune(measure, first, Point(client.largest_batch, MOST_CONNECTIONS))


def sink_limit_again(
    cluster: Cluster, to: Destination, point: Point, phase: Callable[[str], None], seconds: float = BLOCK_SECONDS
) -> Measured:
    """Measures a setting that a search found once more, with its costs, by clients that hold no memory afterwards."""
    phase(_in_words(to, point))
    reads = partial(look, cluster)
    with closing(SinkClient(cluster.sink(to.sink), to, cluster.plan.load, reads, cluster.records)) as client:
        return client.measure(point, seconds)


def _in_words(to: Destination, point: Point) -> str:
    return f"{to.way} of {point.batch:,} records, {point.connections} connections"


def look(cluster: Cluster) -> Sample:
    """Usage of the services and of sinkbench itself so far, as far as they answer."""
    used: Mapping[str, float | None] = {}
    signs: Mapping[str, float] = {}
    with suppress(ServiceError, OSError):
        found = cluster.stack.usage()
        used, signs = {**found.cpu_seconds, CONTROLLER: time.process_time()}, usage_signs(found)
    return Sample(time.monotonic(), None, cpu_seconds=used, signs=signs)
