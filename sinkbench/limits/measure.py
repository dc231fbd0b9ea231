"""Measures a run's limits: once between its pilots and first block, and those of sinks again in each block."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from loadgen.forms import Form
from sinkbench.analysis.limits import CONNECT, KAFKA
from sinkbench.analysis.rates import drain_rate
from sinkbench.analysis.words import percent
from sinkbench.errors import ServiceError, TrialFailed
from sinkbench.limits.clients import Consume, consume_as_group
from sinkbench.limits.sinklimit import sink_limit, sink_limit_again
from sinkbench.limits.tune import Measured, Point, Tuned, step_up
from sinkbench.plan.cells import Cell
from sinkbench.plan.sizing import least_records
from sinkbench.results import Limit, LimitInBlock
from sinkbench.services.causes import failure
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import group_of
from sinkbench.services.worker import WorkerFailed
from sinkbench.sinks import Destination, sink_kind
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning
from sinkbench.trial.resources import Observer

DROP = "sinkbench_drop"
POLL_SECONDS = 0.1
COMMIT_MS = 200
TOO_SHORT = "the topic was read too fast to be measured; a larger record_bytes would take longer"

Tell = Callable[[int, int], None]
"""Gets the number of records read so far, and of all."""


@dataclass
class _Progress:
    """Records read from a topic over time, until all are read or progress stalls."""

    total: int
    stall_seconds: float
    tell: Tell
    times: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    moved: float = field(default_factory=time.monotonic)

    def see(self, at: float, count: int) -> bool:
        """Takes a reading; returns whether to go on."""
        if not self.counts or count > self.counts[-1]:
            self.moved = time.monotonic()
        self.times.append(at)
        self.counts.append(count)
        self.tell(min(count, self.total), self.total)
        return count < self.total and time.monotonic() - self.moved < self.stall_seconds

    def measured(self) -> Measured:
        """The rate between 10 % and 90 % of the records, as in a trial, or why there is none."""
        reached = self.counts[-1] if self.counts else 0
        if reached != self.total:
            return Measured(None, f"{reached:,} of {self.total:,} records were read")
        rate = drain_rate(self.times, self.counts, self.total)
        return Measured(None, TOO_SHORT) if rate is None else Measured(round(rate, 1))


def kafka_limit(cluster: Cluster, names: Names, records: int, consumers: int, tell: Tell) -> Measured:
    """The rate of a group of `consumers` processes that read a topic of `records`."""
    endpoints = cluster.stack.endpoints
    progress = _Progress(records, cluster.plan.drain.stall_seconds, tell)
    group = group_of(names.connector)
    what = Consume(names.topic, group, {**endpoints.kafka_settings, "bootstrap.servers": endpoints.kafka})

    def clean() -> None:
        cluster.kafka.wait_until_empty(group)
        cluster.kafka.delete_group(group)

    with cleaning(clean):
        try:
            consume_as_group(what, consumers, cluster.plan.load.partitions, progress.see)
            return progress.measured()
        except (WorkerFailed, ServiceError) as error:
            return Measured(None, in_one_line(error))


def dropping(config: dict[str, str]) -> dict[str, str]:
    """A connector's configuration with Connect's `Filter` as last transform, which drops every record. The worker
    polls, converts and transforms, and the connector has nothing to write."""
    transforms = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    return {
        **config,
        "transforms": ",".join([*transforms, DROP]),
        f"transforms.{DROP}.type": "org.apache.kafka.connect.transforms.Filter",
        # Without a sink, progress is the committed offset, which by default changes only every few seconds.
        "consumer.override.enable.auto.commit": "true",
        "consumer.override.auto.commit.interval.ms": str(COMMIT_MS),
    }


def connect_limit(cluster: Cluster, cell: Cell, names: Names, records: int, tell: Tell) -> Measured:
    """The rate at which a cell's tasks read and drop a topic of `records`."""
    progress = _Progress(records, cluster.plan.drain.stall_seconds, tell)
    group = group_of(names.connector)

    def clean() -> None:
        cluster.stop_connector(names.connector, group)
        cluster.kafka.delete_group(group)

    with cleaning(clean):
        try:
            cluster.connect.create(names.connector, dropping(cluster.config(cell, names)))
            while progress.see(time.monotonic(), cluster.kafka.committed(group, names.topic)):
                time.sleep(POLL_SECONDS)
            measured = progress.measured()
            if measured.records_per_second is not None:
                return measured
            status = cluster.connect.status(names.connector)
            return Measured(None, (None if status is None else failure(status, {})) or measured.problem)
        except ServiceError as error:
            return Measured(None, in_one_line(error))


# The topic that Kafka's and Connect's limits read: enough for some seconds, with bounded disk space.
TOPIC_RECORDS = 2_000_000
TOPIC_BYTES = 1_200_000_000


