"""Immutable results of the steps of a trial, which the next steps read; None is not known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import NamedTuple

from loadgen.summary import ClockOffset
from sinkbench.analysis.deadletters import DeadLetter
from sinkbench.analysis.replication import Broken, ReplicationState
from sinkbench.analysis.samples import Sample
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.results import Act, Asked, Audit, Bloat, Durability, Reason
from sinkbench.services.connect import ConnectorStatus
from sinkbench.sinks import Arrivals, SinkBloat, SinkPooling
from sinkbench.trial.names import Names
from sinkbench.trial.reads import Told

# A smaller share of a trial's records changes no figure. Fewer records are no load, however short the trial:
# Connect itself writes about fifty into its own topics.
MUCH, LEAST = 0.01, 1_000


@dataclass(frozen=True)
class Others:
    """Other clients at one moment.

    `topics` and `tables` count records written so far; `connections` lacks sinks where they cannot be seen."""

    connectors: Mapping[str, int]
    topics: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)
    connections: Mapping[str, int] = field(default_factory=dict)


def met(before: Others, after: Others, records: int, is_own: Callable[[str], bool] = lambda topic: False) -> list[str]:
    """Returns the other clients between two readings, a phrase each.

    Args:
        records: how many the trial has stored; others' writes count from `MUCH` of these, and `LEAST`, on.
        is_own: whether a topic is the trial's dead letter queue or Connect's status topic. A fast task writes some
            thousand times to the status topic that it uses a topic, until it has read its own message."""
    found = []
    for name in dict.fromkeys([*before.connectors, *after.connectors]):
        count = max(each.connectors.get(name, 0) for each in (before, after))
        found.append(f"another connector, {name}, ran {count} {'task' if count == 1 else 'tasks'} on these workers")
    much = max(MUCH * records, LEAST)
    topics = {name: count for name, count in risen(before.topics, after.topics).items() if count >= much}
    found += [f"{count:,} records went into the topic {name}" for name, count in topics.items() if not is_own(name)]
    tables = risen(before.tables, after.tables).items()
    return [*found, *(f"{count:,} records went into {name}" for name, count in tables if count >= much)]


def risen(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    found = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in found.items() if count > 0}


class Pace(NamedTuple):
    """Records per second, None: at once; what ends a load early; and whether a key's records come in order of `seq`."""

    rate: float | None = None
    stop: Event | None = None
    in_order: bool = False


AT_ONCE = Pace()


@dataclass(frozen=True)
class Loaded:
    """A trial's topic after its load. `in_time` counts records sent by the time when the last one was due."""

    sent: int
    acknowledged: int
    in_topic: int
    partitions: int
    partitions_with_records: int
    records_per_second: float
    in_time: int | None = None
    clocks: Sequence[ClockOffset] = ()
    cpu_seconds: float = 0.0
    """Of the load generators."""


@dataclass(frozen=True)
class Replication:
    of_sink: ReplicationState | None = None
    of_topic: ReplicationState | None = None
    unchecked: Sequence[str] = ()

    @property
    def broken(self) -> list[Broken]:
        return [each for state in (self.of_sink, self.of_topic) if state is not None for each in state.broken]


@dataclass(frozen=True)
class Queue:
    """The connector's dead letter queue, if it has one, and its end offsets before the trial."""

    name: str | None = None
    since: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Before:
    """Readings before the connector starts."""

    queue: Queue = Queue()
    writes: int | None = None
    connection_limit: int | None = None
    pooling: SinkPooling | None = None
    bloat: SinkBloat | None = None
    others: Others | None = None
    replication: Replication = Replication()
    durability: Durability | None = None


@dataclass(frozen=True)
class Rescaled:
    """When another number of tasks was requested and when all had their partitions, on the samples' clock."""

    asked: float | None = None
    settled: float | None = None


