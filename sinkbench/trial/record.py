"""Gives the reasons why a trial's figures must not be used, and builds its record from what its steps found. Pure."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from sinkbench.analysis.audit import reconcile
from sinkbench.analysis.deadletters import causes
from sinkbench.analysis.replication import Broken
from sinkbench.analysis.samples import rejected_writes, used_up
from sinkbench.analysis.stalls import Stall, idle_tasks, silences
from sinkbench.analysis.words import few_of
from sinkbench.bottleneck.evidence import Circumstances, evidence_of
from sinkbench.bottleneck.rules import cause_of
from sinkbench.errors import Interrupted, ReasonCode, ServiceError, TrialFailed
from sinkbench.metrics import METRICS
from sinkbench.metrics.metric import Seen, fields_of
from sinkbench.results import Bottleneck, Reason, Reconciliation, TrialRecord
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import sink_kind
from sinkbench.trial.following import uneven
from sinkbench.trial.observer import Observer
from sinkbench.trial.values import Loaded, Measured
from sinkbench.trial.workload import Figures


class Notes:
    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.reasons: list[Reason] = []

    def add(self, code: ReasonCode, text: str, **figures: float) -> None:
        self.reasons.append(Reason(code=code, text=text, figures=figures))

    def first(self, *causes: Reason) -> None:
        """Adds reasons before the others, which may follow from them."""
        self.reasons[:0] = causes

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Adds as a reason what ends the block early, except an interrupt."""
        try:
            yield
        except (TrialFailed, ServiceError, OSError) as error:
            # The error may have come from cleaning up after an interrupt.
            before = error.__context__
            while before is not None and not isinstance(before, Interrupted):
                before = before.__context__
            if before is not None:
                self._observer.phase(in_one_line(error))
                raise before from None
            if isinstance(error, TrialFailed):
                self.add(error.code, str(error), **error.figures)
            else:
                self.add(ReasonCode.SERVICE_ERROR, in_one_line(error))


def broken_reasons(broken: Sequence[Broken]) -> list[Reason]:
    return [Reason(code=each.code, text=each.text, figures=dict(each.figures)) for each in broken]


def check_loaded(loaded: Loaded) -> Loaded:
    """Returns `loaded` if the topic contains what was sent and acknowledged. Raises TrialFailed if not."""
    counts = Reconciliation(sent=loaded.sent, acknowledged=loaded.acknowledged, in_topic=loaded.in_topic)
    if wrong := reconcile(counts):
        raise TrialFailed("; ".join(wrong), ReasonCode.COUNTS_DISAGREE)
    return loaded


def check_stopped(found: Measured, notes: Notes) -> None:
    """Checks that all tasks ran, evenly spread, and read exactly the topic."""
    if found.has_fault:
        return
    tasks, workers, placed = found.cell.tasks, found.cell.workers, dict(found.timeline.placement or {})
    if failed := found.timeline.failed_tasks:
        of_memory = (found.timeline.failure or "").startswith("out of memory")
        code = ReasonCode.OUT_OF_MEMORY if of_memory else ReasonCode.TASKS_FAILED
        text = f"{failed} of {tasks} tasks FAILED: {found.timeline.failure}"
        # The other reasons follow from it.
        notes.first(Reason(code=code, text=text, figures={"failed": failed, "tasks": tasks}))
    elif sum(placed.values()) != tasks:
        text = f"{tasks} tasks were asked for, but not all of them started"
        notes.add(ReasonCode.TASKS_NOT_STARTED, text, started=sum(placed.values()), tasks=tasks)
    elif (text_of := uneven(placed, workers, tasks)) is not None:
        notes.add(ReasonCode.TASKS_UNEVEN, text_of, workers=workers)
    consumed, records = found.stopped.consumed, found.records
    # An earlier reason explains why not everything was read.
    if consumed is None or notes.reasons:
        return
    if consumed > records:
        text = f"the topic held {consumed - records:,} more records than were sent: another client wrote to it"
        notes.add(ReasonCode.FOREIGN_RECORDS, text, records=consumed - records)
    elif consumed < records:
        text = f"the connector committed {consumed:,} of {records:,} records when it stopped"
        notes.add(ReasonCode.NOT_READ, text, committed=consumed, records=records)


