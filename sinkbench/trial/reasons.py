"""Checks what a trial found, and gives the reasons why its figures must not be used, causes before consequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sinkbench.analysis.deadletters import causes
from sinkbench.analysis.reconcile import reconcile
from sinkbench.analysis.replication import Broken
from sinkbench.analysis.samples import rejected_writes, used_up
from sinkbench.analysis.stalls import idle_tasks
from sinkbench.analysis.words import few_of
from sinkbench.errors import Interrupted, ReasonCode, ServiceError, TrialFailed
from sinkbench.results import Reason, Reconciliation
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import sink_kind
from sinkbench.trial.following import uneven
from sinkbench.trial.resources import Observer
from sinkbench.trial.stop import advice_on_memory
from sinkbench.trial.values import Loaded, Measured


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
        raise TrialFailed("; ".join(each.text for each in wrong), ReasonCode.COUNTS_DISAGREE)
    return loaded


def check_stopped(found: Measured, notes: Notes) -> None:
    """Checks that all tasks ran, evenly spread, and read exactly the topic."""
    if not found.policy.judges_pipeline:
        return
    tasks, workers, placed = found.cell.tasks, found.cell.workers, dict(found.timeline.placement or {})
    if failed := found.timeline.failed_tasks:
        code = ReasonCode.OUT_OF_MEMORY if found.timeline.out_of_memory else ReasonCode.TASKS_FAILED
        text = f"{failed} of {tasks} tasks FAILED: {failure_of(found)}"
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
    audited, policy = found.audited, found.policy
    if audited.audit is None:
        return
    # Bad records that the sink accepts are not part of the load, and were not written by another client.
    if audited.audit.foreign > found.faulted.poisoned:
        text = f"{audited.audit.foreign:,} rows in the sink are none of this trial's records"
        notes.add(ReasonCode.FOREIGN_RECORDS, text, foreign=audited.audit.foreign)
    if audited.letters and policy.judges_pipeline:
        count, reason = len(audited.letters), causes(audited.letters)[0].reason
        text = f"{count:,} {'record is a dead letter' if count == 1 else 'records are dead letters'}"
        text += f"{f' ({reason})' if reason else ''}; `sinkbench dlq {found.before.queue.name}` explains them"
        notes.add(ReasonCode.DEAD_LETTERS, text, records=count)
    for what, keys in audited.wrong_keys.items():
        count = getattr(audited.audit, what)
        text = f"{count:,} {'key is' if count == 1 else 'keys are'} {what}: {few_of(keys, count)}"
        notes.add(ReasonCode(what), text, keys=count)
    if not policy.judges_pipeline:
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
        for each in reconcile(counts_of(found)):
            if each.invalid:
                # Restarted tasks lose their counts.
                notes.add(ReasonCode.COUNTS_DISAGREE, "; ".join([each.text, *interruptions(found)]))


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
    if found.cell.before is not None or not found.policy.judges_pipeline:
        return []
    return [each.in_words for each in idle_tasks(found.samples, found.records, found.cell.tasks)]


def failure_of(found: Measured) -> str | None:
    """Returns why tasks failed, if some did: the cause, then their own message."""
    last, limit = found.timeline.last, found.before.connection_limit
    cause = None if last is None else last.cause()
    if cause is not None and found.timeline.out_of_memory:
        return advice_on_memory(cause)
    peak, refusal = used_up(found.samples, limit), found.stopped.refusal
    if cause is None or (peak is None and refusal is None):
        return cause
    if peak is None:
        return f"the connector's connection, tried from here: {refusal} (the task says: {cause})"
    return f"too many clients already, {peak} of the server's {limit} connections are open ({cause})"