@dataclass(frozen=True)
class Faulted:
    """The fault of a trial, on the samples' clock. `too_late`: everything was stored before. `recovered`: in the end
    all records were read and no task was FAILED. `acts` are requests to a pipeline that did not recover by itself.
    `moved` is the address of another primary, `names` are those of a renamed connector."""

    target: str = ""
    began: float | None = None
    ended: float | None = None
    too_late: bool = False
    recovered: bool = False
    acts: Sequence[Act] = ()
    poisoned: int = 0
    moved: tuple[str, int] | None = None
    names: Names | None = None


@dataclass(frozen=True)
class Timeline:
    """What happened while the connector ran; the workload fills `loaded`, `reads`, `read`, `rescaled`, `faulted`.

    `from_us` is second 0 of the samples, in microseconds since the epoch. `created`: the connector may exist.
    `placement` are tasks per worker when each had started or failed. `failure` is why tasks FAILED.
    `reasons` are those against the figures of a complete run, and `failed` is the error that ended it early."""

    samples: Sequence[Sample] = ()
    from_us: int = 0
    connector: str | None = None
    created: bool = False
    placement: Mapping[str, int] | None = None
    last: ConnectorStatus | None = None
    failure: str | None = None
    reasons: Sequence[Reason] = ()
    failed: Exception | None = None
    loaded: Loaded | None = None
    reads: Told | None = None
    read: Sequence[int] = ()
    """Records that each further consumer group has read."""
    rescaled: Rescaled = Rescaled()
    faulted: Faulted = Faulted()

    @property
    def failed_tasks(self) -> int:
        return 0 if self.last is None else len(self.last.failed)


@dataclass(frozen=True)
class Stopped:
    """Readings around the stop of the connector. `task_metrics` are the last ones before it, `unattributed` counts
    connections that were opened during the run and remain."""

    task_metrics: Mapping[str, float] = field(default_factory=dict)
    others: Sequence[str] = ()
    consumed: int | None = None
    unattributed: int | None = None


@dataclass(frozen=True)
class Audited:
    """Result of the audit; without one, `why_not` says why if known. `diverted` is why the connector's records do not
    reach the target, `refused` the sink's error for a lost record that was written to it directly."""

    audit: Audit | None = None
    why_not: str = ""
    replication: Replication | None = None
    diverted: str | None = None
    letters: Sequence[DeadLetter] | None = None
    content_notes: Sequence[str] = ()
    refused: str | None = None
    lost_ranges: str = ""
    duplicated_ranges: str = ""
    altered_ranges: str = ""
    wrong_keys: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class After:
    """Readings after the audit. `notes` say what could not be read, and why."""

    records_per_write: float | None = None
    stamped_records_per_second: float | None = None
    arrivals: Arrivals | None = None
    idle_reads: Told | None = None
    notes: Sequence[str] = ()
    bloat: Bloat | None = None
    disk_bytes_per_record: float | None = None
    queries: Sequence[Asked] = ()


@dataclass(frozen=True)
class Measured:
    """Everything that a trial has found so far; `cpu_limits` are cores by service, `bytes_before` those of the rows
    before the trial in its index or table."""

    trial: str
    cell: Cell
    plan: Plan
    records: int
    machine_cores: int | None = None
    cpu_limits: Mapping[str, float] = field(default_factory=dict)
    notes_of_target: Sequence[str] = ()
    bytes_before: int | None = 0
    loaded: Loaded | None = None
    before: Before = Before()
    timeline: Timeline = Timeline()
    stopped: Stopped = Stopped()
    audited: Audited = Audited()
    after: After = After()

    @property
    def samples(self) -> Sequence[Sample]:
        return self.timeline.samples

    @property
    def has_fault(self) -> bool:
        """Then failed tasks, losses and replicas out of sync are the result, and no reasons against the figures; what
        is missing of a topic that was not read to its end is lost; counters may have been reset by a restart; and
        connections that remain were left open by the connector."""
        return self.cell.fault is not None

    @property
    def read_all(self) -> bool:
        return self.stopped.consumed is not None and self.stopped.consumed >= self.records

    @property
    def offered_share(self) -> float | None:
        """Share of the load that was sent in time; None without a rate, or if the load did not end."""
        if self.loaded is None or self.loaded.in_time is None or self.timeline.failed is not None:
            return None
        return self.loaded.in_time / self.records