def check_audit(found: Measured, notes: Notes) -> None:
    audited = found.audited
    if audited.audit is None:
        return
    # Bad records that the sink accepts are not part of the load, and were not written by another client.
    if audited.audit.foreign > found.timeline.faulted.poisoned:
        text = f"{audited.audit.foreign:,} rows in the sink are none of this trial's records"
        notes.add(ReasonCode.FOREIGN_RECORDS, text, foreign=audited.audit.foreign)
    if audited.letters and not found.has_fault:
        count, reason = len(audited.letters), causes(audited.letters)[0].reason
        text = f"{count:,} {'record is a dead letter' if count == 1 else 'records are dead letters'}"
        text += f"{f' ({reason})' if reason else ''}; `sinkbench dlq {found.before.queue.name}` explains them"
        notes.add(ReasonCode.DEAD_LETTERS, text, records=count)
    for what, keys in audited.wrong_keys.items():
        count = getattr(audited.audit, what)
        text = f"{count:,} {'key is' if count == 1 else 'keys are'} {what}: {few_of(keys, len(keys), count)}"
        notes.add(ReasonCode(what), text, keys=count)
    if found.has_fault:
        return
    sink = found.cell.sink
    rejected = rejected_writes(found.samples, sink_kind(sink).rejected)
    if rejected and (audited.audit.lost or audited.audit.wrong_keys):
        text = f"{sink} rejected {rejected:,} writes meanwhile: what the connector does not send again is lost"
        # The other reasons follow from it.
        notes.first(Reason(code=ReasonCode.WRITES_REJECTED, text=text, figures={"rejected": rejected}))
    if audited.refused is not None:
        text = f"{sink} refuses a lost record that is written to it from here: {audited.refused}"
        notes.first(Reason(code=ReasonCode.WRITES_REJECTED, text=text))
    # An earlier reason explains why counts differ.
    if not notes.reasons:
        for text, invalid in reconcile(counts_of(found)).items():
            if invalid:
                # Restarted tasks lose their counts.
                notes.add(ReasonCode.COUNTS_DISAGREE, "; ".join([text, *interruptions(found)]))


def counts_of(found: Measured) -> Reconciliation:
    """Returns the number of records at each step from producer to sink."""
    put, loaded, audit = found.stopped.task_metrics.get("tasks_put_total"), found.loaded, found.audited.audit
    return Reconciliation(
        sent=None if loaded is None else loaded.sent,
        acknowledged=None if loaded is None else loaded.acknowledged,
        in_topic=None if loaded is None else loaded.in_topic,
        consumed=found.stopped.consumed,
        # Deleted tasks lose their counts.
        put=None if put is None or found.cell.before is not None else round(put),
        stored=None if audit is None else audit.accounted,
    )


def interruptions(found: Measured) -> list[str]:
    """When not all tasks ran, in words; empty if the trial changes tasks on purpose."""
    if found.cell.before is not None or found.has_fault:
        return []
    return idle_tasks(found.samples, found.records, found.cell.tasks)


