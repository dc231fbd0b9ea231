"""Measures a run's limits: once between its pilots and first block, and those of sinks and connectors in each block."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from loadgen.forms import Form
from sinkbench.analysis.connectors import transforms
from sinkbench.analysis.limits import CONNECT, CONNECTOR, KAFKA
from sinkbench.analysis.rates import drain_rate
from sinkbench.analysis.samples import Sample
from sinkbench.analysis.words import percent
from sinkbench.errors import ServiceError, TrialFailed
from sinkbench.limits.clients import consume_as_group
from sinkbench.limits.sinklimit import look, sink_limit, sink_limit_again
from sinkbench.limits.tune import TOO_SHORT, Measured, Point, Tuned, lengthen, step_up, with_costs
from sinkbench.plan.cells import Cell
from sinkbench.plan.sizing import least_records, records_for
from sinkbench.results import Limit, LimitInBlock
from sinkbench.services.causes import failure
from sinkbench.services.consumers import Consume
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import group_of
from sinkbench.services.worker import WorkerFailed
from sinkbench.sinks import Destination, needed, sink_kind
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning
from sinkbench.trial.observer import Observer
from sinkbench.trial.resources import Resources, create_target

DROP = "sinkbench_drop"
POLL_SECONDS = 0.05
COMMIT_MS = 100

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


def committing(config: dict[str, str]) -> dict[str, str]:
    """A connector's configuration whose progress is the committed offset, which by default changes only every few
    seconds: its consumers commit what they have handed on."""
    return {
        **config,
        "consumer.override.enable.auto.commit": "true",
        "consumer.override.auto.commit.interval.ms": str(COMMIT_MS),
    }


def dropping(config: dict[str, str]) -> dict[str, str]:
    """A connector's configuration with Connect's `Filter` as last transform, which drops every record. The worker
    polls, converts and transforms, and the connector has nothing to write."""
    return {
        **committing(config),
        "transforms": ",".join([*transforms(config), DROP]),
        f"transforms.{DROP}.type": "org.apache.kafka.connect.transforms.Filter",
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
            return _measured(progress, cluster, names)
        except ServiceError as error:
            return Measured(None, in_one_line(error))


def _measured(progress: _Progress, cluster: Cluster, names: Names) -> Measured:
    """The rate of a connector, or why there is none: why a task failed, if one did."""
    measured = progress.measured()
    if measured.records_per_second is not None:
        return measured
    status = cluster.connect.status(names.connector)
    return Measured(None, (None if status is None else failure(status, {})) or measured.problem)


def connector_limit(own: Resources) -> Measured:
    """The rate at which a cell's connector reads a topic of `own.records` and writes it into a target that keeps
    nothing, with its costs from the first commit on. Makes and removes all of them. No rate if a record was kept."""
    cluster, names, target = own.cluster, own.names, own.names.target
    progress = _Progress(own.records, cluster.plan.drain.stall_seconds, own.observer.progress)
    cluster.check_disk(own.records, form=own.cell.form)
    began = 0
    before: Sample | None = None
    with cleaning(own.remove):
        try:
            # What is left if a service died in the last measurement.
            own.remove()
            own.observer.phase("loading the topic")
            own.load_topic(progress=lambda done: own.observer.progress(done, own.records))
            create_target(own)
            needed(own.sink.capabilities.discarding, "discarding").discard(target)
            own.observer.phase("writing what is not kept")
            cluster.connect.create(names.connector, committing(own.config))
            while progress.see(time.monotonic(), own.consumed()):
                if before is None and progress.counts[-1]:
                    began, before = progress.counts[-1], look(cluster)
                time.sleep(POLL_SECONDS)
            after, measured = look(cluster), _measured(progress, cluster, names)
            own.sink.settle(target)
            if kept := own.sink.count(target):
                return Measured(None, f"{kept:,} records are stored in {target}, which should keep none")
        except ServiceError as error:
            return Measured(None, in_one_line(error))
        if measured.records_per_second is None or before is None:
            return measured
        return with_costs(measured.records_per_second, before, after, own.records - began)


# The topic that Kafka's and Connect's limits read: enough for some seconds, with bounded disk space.
TOPIC_RECORDS = 2_000_000
TOPIC_BYTES = 1_200_000_000
# How long a connector alone should take: it is measured in every block.
CONNECTOR_SECONDS = 3.0


@dataclass(frozen=True)
class LimitJob:
    """One limit to measure; `sink` and `way` are as in `Limit`. `search` finds the setting with the highest rate.
    `again` measures a found setting once more; None: once a run is enough. `cells` are those with its connector."""

    sink: str
    way: str
    search: Callable[[Observer], Tuned]
    again: Callable[[Point, Observer], Measured] | None = None
    cells: tuple[str, ...] = ()
    record_bytes: int | None = None

    @property
    def name(self) -> str:
        """Name in progress messages, such as `limit of postgres by COPY`."""
        return f"limit of {self.sink} by {self.way}"

    def run(self, observer: Observer) -> Limit:
        """Measures the limit and cleans up. A limit that cannot be measured has no rate, and the reason as its note."""
        limit = Limit(sink=self.sink, way=self.way, cells=list(self.cells), record_bytes=self.record_bytes)
        try:
            found = self.search(observer)
        except (TrialFailed, ServiceError) as error:
            return limit.model_copy(update={"note": in_one_line(error)})
        if found.best is None:
            problem = next((step.problem for step in found.path if step.problem is not None), None)
            return limit.model_copy(update={"path": found.path, "note": problem or "nothing was stored"})
        best = found.best.model_dump(include={"records_per_second", "connections", "batch"})
        return limit.model_copy(update={"path": found.path, **best})

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
        rate, cpu, figures = found.records_per_second, dict(found.cpu_seconds_per_million), dict(found.figures)
        return LimitInBlock(block=block, records_per_second=rate, cpu_seconds_per_million=cpu, figures=figures)


def jobs(cluster: Cluster, cells: Sequence[Cell], token: str, rate: Callable[[Cell], float]) -> list[LimitJob]:
    """The limits of Kafka, Connect, each connector, and each way to write to each sink; `token` names what they create,
    and `rate` gives a cell's records per second as far as known."""
    reading = Names.of(f"{token}_limit")
    # Any pipeline will do for Connect's limit: its connector gets no records.
    lead = {cell.tasks: cell for cell in reversed(cells) if cell.label == cells[0].label}
    numbers, form, kafka = sorted(lead), cells[0].form, partial(kafka_limit, cluster, reading)
    sinks = dict.fromkeys(cell.sink for cell in cells)

    def stepped(by: str, measure: Callable[[int, int, Tell], Measured], observer: Observer) -> Tuned:
        with _topic(cluster, reading, form, observer) as records:
            observer.phase(f"reading by {by}")
            return step_up(lambda number: measure(records, number, observer.progress), numbers)

    def connect(records: int, number: int, tell: Tell) -> Measured:
        return connect_limit(cluster, lead[number], reading, records, tell)

    return [
        LimitJob(KAFKA, "consumer group", partial(stepped, "a plain consumer group", kafka)),
        LimitJob(CONNECT, cells[0].label, partial(stepped, "Connect", connect)),
        *connector_jobs(cluster, cells, Names.of(f"{token}_limit_connector"), rate),
        *(_sink_job(cluster, sink, way, token) for sink in sinks for way in sink_kind(sink).writers),
    ]


