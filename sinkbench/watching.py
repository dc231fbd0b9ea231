"""What the kinds of trials share: a connector watched from its start to its end, and a record made of what was seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from sinkbench.bench import Bench, Loaded, Names
from sinkbench.causes import cause_of
from sinkbench.cells import Cell
from sinkbench.connect import ConnectorStatus, is_even, placement
from sinkbench.errors import ConnectError, TrialFailed
from sinkbench.evidence import Circumstances, evidence_of
from sinkbench.probes import CLIENT_ERRORS, Sample, in_one_line
from sinkbench.reconcile import Disagreement, reconcile
from sinkbench.results import Audit, Bottleneck, Connections, Reconciliation, TrialRecord
from sinkbench.sinks import Sink
from sinkbench.watch import DrainWatch, End, Limits, connection_peaks, cpu_seconds_per_million, rejected_writes, used_up

__all__ = ["Observer", "Watched", "bottleneck", "check_loaded", "finish", "record_of", "reset_sink", "watch"]

# A sampler that says nothing for so long hangs in a request to a service that is gone.
SILENCE_SECONDS = 30.0


class Observer(Protocol):
    """Is told what a trial is doing, for a person who watches."""

    def phase(self, text: str) -> None:
        """The trial goes into another step."""
        ...

    def progress(self, done: int, total: int) -> None:
        """Records that are in the topic, or in the sink, so far."""
        ...

    def sample(self, sample: Sample) -> None:
        """One reading of everything, while the connector runs. Must return at once."""
        ...


@dataclass
class Watched:
    """What is known of a trial while it goes on."""

    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)
    sampling_since: float = 0.0
    """When second 0 of the samples was, by the monotonic clock."""
    samples_from_us: int = 0
    """The same in microseconds since the epoch."""
    placed: ConnectorStatus | None = None
    """When every task had started, or failed to."""
    last: ConnectorStatus | None = None
    """Just before the connector was deleted."""
    invalid: list[str] = field(default_factory=list)
    connection_limit: int | None = None
    loaded: Loaded | None = None
    consumed: int | None = None
    tasks: Mapping[str, float] = field(default_factory=dict)
    """What the metrics of all tasks said then; of those that ran last, if there were others before."""
    rescaled: bool = False
    """Whether there were."""
    writes: int | None = None
    """Writes that the sink had taken before the trial's own."""
    audit: Audit | None = None
    lost_ranges: str = ""
    records_per_write: float | None = None
    disagreements: list[Disagreement] = field(default_factory=list)
    offered_share: float | None = None
    """Share of the load that was sent in time; None where none was offered at a rate."""

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Takes what ends the steps of a trial early, other than an interrupt, for a reason why it is invalid."""
        try:
            yield
        except TrialFailed as error:
            self.invalid.append(str(error))
        except CLIENT_ERRORS as error:
            self.invalid.append(in_one_line(error))

    def counts(self) -> Reconciliation:
        """The same records at each step of their way."""
        return Reconciliation(
            sent=None if self.loaded is None else self.loaded.sent,
            acknowledged=None if self.loaded is None else self.loaded.acknowledged,
            in_topic=None if self.loaded is None else self.loaded.in_topic,
            consumed=self.consumed,
            # Tasks that are gone take their counts with them.
            put=None if self.rescaled or (put := self.tasks.get("tasks_put_total")) is None else round(put),
            stored=None if self.audit is None else self.audit.stored,
        )

    def cause(self) -> str | None:
        """Why tasks failed, if some did: what they say themselves, after what they may not know."""
        cause = None if self.last is None else self.last.cause()
        peak = used_up(self.samples, self.connection_limit)
        if cause is None or peak is None:
            return cause
        return (
            f"too many clients already, {peak} of the server's {self.connection_limit} connections are open ({cause})"
        )


def reset_sink(bench: Bench, cell: Cell, names: Names, records: int, observer: Observer) -> Sink:
    """The cell's sink with an empty target for the trial. Raises TrialFailed if so many records do not fit the disk."""
    bench.check_disk(records)
    sink = bench.sink(cell.sink)
    observer.phase("resetting the sink")
    sink.create(names.target)
    return sink