def record(found: Measured, figures: Figures, reasons: Sequence[Reason]) -> TrialRecord:
    """Returns the record with the workload's figures; the caller fills in block, start and length."""
    clocks = [] if found.loaded is None else list(found.loaded.clocks)
    audited, replication, seen = found.audited, found.audited.replication or found.before.replication, seen_of(found)
    in_the_end = audited.replication.broken if found.has_fault and audited.replication is not None else []
    notes = [
        *found.notes_of_target,
        *(f"in the end {each.text}" for each in in_the_end),
        *(f"not checked {each}" for each in replication.unchecked),
        *audited.content_notes,
        *(
            f"the clock of {each.loadgen} was {each.ahead_ms:+,.1f} ms off (within {each.within_ms:.1f} ms); corrected"
            for each in clocks
            if each.ahead_ms
        ),
        *figures.get("notes", []),
    ]
    fields = {
        **found.cell.identity(),
        **fields_of(METRICS, lambda metric: metric.of_trial(seen)),
        **figures,
        "notes": notes,
        "reasons": [*reasons, *figures.get("reasons", [])],
    }
    return TrialRecord(
        trial=found.trial,
        block=0,
        connector=found.timeline.connector,
        started_at="",
        seconds=0,
        records=found.records,
        placement=dict(found.timeline.placement or {}),
        failed_tasks=found.timeline.failed_tasks,
        failure=found.timeline.failure,
        others=list(found.stopped.others),
        audit=audited.audit,
        not_audited=_not_audited(found),
        queries=list(found.after.queries),
        durability=found.before.durability,
        reconciliation=counts_of(found),
        lost_ranges=audited.lost_ranges,
        duplicated_ranges=audited.duplicated_ranges,
        altered_ranges=audited.altered_ranges,
        wrong_keys=dict(audited.wrong_keys),
        bloat=found.after.bloat,
        loadgen_clocks=clocks,
        **fields,
    )


def _not_audited(found: Measured) -> str:
    if found.audited.audit is not None or found.audited.why_not:
        return found.audited.why_not
    if not found.timeline.created:
        return "the connector was not started"
    if found.stopped.consumed is not None and (found.read_all or found.has_fault):
        return "the audit could not be finished"
    return "the connector did not come to the end of the topic"


def seen_of(found: Measured) -> Seen:
    pooling, rescaled = found.before.pooling, found.cell.before is not None
    return Seen(
        samples=found.samples,
        records=found.records,
        path={"kafka", "connect", *(service.name for service in sink_kind(found.cell.sink).services)},
        counters_go_on=not found.has_fault,
        drained=found.cell.mode == "drain" and (found.cell.probes or rescaled),
        read_all=found.read_all,
        # Deleted tasks lose their counts.
        task_metrics={} if rescaled else found.stopped.task_metrics,
        pooling={} if pooling is None else asdict(pooling),
        records_per_write=found.after.records_per_write,
        disk_bytes_per_record=found.after.disk_bytes_per_record,
        connection_limit=found.before.connection_limit,
        other_connections=0 if found.has_fault else found.stopped.unattributed or 0,
    )


def bottleneck(found: Measured) -> Bottleneck | None:
    kind, limit, loaded = sink_kind(found.cell.sink), found.before.connection_limit, found.loaded
    around = Circumstances(
        sink=found.cell.sink,
        mode=found.cell.mode,
        tasks=found.cell.tasks,
        failed_tasks=found.timeline.failed_tasks,
        placement=found.timeline.placement or {},
        records_per_write=found.after.records_per_write,
        offered_share=found.offered_share,
        used_connections=used_up(found.samples, limit),
        connection_limit=limit,
        partitions=None if loaded is None else loaded.partitions,
        partitions_with_records=None if loaded is None else loaded.partitions_with_records,
        machine_cores=found.machine_cores,
        cpu_limits=found.cpu_limits,
        usable_cores={each.name: each.usable_cores(found.cell.tasks) for each in kind.services if each.usable_cores},
    )
    return cause_of(evidence_of(found.samples, found.records, around, found.stopped.task_metrics), kind.rules)


def noted(found: Measured, stalled: Sequence[Stall]) -> list[str]:
    """Notes in words: counts that disagree, stalls, services that did not answer, and tasks that did not run."""
    disagreements = [] if found.audited.audit is None else reconcile(counts_of(found))
    silent = [each.in_words for each in silences(found.samples)]
    return [*disagreements, *(each.in_words for each in stalled), *silent, *interruptions(found)]
