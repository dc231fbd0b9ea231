"""What the steps of a trial find: each step returns one of these, and the next steps read it. Nothing here changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loadgen.forms import DOCUMENT, Form
from sinkbench.analysis.deadletters import DeadLetter
from sinkbench.analysis.replication import Broken, ReplicationState
from sinkbench.analysis.samples import Sample
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.plan.sections import Acks
from sinkbench.results import Act, Asked, Audit, Bloat, Durability, Reason
from sinkbench.services.connect import ConnectorStatus
from sinkbench.sinks import Arrivals, SinkBloat, SinkPooling
from sinkbench.trial.others import Others
from sinkbench.trial.readprocess import Told

__all__ = [
    "After",
    "Audited",
    "Before",
    "Faulted",
    "Loaded",
    "Measured",
    "Policy",
    "Queue",
    "Replication",
    "Rescaled",
    "Stopped",
    "Target",
    "Timeline",
    "TopicLoad",
    "policy_of",
]


@dataclass(frozen=True)
class Policy:
    """What differs in a trial in which something is broken on purpose.

    Attributes:
        judges_pipeline: whether FAILED or uneven tasks, unread records, losses, dead letters and copies that are not
            in sync in the end are reasons against the trial's figures. Under a fault they are what it measures.
        audits_unread: whether a topic is audited that was not read to its end: what never came is then lost.
        counters_go_on: whether counters of services and tasks hold for the whole trial; those that were started again
            begin anew.
        shares_sink: whether connections that are left in the end are others'; else the connector has left them open.
    """

    judges_pipeline: bool = True
    audits_unread: bool = False
    counters_go_on: bool = True
    shares_sink: bool = True


def policy_of(cell: Cell) -> Policy:
    """The policy of a cell's trials."""
    return Policy() if cell.fault is None else Policy(False, True, False, False)


@dataclass(frozen=True)
class TopicLoad:
    """What a topic is to be loaded with: N records of a form, at a rate per second or as fast as possible.

    `acks` says who must acknowledge them; None: as the plan's load says.
    """

    records: int
    form: Form = DOCUMENT
    rate: float | None = None
    acks: Acks | None = None


@dataclass(frozen=True)
class Loaded:
    """A trial's topic after its load: records that were sent, acknowledged and are in it, and its partitions.

    Attributes:
        records_per_second: acknowledged records over the time that the load took.
        in_time: records sent by the time that the last one was due; None of a load without a rate.
    """

    sent: int
    acknowledged: int
    in_topic: int
    partitions: int
    partitions_with_records: int
    records_per_second: float
    in_time: int | None = None


@dataclass(frozen=True)
class Target:
    """The trial's index or table, before its first record.

    Attributes:
        notes: what the sink says of it, for a person.
        disk_bytes: what it takes on disk, with the rows before; None if that is not known.
    """

    notes: Sequence[str] = ()
    disk_bytes: int | None = 0


@dataclass(frozen=True)
class Replication:
    """One look at what must hold in the sink and of the topic; see `sinkbench.trial.replication`."""

    of_sink: ReplicationState | None = None
    of_topic: ReplicationState | None = None
    unchecked: Sequence[str] = ()

    @property
    def broken(self) -> list[Broken]:
        """What does not hold."""
        return [each for state in (self.of_sink, self.of_topic) if state is not None for each in state.broken]


@dataclass(frozen=True)
class Queue:
    """The connector's dead letter queue, and where its partitions ended before the trial; no name: it has none."""

    name: str | None = None
    since: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Before:
    """What was read before the connector started, in turn; None is what is not known."""

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
    """When another number of tasks was asked for, and when they all had their partitions, on the samples' clock."""

    asked: float | None = None
    settled: float | None = None


@dataclass(frozen=True)
class Faulted:
    """What was broken in a trial.

    Attributes:
        target: names of what was broken.
        began, ended: on the samples' clock; None if it did not.
        too_late: whether everything was stored before.
        recovered: whether in the end all records were read, and no task was FAILED.
        acts: what was done about a pipeline that did not recover.
        poisoned: bad records that were put into the topic.
    """

    target: str = ""
    began: float | None = None
    ended: float | None = None
    too_late: bool = False
    recovered: bool = False
    acts: Sequence[Act] = ()
    poisoned: int = 0


