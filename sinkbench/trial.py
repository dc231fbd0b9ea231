"""One drain trial, from the empty sink to the audit; and the pilot that sizes it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from sinkbench.bench import Bench, Loaded, Names
from sinkbench.causes import cause_of
from sinkbench.cells import Cell
from sinkbench.connect import ConnectorStatus, is_even, placement
from sinkbench.errors import ConnectError, TrialFailed
from sinkbench.evidence import Circumstances, evidence_of
from sinkbench.probes import CLIENT_ERRORS, Sample, in_one_line
from sinkbench.reconcile import Disagreement, reconcile
from sinkbench.results import Audit, Bottleneck, Connections, Reconciliation, TrialRecord
from sinkbench.sizing import rate_from_pilot
from sinkbench.stats import drain_rate
from sinkbench.steady import steadiness
from sinkbench.watch import (
    DrainWatch,
    End,
    Limits,
    connection_peaks,
    cpu_seconds_per_million,
    stored_counts,
    used_up,
    window_seconds,
)

__all__ = ["Observer", "Pilot", "drain_trial", "pilot"]

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


@dataclass
class _Watched:
    """What watching a connector has shown."""

    samples: list[Sample] = field(default_factory=list)
    placed: ConnectorStatus | None = None
    """When every task had started, or failed to."""
    last: ConnectorStatus | None = None
    """Just before the connector was deleted."""
    invalid: list[str] = field(default_factory=list)
    connection_limit: int | None = None
    loaded: Loaded | None = None
    consumed: int | None = None
    tasks: Mapping[str, float] = field(default_factory=dict)
    """What the metrics of all tasks said then."""

    def counts(self, audit: Audit | None) -> Reconciliation:
        """The same records at each step of their way."""
        return Reconciliation(
            sent=None if self.loaded is None else self.loaded.sent,
            acknowledged=None if self.loaded is None else self.loaded.acknowledged,
            in_topic=None if self.loaded is None else self.loaded.in_topic,
            consumed=self.consumed,
            put=None if (put := self.tasks.get("tasks_put_total")) is None else round(put),
            stored=None if audit is None else audit.stored,
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


def drain_trial(
    bench: Bench, cell: Cell, names: Names, records: int, block: int, observer: Observer
) -> tuple[TrialRecord, list[Sample]]:
    """Takes one drain trial. What it created is left to `Bench.clean`, when all services are there again.

    Args:
        bench: the stack and its clients.
        cell: what to measure.
        names: what the trial's things are called.
        records: how many to load the topic with.
        block: the number of its block, from 1.
        observer: is told what goes on.

    Returns:
        Its record, with the reasons in `invalid` if its numbers must not be used, and its samples.
    """
    started_at = datetime.now(UTC)
    started = time.monotonic()
    watched = _Watched()
    audit: Audit | None = None
    lost_ranges = ""
    records_per_write: float | None = None
    disagreements: list[Disagreement] = []
    try:
        bench.check_disk(records)
        sink = bench.sink(cell.sink)
        observer.phase("resetting the sink")
        sink.create(names.target)
        observer.phase("loading the topic")
        watched.loaded = bench.load(names, records, lambda done: observer.progress(done, records))
        _check_loaded(watched)
        writes = sink.writes(names.target)
        watched.connection_limit = sink.connection_limit()
        observer.phase("draining")
        _watch(bench, cell, names, records, watched, observer)
        observer.phase("stopping the connector")
        watched.tasks = bench.last_signs(names, records)
        bench.stop_connector(names)
        counts = {} if watched.placed is None else placement(watched.placed, bench.stack.endpoints.worker_ids)
        watched.consumed = bench.consumed(names)
        unread = _unread(watched.consumed, records)
        watched.invalid += _failures(cell, watched, counts)
        # What is wrong already explains why not everything was read.
        watched.invalid += [] if watched.invalid else unread
        # Records that the connector has not come to yet are not lost: without them there is nothing to audit.
        if not unread:
            observer.phase("auditing")
            counted = bench.audit(cell, names, records)
            audit = counted.result()
            lost_ranges = counted.lost_ranges()
            if audit.foreign:
                watched.invalid.append(f"{audit.foreign:,} rows in the sink are none of this trial's records")
            disagreements = reconcile(watched.counts(audit))
            # What is wrong already explains why counts differ.
            watched.invalid += [] if watched.invalid else [each.text for each in disagreements if each.invalid]
        written = None if writes is None else (sink.writes(names.target) or 0) - writes
        if written and audit is not None and not watched.invalid:
            records_per_write = round(audit.stored / written, 2)
    except TrialFailed as error:
        watched.invalid.append(str(error))
    except CLIENT_ERRORS as error:
        watched.invalid.append(in_one_line(error))
    seen = stored_counts(watched.samples)
    warm = steadiness(*seen, records)
    rate = drain_rate(*seen, records, from_seconds=warm.from_seconds)
    if rate is None and not watched.invalid:
        watched.invalid.append("too few samples between 10 % and 90 % of the records; ask for a longer window_seconds")
    window = window_seconds(watched.samples, records)
    clients, servers = connection_peaks(watched.samples)
    placed, last = watched.placed, watched.last
    record = TrialRecord(
        trial=names.trial,
        block=block,
        cell=cell.key,
        label=cell.label,
        pipeline=cell.pipeline,
        sink=cell.sink,
        mode=cell.mode,
        workers=cell.workers,
        tasks=cell.tasks,
        tasks_per_worker=cell.multiple,
        overrides=dict(cell.overrides),
        started_at=started_at.isoformat(timespec="milliseconds"),
        seconds=round(time.monotonic() - started, 3),
        records=records,
        placement={} if placed is None else placement(placed, bench.stack.endpoints.worker_ids),
        failed_tasks=0 if last is None else len(last.failed),
        failure=watched.cause(),
        connections=Connections(clients_peak=clients, server_peak=servers),
        audit=audit,
        cpu_seconds_per_million=cpu_seconds_per_million(watched.samples, records),
        bottleneck=_bottleneck(bench, cell, watched, records, records_per_write),
        reconciliation=watched.counts(audit),
        invalid=watched.invalid,
        notes=[each.text for each in disagreements],
        records_per_second=None if rate is None else round(rate.records_per_second, 1),
        window_seconds=None if window is None else round(window, 3),
        steady=warm.steady,
        warm_up_seconds=None if warm.warm_up_seconds is None else round(warm.warm_up_seconds, 3),
        records_per_write=records_per_write,
        lost_ranges=lost_ranges,
    )
    return record, watched.samples


@dataclass(frozen=True)
class Pilot:
    """What a pilot has found: a rate to size trials by, or why there is none."""

    records_per_second: float | None
    problem: str | None = None


def pilot(bench: Bench, cell: Cell, names: Names, records: int, observer: Observer) -> Pilot:
    """Runs a cell on a topic that is already loaded until its rate no longer rises.

    A fresh worker's JVM needs up to a minute of work until it has compiled what is hot; a trial that is sized, or
    measured, before that is too short and too slow. A pilot is no trial: it is not audited, and the topic, which other
    pilots use too, stays.
    """
    watched = _Watched()
    drain = bench.plan.drain
    try:
        bench.sink(cell.sink).create(names.target)
        _watch(bench, cell, names, records, watched, observer, (drain.pilot_seconds, drain.warm_up_seconds))
    except TrialFailed as error:
        watched.invalid.append(str(error))
    except CLIENT_ERRORS as error:
        watched.invalid.append(in_one_line(error))
    if not watched.samples:
        return Pilot(None, "; ".join(watched.invalid))
    recent = [s for s in watched.samples if s.seconds >= watched.samples[-1].seconds - 2 * drain.pilot_seconds]
    rate = rate_from_pilot(*stored_counts(recent))
    if rate is None:
        return Pilot(None, watched.cause() or "; ".join(watched.invalid) or "it stored nothing")
    return Pilot(rate)


def _watch(
    bench: Bench,
    cell: Cell,
    names: Names,
    records: int,
    watched: _Watched,
    observer: Observer,
    pilot_lengths: tuple[float, float] | None = None,
) -> None:
    """Starts the connector and samples until everything is stored, progress stops, or the pilot's time is over.

    Raises:
        TrialFailed: Connect refuses the connector, or the probes hang.
    """
    drain = bench.plan.drain
    watch = DrainWatch(records, cell.tasks, Limits(drain.stall_seconds, drain.timeout_seconds, pilot_lengths))
    sampler = bench.sampler(cell, names, records)
    sampler.start()
    try:
        bench.connect.create(names.connector, bench.config(cell, names))
        end: End | None = None
        # Connect may have been rebalancing for a while before it took the connector; no progress was due in that time.
        seen = len(sampler.samples)
        while end is None:
            fresh = sampler.wait(seen, SILENCE_SECONDS)
            if not fresh:
                raise TrialFailed(f"the probes have had no answer for {SILENCE_SECONDS:.0f} s")
            seen += len(fresh)
            observer.progress(min(fresh[-1].stored or 0, records), records)
            if watched.placed is None and _all_started(fresh[-1], cell.tasks):
                watched.placed = bench.connect.status(names.connector)
            end = next((end for sample in fresh if (end := watch.see(sample)) is not None), None)
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


def _all_started(sample: Sample, tasks: int) -> bool:
    return (sample.tasks_running or 0) + (sample.tasks_failed or 0) == tasks


def _failures(cell: Cell, watched: _Watched, counts: Mapping[str, int]) -> list[str]:
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


def _check_loaded(watched: _Watched) -> None:
    """Raises TrialFailed if the topic does not hold what was sent and acknowledged."""
    wrong = reconcile(watched.counts(None))
    if wrong:
        raise TrialFailed("; ".join(each.text for each in wrong))


def _bottleneck(
    bench: Bench, cell: Cell, watched: _Watched, records: int, records_per_write: float | None
) -> Bottleneck | None:
    """What has limited the trial, as far as its samples tell."""
    machine, loaded = bench.stack.machine_cpu(), watched.loaded
    around = Circumstances(
        mode=cell.mode,
        tasks=cell.tasks,
        failed_tasks=0 if watched.last is None else len(watched.last.failed),
        placement={} if watched.placed is None else placement(watched.placed, bench.stack.endpoints.worker_ids),
        records_per_write=records_per_write,
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