def watch(
    bench: Bench,
    cell: Cell,
    names: Names,
    records: int,
    watched: Watched,
    observer: Observer,
    limits: Limits,
    see: Callable[[Sample], None] = lambda sample: None,
    in_topic: Callable[[], int] | None = None,
) -> None:
    """Starts the connector and samples until everything is stored, progress stops, or the pilot's time is over.

    Args:
        bench, cell, names: what is measured.
        records: how many there are to store.
        watched: is told what is seen.
        observer: is told how far it is, and sees each sample.
        limits: when to give up.
        see: is called with each sample, in its turn; may raise TrialFailed.
        in_topic: how many records the topic holds at the moment; None if it holds all of them.

    Raises:
        TrialFailed: Connect refuses the connector, or the probes hang.
    """
    start = cell if cell.before is None else replace(cell, multiple=cell.before)
    watcher = DrainWatch(records, cell.tasks, limits)
    sampler = bench.sampler(cell, names, records, in_topic)
    watched.samples_from_us, watched.sampling_since = sampler.start(), time.monotonic()
    try:
        bench.connect.create(names.connector, bench.config(start, names))
        end: End | None = None
        # Connect may have been rebalancing for a while before it took the connector; no progress was due in that time.
        seen = len(sampler.samples)
        while end is None:
            fresh = sampler.wait(seen, SILENCE_SECONDS)
            if not fresh:
                raise TrialFailed(f"the probes have had no answer for {SILENCE_SECONDS:.0f} s")
            seen += len(fresh)
            observer.progress(min(fresh[-1].stored or 0, records), records)
            if watched.placed is None and _all_started(fresh[-1], start.tasks):
                watched.placed = bench.connect.status(names.connector)
            for sample in fresh:
                observer.sample(sample)
                see(sample)
            end = next((end for sample in fresh if (end := watcher.see(sample)) is not None), None)
        if end.dead:
            # Whatever is asked of it now would fail, or wait until its client gives up.
            raise TrialFailed(end.reason or "")
        watched.last = bench.connect.status(names.connector)
        # All may be stored before a sample has seen every task run.
        if watched.placed is None and watched.last is not None and watched.last.settled(cell.tasks):
            watched.placed = watched.last
        if end.reason is not None:
            watched.invalid.append(end.reason)
    except ConnectError as error:
        raise TrialFailed(str(error)) from None
    finally:
        sampler.stop()
        watched.samples = sampler.samples


def finish(bench: Bench, cell: Cell, names: Names, records: int, watched: Watched, observer: Observer) -> None:
    """Stops the connector, and audits what it has stored if it has come to the end of the topic."""
    observer.phase("stopping the connector")
    watched.tasks = bench.last_signs(names, records)
    bench.stop_connector(names)
    counts = {} if watched.placed is None else placement(watched.placed, bench.stack.endpoints.worker_ids)
    watched.consumed = bench.consumed(names)
    unread = _unread(watched.consumed, records)
    watched.invalid += _failures(cell, watched, counts)
    # What is wrong already explains why not everything was read.
    watched.invalid += [] if watched.invalid else unread
    diverted = bench.sink(cell.sink).diverted(names.target)
    if diverted:
        # Whatever else was seen follows from it.
        watched.invalid.insert(0, diverted)
    # Records that the connector has not come to yet, or has written elsewhere, are not lost: there is nothing to audit.
    if not unread and not diverted:
        observer.phase("auditing")
        counted = bench.audit(cell, names, records)
        watched.audit = counted.result()
        watched.lost_ranges = counted.lost_ranges()
        if watched.audit.foreign:
            watched.invalid.append(f"{watched.audit.foreign:,} rows in the sink are none of this trial's records")
        rejected = rejected_writes(watched.samples)
        if rejected and watched.audit.lost:
            # What else was seen follows from it.
            watched.invalid.insert(
                0, f"{cell.sink} rejected {rejected:,} writes meanwhile: what the connector does not send again is lost"
            )
        watched.disagreements = reconcile(watched.counts())
        # What is wrong already explains why counts differ.
        watched.invalid += [] if watched.invalid else [each.text for each in watched.disagreements if each.invalid]
    written = None if watched.writes is None else (bench.sink(cell.sink).writes(names.target) or 0) - watched.writes
    if written and watched.audit is not None and not watched.invalid:
        watched.records_per_write = round(watched.audit.stored / written, 2)