@dataclass(frozen=True)
class Timeline:
    """What happened while the connector ran; `loaded`, `reads`, `rescaled` and `faulted` are what a workload did.

    Attributes:
        samples: oldest first.
        from_us: when second 0 of the samples was, in microseconds since the epoch.
        connector: the connector's class.
        created: whether the connector may have been created.
        placement: tasks of each worker when all had started, or failed to; None if that was not seen.
        last: the connector in the end; None if that was not read.
        reasons: why the figures must not be used, where the run came to its end.
        failed: what ended it early.
    """

    samples: Sequence[Sample] = ()
    from_us: int = 0
    connector: str | None = None
    created: bool = False
    placement: Mapping[str, int] | None = None
    last: ConnectorStatus | None = None
    reasons: Sequence[Reason] = ()
    failed: Exception | None = None
    loaded: Loaded | None = None
    reads: Told | None = None
    rescaled: Rescaled | None = None
    faulted: Faulted | None = None

    @property
    def failed_tasks(self) -> int:
        """Tasks that were FAILED in the end."""
        return 0 if self.last is None else len(self.last.failed)

    @property
    def out_of_memory(self) -> bool:
        """Whether a task has FAILED since its worker had no memory left."""
        return self.last is not None and self.last.out_of_memory > 0

    @property
    def poisoned(self) -> int:
        """Bad records that were put into the topic."""
        return 0 if self.faulted is None else self.faulted.poisoned


@dataclass(frozen=True)
class Stopped:
    """What was read when the connector was stopped: tasks gone, group empty. None is what is not known.

    Attributes:
        task_metrics: the last signs of the tasks, read just before.
        others: other clients from `Before` until just before, a phrase each.
        consumed: sum of the committed offsets.
        unattributed: connections that came while the connector ran, and were there without it.
        refusal: why a connection like the connector's does not come about.
    """

    task_metrics: Mapping[str, float] = field(default_factory=dict)
    others: Sequence[str] = ()
    consumed: int | None = None
    unattributed: int | None = None
    refusal: str | None = None


@dataclass(frozen=True)
class Audited:
    """What the audit found; `audit` is None if there was none, and `why_not` says why, where that is known.

    Attributes:
        replication: the last look at what must hold.
        diverted: why what the connector writes does not reach the target; None if it does.
        letters: dead letters of the trial's records; None if the queue was not read.
        content_notes: what is to be said of the comparison with what was sent.
        refused: what the sink says of a lost record that is written to it from here.
        lost_ranges, duplicated_ranges, altered_ranges: of `seq`.
        wrong_keys: first keys that are stale, missing or not deleted.
    """

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
    """What was read after the audit; None is what is not known. `notes` say what could not be read, and why."""

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
    """All that a trial has found so far, step by step: what each figure is made of.

    `loaded` is also the load that was offered while the connector ran; `cpu_limits` are cores by service.
    """

    trial: str
    cell: Cell
    plan: Plan
    records: int
    policy: Policy
    machine_cores: int | None = None
    cpu_limits: Mapping[str, float] = field(default_factory=dict)
    target: Target = Target()
    loaded: Loaded | None = None
    before: Before = Before()
    timeline: Timeline = Timeline()
    stopped: Stopped = Stopped()
    audited: Audited = Audited()
    after: After = After()

    @property
    def samples(self) -> Sequence[Sample]:
        """What was read while the connector ran, oldest first."""
        return self.timeline.samples

    @property
    def read_all(self) -> bool:
        """Whether the connector has committed every record."""
        return self.stopped.consumed is not None and self.stopped.consumed >= self.records

    @property
    def offered_share(self) -> float | None:
        """Share of the load that was sent in time; None where none was offered at a rate, or to its end."""
        if self.loaded is None or self.loaded.in_time is None or self.timeline.failed is not None:
            return None
        return self.loaded.in_time / self.records