def connector_jobs(
    cluster: Cluster, cells: Sequence[Cell], names: Names, rate: Callable[[Cell], float]
) -> Iterator[LimitJob]:
    """One job for each connector whose sink has the capability: some cells differ in their target alone."""
    alike: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        if cell.mode == "drain" and cell.before is None and cluster.sink(cell.sink).capabilities.discarding is not None:
            overrides = tuple(sorted(cell.overrides.items()))
            alike.setdefault((cell.pipeline, overrides, cell.workers, cell.tasks, cell.form), []).append(cell)
    for each in alike.values():
        yield _connector_job(each, cluster, names, rate)


def _connector_job(alike: Sequence[Cell], cluster: Cluster, names: Names, rate: Callable[[Cell], float]) -> LimitJob:
    cell = alike[0]
    size = cluster.value_bytes(cell.form)
    bounds = least_records(size), min(TOPIC_RECORDS, int(TOPIC_BYTES / size))

    def measure(point: Point, observer: Observer) -> Measured:
        return connector_limit(Resources(cluster, cell, names, point.batch, observer))

    def search(observer: Observer) -> Tuned:
        def at(records_per_second: float) -> Point:
            return Point(records_for(records_per_second, CONNECTOR_SECONDS, *bounds), cell.tasks)

        return lengthen(lambda point: measure(point, observer), at, rate(cell))

    return LimitJob(CONNECTOR, cell.key, search, measure, tuple(each.key for each in alike))


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
