"""Audits what the sink stores after the connector has stopped, per record or per key."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from loadgen.changestream import last_versions
from loadgen.options import Changes
from loadgen.records import key_names
from sinkbench.analysis.audit import SeqAudit, few_ranges
from sinkbench.analysis.content import Content, documents_of
from sinkbench.analysis.deadletters import QUEUE, DeadLetter
from sinkbench.analysis.versions import VersionAudit
from sinkbench.errors import ReasonCode, ServiceError, TrialFailed
from sinkbench.services.deadletters import DeadLetterQueue
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import needed
from sinkbench.trial.contents import stored_content
from sinkbench.trial.refused import why_refused
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Audited, Measured, Queue


def audit(own: Resources, found: Measured) -> Audited:
    """Compares stored with produced records, if the connector has read the whole topic."""
    if why := diverted(own):
        return replace(found.audited, diverted=why, why_not=why)
    # After a fault, records that never arrived are lost.
    if not (found.read_all or found.policy.audits_unread):
        return found.audited
    return count(own, found)


def diverted(own: Resources) -> str | None:
    """Returns why the connector's records do not reach the target; None if they do, or if the sink does not say."""
    others = own.sink.capabilities.others
    return None if others is None else others.diverted(own.names.target)


def count(own: Resources, found: Measured) -> Audited:
    own.observer.phase("auditing")
    found_rows = counted(own)
    letters = letters_of(own, found.before.queue)
    if isinstance(found_rows, SeqAudit):
        dead = documents_of([letter.value for letter in letters], own.names.trial, own.cell.form)
        found_rows.add_dead(sorted(dead))
    content, notes = _content(own)
    counts = {"compared": content.compared, "checked": content.checked, "altered": content.altered}
    audited = replace(
        found.audited,
        audit=found_rows.result().model_copy(update=counts),
        why_not="",
        letters=letters,
        content_notes=notes,
        altered_ranges=content.altered_ranges,
    )
    if isinstance(found_rows, VersionAudit):
        return replace(audited, wrong_keys=found_rows.wrong_keys())
    lost = audited.audit is not None and audited.audit.lost and found.policy.judges_pipeline
    return replace(
        audited,
        lost_ranges=found_rows.lost_ranges(),
        duplicated_ranges=found_rows.duplicated_ranges(),
        refused=why_refused(own, found_rows.is_lost) if lost else None,
    )


def counted(own: Resources) -> SeqAudit | VersionAudit:
    """Counts all stored records of the trial: by key if the load changes keys, else by record."""
    plan, target, trial = own.cluster.plan, own.names.target, own.names.trial
    own.sink.settle(target)
    rows = 0
    if plan.changes is not None:
        last = last_versions(Changes(**plan.changes.model_dump()), plan.load.keys, own.records)
        by_key = VersionAudit(own.records, key_names(plan.load.keys), *last)
        for chunk, seqs in needed(own.sink.capabilities.changes, "changes").versions(target, trial):
            by_key.add(chunk, seqs)
            rows += len(chunk)
        by_key.add_foreign(_foreign(own, rows))
        return by_key
    by_seq = SeqAudit(own.records)
    for seqs in own.sink.sequences(target, trial):
        by_seq.add(seqs)
        rows += len(seqs)
    by_seq.add_foreign(_foreign(own, rows))
    return by_seq


def _foreign(own: Resources, rows: int) -> int:
    """Counts rows that are neither the trial's nor from before it. Raises TrialFailed if some of the latter are gone.

    The sink's count includes other trials' records and those without a number; the sequences do not.
    """
    before = own.cell.rows_before
    others = own.sink.count(own.names.target) - rows - before
    if others < 0 and before:
        gone = f"{-others:,} of the {before:,} rows that were there before are gone"
        raise TrialFailed(gone, ReasonCode.COUNTS_DISAGREE)
    return others


def _content(own: Resources) -> tuple[Content, Sequence[str]]:
    content, why = None, "the sink does not tell what it holds"
    try:
        content = stored_content(own)
    except (ServiceError, OSError) as error:
        why = in_one_line(error)
    notes = []
    if content is not None and content.altered:
        which = f" (bench.seq {few_ranges(content.altered_ranges)})" if content.altered_ranges else ""
        share = f"{content.altered:,} of {content.compared:,} records that were compared{which}"
        how = content.how or "their checksums are not those of their values"
        notes.append(f"{share} are not stored as they were sent: {how}")
    elif content is None or not content.compared:
        why = why if content is None else "the sink keeps no document of the records that were looked for"
        notes.append(f"what is stored was not compared with what was sent: {why}")
    if content is not None and content.compared and content.unchecked:
        share = "no record was compared with its checksum"
        if content.checked:
            share = f"{content.checked:,} of {own.records:,} records were compared with their checksums"
        notes.append(f"{share}: {content.unchecked}")
    return content or Content(), notes


def queue_of(own: Resources) -> Queue:
    """State of the connector's dead letter queue, which is kept after the trial."""
    name = own.config.get(QUEUE) or None
    # Connect creates the topic with the first connector that names it.
    there = name is not None and name in own.cluster.kafka.topics()
    return Queue(name, own.cluster.kafka.end_offsets(name) if name is not None and there else {})


def letters_of(own: Resources, queue: Queue) -> list[DeadLetter]:
    """Returns the dead letters of the trial's topic, and those without Connect's headers, whose topic is unknown."""
    if queue.name is None or queue.name not in own.cluster.kafka.topics():
        return []
    endpoints = own.cluster.stack.endpoints
    with closing(DeadLetterQueue(endpoints.kafka, endpoints.kafka_settings, queue.name, queue.since)) as opened:
        letters = [DeadLetter(*record) for record in opened.records()]
    return [each for each in letters if each.source is None or each.source[0] == own.names.topic]
