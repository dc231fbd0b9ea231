"""One trial: reset, load, run, stop, audit, record. Each step returns a value, which the next one takes."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from sinkbench.analysis import replication as copies
from sinkbench.analysis.replication import ReplicationState
from sinkbench.analysis.samples import OTHER_CONNECTIONS, OTHER_POOL_CLIENTS, Sample, own_count
from sinkbench.errors import INTERRUPTIONS, ReasonCode, ServiceError, TrialFailed
from sinkbench.results import Bloat, Durability, Reason, TrialRecord
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import SinkBloat
from sinkbench.trial.audit import audit, count, diverted, queue_of
from sinkbench.trial.cluster import read_until
from sinkbench.trial.following import finish, out_of_memory, pool_of, pooling_of
from sinkbench.trial.queries import ask_queries
from sinkbench.trial.record import Notes, broken_reasons, check_audit, check_stopped, record
from sinkbench.trial.resources import Resources, reset_sink
from sinkbench.trial.values import After, Audited, Before, Measured, Others, Replication, Stopped, met
from sinkbench.trial.workload import Around, Workload

# New or moved replicas settle within this time.
SETTLE_SECONDS = 10.0
# A connector's connections close within this time after its tasks are gone.
CLOSING_SECONDS = 3.0


def run_trial(
    own: Resources, workload: Workload, block: int, recover: Callable[[], object] | None = None
) -> tuple[TrialRecord, Sequence[Sample]]:
    """Takes a trial from the empty sink to its record and samples. The caller removes the trial's objects.

    `block` counts from 1. `recover` restarts dead services, so that an interrupted trial can be audited."""
    started_at, started = datetime.now(UTC), time.monotonic()
    notes, found = Notes(own.observer), measured(own)
    with notes.catching():
        notes_of_target, bytes_before = reset_sink(own)
        found = replace(found, notes_of_target=notes_of_target, bytes_before=bytes_before)
        with workload.around(own) as around:
            found = replace(found, loaded=workload.load(own))
            found = replace(found, before=read_before(own, notes))
            with own.recording:
                timeline = workload.run(own, around, found.loaded)
            found = replace(found, timeline=timeline, loaded=timeline.loaded or found.loaded)
            raise_if_ended_early(found, notes)
            found = replace(found, stopped=stop(own, found))
            check_stopped(found, notes)
            found = replace(found, audited=audited(own, found, notes))
            check_audit(found, notes)
            found = replace(found, after=read_after(own, workload, around, found, notes))
    if any(each.code == ReasonCode.NO_PROGRESS for each in notes.reasons) and (
        said := out_of_memory(own.cluster.stack)
    ):
        # A JVM whose heap is nearly full may go on like that for long.
        notes.first(Reason(code=ReasonCode.OUT_OF_MEMORY, text=said))
    unaudited = found.timeline.created and found.audited.audit is None
    if recover is not None and unaudited and any(each.code in INTERRUPTIONS for each in notes.reasons):
        found = audit_the_rest(own, found, recover, notes)
    made = record(found, workload.figures(found, notes.reasons), notes.reasons)
    seconds = round(time.monotonic() - started, 3)
    timed = {"block": block, "started_at": started_at.isoformat(timespec="milliseconds"), "seconds": seconds}
    return made.model_copy(update=timed), found.samples


def measured(own: Resources) -> Measured:
    cluster, machine = own.cluster, None
    with suppress(ServiceError, OSError):
        machine = cluster.stack.usage().machine
    cores = None if machine is None else machine.cores
    return Measured(own.names.trial, own.cell, cluster.plan, own.records, cores, cluster.stack.facts().cpu_limits)


def read_before(own: Resources, notes: Notes) -> Before:
    """Reads what later readings are compared with. Raises TrialFailed if replication is not as required."""
    found = Before(
        writes=own.sink.writes(own.names.target),
        connection_limit=own.sink.connection_limit(),
        pooling=pooling_of(own.sink),
        bloat=_bloat(own),
        queue=queue_of(own),
        others=others_now(own),
    )
    if (others := own.sink.capabilities.others) is not None:
        # Connections that are open before the connector starts are other clients'.
        others.exclude_existing()
    replication = read_until(lambda now: not now.broken, lambda: replication_now(own, Replication()), SETTLE_SECONDS)
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
    metrics = {} if found.has_fault else own.cluster.metrics.last(own.names.connector, own.records)
    others = others_met(own, found.before)
    own.stop_connector()
    return Stopped(metrics, others, consumed=own.consumed(), unattributed=unattributed(own, found.samples))


def audited(own: Resources, found: Measured, notes: Notes) -> Audited:
    """Checks replication and audits the sink. Records that were written elsewhere are the first reason."""
    replication = replication_now(own, found.before.replication)
    # After a fault, a violation is a result.
    if not found.has_fault:
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
        before, size = found.bytes_before, own.sink.disk_bytes(own.names.target)
        if made is not None and made.stored and before is not None and size is not None:
            after = replace(after, disk_bytes_per_record=round(max(size - before, 0) / made.stored, 1))
    # The right answers are known only if the sink stores every record once.
    if made is not None and made.clean and not made.superseded and not notes.reasons:
        own.observer.phase("asking the queries")
        after = replace(after, queries=ask_queries(own))
    return after


def replication_now(own: Resources, before: Replication) -> Replication:
    """Returns the state now, and what was unknown once; a sink or topic on one node can only change by dying."""

    def asked(known: ReplicationState | None, what: str, ask: Callable[[], ReplicationState]) -> ReplicationState:
        if known is not None and known.alone:
            return known
        try:
            return ask()
        except (ServiceError, OSError) as error:
            # If the service does not answer at all, the trial's next request reports it.
            return ReplicationState(unchecked=(f"what must hold {what}: {in_one_line(error)}",))

    def of_sink() -> ReplicationState:
        if (replication := own.sink.capabilities.replication) is None:
            raise ServiceError("this sink does not tell")
        return replication.check(own.names.target, own.config)

    def of_topic() -> ReplicationState:
        brokers, topics = own.cluster.kafka.copies(own.names.topic)
        if not topics.get(own.names.topic):
            raise ServiceError("Kafka does not show its partitions")
        return copies.topic_replication(brokers, topics[own.names.topic])

    sink = asked(before.of_sink, f"in {own.cell.sink}", of_sink)
    topic = asked(before.of_topic, "of the topic", of_topic)
    return Replication(sink, topic, tuple(dict.fromkeys([*before.unchecked, *sink.unchecked, *topic.unchecked])))


def durability_of(own: Resources, found: Replication) -> Durability | None:
    """Returns on how many nodes a record is when it counts as stored; None if the sink does not answer."""
    try:
        settings = own.sink.settings(own.names.target, own.config)
    except (ServiceError, OSError):
        return None
    acks = own.cluster.plan.load.acks if own.cell.acks is None else own.cell.acks
    in_sync = None if found.of_topic is None else found.of_topic.copies
    kafka, brokers = copies.acks_in_words(acks, found.of_topic), in_sync if acks == "all" else int(acks)
    settled = {name: value for name, value in settings.durability.items() if value is not None}
    made = Durability(kafka=kafka, kafka_nodes=brokers, settings=settled)
    if settings.promise is None:
        return made
    promise = copies.as_replicated(settings.promise, found.of_sink)
    told = {"text": copies.promise_in_words(promise), "nodes": promise.nodes, "on_disk": promise.on_disk}
    return made.model_copy(update=told)


def others_now(own: Resources) -> Others | None:
    names = own.names
    with suppress(ServiceError, OSError):
        return own.cluster.others([own.cell.sink], {each.connector for each in (names, names.renamed, names.second)})
    return None


def unattributed(own: Resources, samples: Sequence[Sample]) -> int | None:
    """Returns the connections that were opened during the run and remain without the connector; None if not known."""
    # A service that hangs would hang here, too.
    if own.sink.capabilities.others is None or (samples and samples[-1].silent):
        return None
    pooled = any(own_count(each.pool_clients, each.signs, OTHER_POOL_CLIENTS) for each in samples)

    def left() -> int | None:
        if pooled:
            pool = pool_of(own.sink)
            return own_count(pool.clients, pool.signs, OTHER_POOL_CLIENTS)
        seen = own.sink.read(own.names.target)
        return own_count(seen.backends, seen.signs, OTHER_CONNECTIONS)

    with suppress(ServiceError, OSError):
        return read_until(lambda found: not found, left, CLOSING_SECONDS)
    return None


def others_met(own: Resources, before: Before) -> list[str]:
    """Returns the other clients since `before`, a phrase each, without the connector's dead letter queue."""
    now = others_now(own)
    if before.others is None or now is None:
        return []

    def is_own(topic: str) -> bool:
        with suppress(ServiceError, OSError):
            return topic == before.queue.name or own.cluster.kafka.keeps_status(topic, own.names.connector)
        return False

    return met(before.others, now, own.records, is_own)


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
    if before is None or made is None or notes.reasons or found.has_fault:
        return None
    written = (own.sink.writes(own.names.target) or 0) - before
    return round(made.accounted / written, 2) if written else None


def _bloat(own: Resources) -> SinkBloat | None:
    """Returns the bloat of the sink so far; None for a load without changes, or if not known."""
    changes = own.sink.capabilities.changes
    return None if own.cluster.plan.changes is None or changes is None else changes.bloat(own.names.target)


def _bloat_since(was: SinkBloat | None, now: SinkBloat | None) -> Bloat | None:
    if was is None or now is None:
        return None
    # The counters of a restarted service begin at 0.
    deadlocks, rollbacks = (
        None if had is None or has is None else max(has - had, 0)
        for had, has in ((was.deadlocks, now.deadlocks), (was.rollbacks, now.rollbacks))
    )
    return Bloat(
        dead_rows=now.dead_rows, deadlocks=deadlocks, rollbacks=rollbacks, bytes_before=was.bytes, bytes_after=now.bytes
    )