@dataclass(frozen=True)
class LimitJob:
    """One limit to measure; `sink` and `way` are as in `Limit`. `search` finds the setting with the highest rate.
    `again` measures a found setting once more; it is None for limits that are measured once per run."""

    sink: str
    way: str
    search: Callable[[Observer], Tuned]
    again: Callable[[Point, Observer], Measured] | None = None

    @property
    def name(self) -> str:
        """Name in progress messages, such as `limit of postgres by COPY`."""
        return f"limit of {self.sink} by {self.way}"

    def run(self, observer: Observer) -> Limit:
        """Measures the limit and cleans up. A limit that cannot be measured has no rate, and the reason as its note."""
        try:
            found = self.search(observer)
        except (TrialFailed, ServiceError) as error:
            return Limit(sink=self.sink, way=self.way, note=in_one_line(error))
        if found.best is None:
            problem = next((step.problem for step in found.path if step.problem is not None), None)
            return Limit(sink=self.sink, way=self.way, path=found.path, note=problem or "nothing was stored")
        best = found.best.model_dump(include={"records_per_second", "connections", "batch"})
        return Limit(sink=self.sink, way=self.way, path=found.path, **best)

    def in_block(self, limit: Limit, block: int, most_compiling: float, observer: Observer) -> LimitInBlock:
        """Measures the found setting of `limit` once more between the trials of a block, and cleans up. The result has
        a problem instead of a rate if the sink rejected records or stores another number than it acknowledged, or
        compiling took more than the share `most_compiling` of the CPU time."""
        if self.again is None or not (limit.batch and limit.connections):
            raise ValueError(f"{self.name} is not measured in blocks")
        try:
            found = self.again(Point(limit.batch, limit.connections), observer)
        except (TrialFailed, ServiceError) as error:
            found = Measured(None, in_one_line(error))
        problem = found.problem
        if found.compiling_share is not None and found.compiling_share > most_compiling:
            problem = problem or f"not warm: {percent(found.compiling_share)} of the CPU time went into compiling"
        if problem is None and not found.records_per_second:
            problem = "nothing was stored"
        if problem is not None:
            return LimitInBlock(block=block, problem=problem)
        costs = dict(found.cpu_seconds_per_million)
        return LimitInBlock(block=block, records_per_second=found.records_per_second, cpu_seconds_per_million=costs)


def jobs(cluster: Cluster, cells: Sequence[Cell], token: str) -> list[LimitJob]:
    """The limits of Kafka, Connect, and each way to write to each sink; `token` names what they create."""
    reading = Names.of(f"{token}_limit")
    # Any pipeline will do for Connect's limit: its connector gets no records.
    lead = {cell.tasks: cell for cell in reversed(cells) if cell.label == cells[0].label}
    numbers, form = sorted(lead), cells[0].form
    sinks = dict.fromkeys(cell.sink for cell in cells)

    def stepped(by: str, measure: Callable[[int, int, Observer], Measured], observer: Observer) -> Tuned:
        with _topic(cluster, reading, form, observer) as records:
            observer.phase(f"reading by {by}")
            return step_up(lambda number: measure(number, records, observer), numbers)

    def kafka(number: int, records: int, observer: Observer) -> Measured:
        return kafka_limit(cluster, reading, records, number, observer.progress)

    def connect(number: int, records: int, observer: Observer) -> Measured:
        return connect_limit(cluster, lead[number], reading, records, observer.progress)

    return [
        LimitJob(KAFKA, "consumer group", lambda observer: stepped("a plain consumer group", kafka, observer)),
        LimitJob(CONNECT, cells[0].label, lambda observer: stepped("Connect", connect, observer)),
        *(_sink_job(cluster, sink, way, token) for sink in sinks for way in sink_kind(sink).writers),
    ]


def _sink_job(cluster: Cluster, sink: str, way: str, token: str) -> LimitJob:
    to = Destination(sink, way, Names.of(f"{token}_limit_{way.lower()}").target, cluster.stack.endpoints.sinks[sink])
    return LimitJob(
        sink,
        way,
        lambda observer: sink_limit(cluster, to, observer.phase),
        lambda point, observer: sink_limit_again(cluster, to, point, observer.phase),
    )


@contextmanager
def _topic(cluster: Cluster, names: Names, form: Form, observer: Observer) -> Iterator[int]:
    """Loads a topic, yields its number of records, and removes it. Raises TrialFailed or StackError."""
    size = cluster.value_bytes(form)
    records = max(min(TOPIC_RECORDS, int(TOPIC_BYTES / size)), least_records(size))
    cluster.check_disk(records, form=form)
    with cleaning(lambda: cluster.kafka.delete_topic(names.topic)):
        observer.phase("loading the topic")
        cluster.load(names, records, lambda done: observer.progress(done, records), {"form": form})
        yield records
