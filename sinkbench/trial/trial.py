"""One trial: reset, load, run, stop, audit, record. Each step returns a value, which the next one takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sinkbench.analysis.samples import Sample
from sinkbench.errors import INTERRUPTIONS, ReasonCode, ServiceError, TrialFailed
from sinkbench.results import Bloat, Reason, TrialRecord
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import SinkBloat
from sinkbench.trial.audit import audit, count, diverted, queue_of
from sinkbench.trial.conditions import (
    durability_of,
    exclude_existing,
    others_met,
    others_now,
    replication_before,
    replication_now,
    unattributed,
)
from sinkbench.trial.following import finish
from sinkbench.trial.queries import ask_queries
from sinkbench.trial.record import Notes, broken_reasons, check_audit, check_stopped, record
from sinkbench.trial.resources import Resources, reset_sink
from sinkbench.trial.values import After, Audited, Before, Measured, Stopped, policy_of
from sinkbench.trial.workload import Around, Workload


@dataclass(frozen=True)
class Taken:
    record: TrialRecord
    samples: Sequence[Sample]


def run_trial(own: Resources, workload: Workload, block: int, recover: Callable[[], object] | None = None) -> Taken:
    """Takes a trial from the empty sink to its record. The caller removes the trial's objects.

    `block` counts from 1. `recover` restarts dead services, so that an interrupted trial can be audited.
    """
    started_at, started = datetime.now(UTC), time.monotonic()
    notes, found = Notes(own.observer), measured(own)
    with notes.catching():
        found = replace(found, target=reset_sink(own))
        with workload.around(own) as around:
            found = replace(found, loaded=workload.load(own))
            found = replace(found, before=read_before(own, notes))
            timeline = workload.run(own, around, found.loaded)
            found = replace(found, timeline=timeline, loaded=timeline.loaded or found.loaded)
            raise_if_ended_early(found, notes)
            found = replace(found, stopped=stop(own, found))
            check_stopped(found, notes)
            found = replace(found, audited=audited(own, found, notes))
            check_audit(found, notes)
            found = replace(found, after=read_after(own, workload, around, found, notes))
    if recover is not None and was_interrupted(found, notes):
        found = audit_the_rest(own, found, recover, notes)
    made = record(found, workload.figures(found, notes.reasons), notes.reasons)
    seconds = round(time.monotonic() - started, 3)
    timed = {"block": block, "started_at": started_at.isoformat(timespec="milliseconds"), "seconds": seconds}
    return Taken(made.model_copy(update=timed), found.samples)


def measured(own: Resources) -> Measured:
    cluster, machine = own.cluster, None
    with suppress(ServiceError, OSError):
        machine = cluster.stack.usage().machine
    return Measured(
        own.names.trial,
        own.cell,
        cluster.plan,
        own.records,
        policy_of(own.cell),
        None if machine is None else machine.cores,
        cluster.stack.facts().cpu_limits,
    )


def read_before(own: Resources, notes: Notes) -> Before:
    """Reads what later readings are compared with. Raises TrialFailed if replication is not as required."""
    found = Before(
        writes=own.sink.writes(own.names.target),
        connection_limit=own.sink.connection_limit(),
        pooling=own.cluster.pooling(own.cell),
        bloat=_bloat(own),
        queue=queue_of(own),
        others=others_now(own),
    )
    exclude_existing(own)
    replication = replication_before(own)
    if broken := replication.broken:
        notes.reasons += broken_reasons(broken[:-1])
        raise TrialFailed(broken[-1].text, broken[-1].code, **broken[-1].figures)
    return replace(found, replication=replication, durability=durability_of(own, replication))


def raise_if_ended_early(found: Measured, notes: Notes) -> None:
    """Raises the error that ended the run early; adds the reasons of a run that reached its end."""
    notes.reasons += found.timeline.reasons
    if found.timeline.failed is not None:
        raise found.timeline.failed


def stop(own: Resources, found: Measured) -> Stopped:
    """Stops the connector, and reads its committed offsets when its group is empty."""
    own.observer.phase("stopping the connector")
    metrics = own.cluster.metrics.last(own.names.connector, own.records) if found.policy.counters_go_on else {}
    others, last = others_met(own, found.before), found.timeline.last
    own.stop_connector()
    return Stopped(
        task_metrics=metrics,
        others=others,
        consumed=own.consumed(),
        refusal=None if last is None or last.cause() is None else own.cluster.refusal(own.cell, own.config),
        unattributed=unattributed(own, found.samples),
    )


def audited(own: Resources, found: Measured, notes: Notes) -> Audited:
    """Checks replication and audits the sink. Records that were written elsewhere are the first reason."""
    replication = replication_now(own, found.before.replication)
    # After a fault, a violation is a result.
    if found.policy.judges_pipeline:
        notes.first(*broken_reasons(replication.broken))
    made = audit(own, replace(found, audited=Audited(replication=replication)))
    if made.diverted:
        notes.first(Reason(code=ReasonCode.DIVERTED, text=made.diverted))
    return made


def read_after(own: Resources, workload: Workload, around: Around, found: Measured, notes: Notes) -> After:
    """Reads what follows the audit. Only an error of the workload's own readings counts."""
    per_write, made = _records_per_write(own, found, notes), found.audited.audit
    after = replace(workload.read(own, around, found), records_per_write=per_write)
    with suppress(ServiceError, OSError):
        # Also without an audit: deadlocks may have ended the trial.
        after = replace(after, bloat=_bloat_since(found.before.bloat, _bloat(own)))
    with suppress(ServiceError, OSError):
        before, size = found.target.disk_bytes, own.sink.disk_bytes(own.names.target)
        if made is not None and made.stored and before is not None and size is not None:
            after = replace(after, disk_bytes_per_record=round(max(size - before, 0) / made.stored, 1))
    # The right answers are known only if the sink stores every record once.
    if made is not None and made.clean and not notes.reasons:
        own.observer.phase("asking the queries")
        after = replace(after, queries=ask_queries(own))
    return after