def record_of(
    bench: Bench, cell: Cell, names: Names, records: int, block: int, watched: Watched, **figures: Any
) -> TrialRecord:
    """The record of a trial: what all kinds of trials have, and the `figures` of its own kind."""
    clients, servers = connection_peaks(watched.samples)
    placed, last = watched.placed, watched.last
    return TrialRecord(
        trial=names.trial,
        block=block,
        **cell.identity(),
        started_at=watched.started_at.isoformat(timespec="milliseconds"),
        seconds=round(time.monotonic() - watched.started, 3),
        records=records,
        placement={} if placed is None else placement(placed, bench.stack.endpoints.worker_ids),
        failed_tasks=0 if last is None else len(last.failed),
        failure=watched.cause(),
        connections=Connections(clients_peak=clients, server_peak=servers, server_limit=watched.connection_limit),
        audit=watched.audit,
        cpu_seconds_per_million=cpu_seconds_per_million(watched.samples, records),
        reconciliation=watched.counts(),
        invalid=watched.invalid,
        records_per_write=watched.records_per_write,
        lost_ranges=watched.lost_ranges,
        **figures,
    )


def _all_started(sample: Sample, tasks: int) -> bool:
    return (sample.tasks_running or 0) + (sample.tasks_failed or 0) == tasks


def _failures(cell: Cell, watched: Watched, counts: Mapping[str, int]) -> list[str]:
    """The reasons to give if not every task ran to the end, or if they were spread unevenly over the workers."""
    last = watched.last
    if last is not None and last.failed:
        return [f"{len(last.failed)} of {cell.tasks} tasks FAILED: {watched.cause()}"]
    if sum(counts.values()) != cell.tasks:
        return [f"{cell.tasks} tasks were asked for, but not all of them started"]
    # Where the workers' ids are not known beforehand, one without a task is not among them.
    busy = sum(number > 0 for number in counts.values())
    if not is_even(counts) or busy < min(cell.workers, cell.tasks):
        return [f"the tasks are spread unevenly over the {cell.workers} workers: {dict(counts)}"]
    return []


def check_loaded(watched: Watched) -> None:
    """Raises TrialFailed if the topic does not hold what was sent and acknowledged."""
    wrong = reconcile(watched.counts())
    if wrong:
        raise TrialFailed("; ".join(each.text for each in wrong))


def bottleneck(bench: Bench, cell: Cell, watched: Watched, records: int) -> Bottleneck | None:
    """What has limited the trial, as far as its samples tell."""
    machine, loaded = bench.stack.machine_cpu(), watched.loaded
    around = Circumstances(
        mode=cell.mode,
        tasks=cell.tasks,
        failed_tasks=0 if watched.last is None else len(watched.last.failed),
        placement={} if watched.placed is None else placement(watched.placed, bench.stack.endpoints.worker_ids),
        records_per_write=watched.records_per_write,
        offered_share=watched.offered_share,
        used_connections=used_up(watched.samples, watched.connection_limit),
        connection_limit=watched.connection_limit,
        partitions=None if loaded is None else loaded.partitions,
        partitions_with_records=None if loaded is None else loaded.partitions_with_records,
        machine_cores=None if machine is None else machine[1],
        cpu_limits=bench.stack.cpu_limits,
    )
    return cause_of(evidence_of(watched.samples, records, around, watched.tasks))


def _unread(consumed: int, records: int) -> list[str]:
    """The reason to give if the connector has not committed the offsets of all records when it stopped."""
    return (
        [] if consumed == records else [f"the connector committed {consumed:,} of {records:,} records when it stopped"]
    )