def was_interrupted(found: Measured, notes: Notes) -> bool:
    there = found.timeline.created and found.audited.audit is None
    return there and any(each.code in INTERRUPTIONS for each in notes.reasons)


def audit_the_rest(own: Resources, found: Measured, recover: Callable[[], object], notes: Notes) -> Measured:
    """Audits an interrupted trial after its connector has read the rest of the topic."""
    if found.loaded is None or found.loaded.in_topic != own.records:
        why = "its load was broken off, so it is not known what there was to store"
        return replace(found, audited=replace(found.audited, why_not=why))
    try:
        recover()
        # A dead service may have restarted by itself; older connections are broken.
        own.cluster.reconnect()
        # The audit itself may have failed.
        if not found.read_all:
            finish(own)
            found = replace(found, stopped=replace(found.stopped, consumed=own.consumed()))
        if found.read_all and diverted(own) is None:
            found = replace(found, audited=count(own, found))
            check_audit(found, notes)
    except (TrialFailed, ServiceError, OSError) as error:
        why = f"it could not be finished: {in_one_line(error)}"
        found = replace(found, audited=replace(found.audited, why_not=why))
    return found


def _records_per_write(own: Resources, found: Measured, notes: Notes) -> float | None:
    before, made = found.before.writes, found.audited.audit
    if before is None or made is None or notes.reasons or not found.policy.counters_go_on:
        return None
    written = (own.sink.writes(own.names.target) or 0) - before
    return round(made.accounted / written, 2) if written else None


def _bloat(own: Resources) -> SinkBloat | None:
    """Returns the bloat of the sink so far; None for a load without changes, or if not known."""
    changes = own.sink.capabilities.changes
    return None if own.cluster.plan.changes is None or changes is None else changes.bloat(own.names.target)


def _bloat_since(before: SinkBloat | None, after: SinkBloat | None) -> Bloat | None:
    """Returns the bloat from this trial; None if not known."""
    if before is None or after is None:
        return None
    # The counters of a restarted service begin at 0.
    deadlocks, rollbacks = (
        None if had is None or has is None else max(has - had, 0)
        for had, has in ((before.deadlocks, after.deadlocks), (before.rollbacks, after.rollbacks))
    )
    return Bloat(
        dead_rows=after.dead_rows,
        deadlocks=deadlocks,
        rollbacks=rollbacks,
        bytes_before=before.bytes,
        bytes_after=after.bytes,
    )
