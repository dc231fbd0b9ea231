"""Audits what the sink stores after the connector has stopped: per record or per key, and what the records contain."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from loadgen.changestream import last_versions
from loadgen.checksum import parse
from loadgen.dataset.store import Dataset
from loadgen.forms import DOCUMENT, is_row
from loadgen.records import key_names
from sinkbench.analysis import content as contents
from sinkbench.analysis.audit import SeqAudit, VersionAudit, few_ranges
from sinkbench.analysis.content import Content, compare_content
from sinkbench.analysis.deadletters import QUEUE, DeadLetter
from sinkbench.errors import ReasonCode, ServiceError, TrialFailed
from sinkbench.services.deadletters import DeadLetterQueue
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import Destination, Refused, Sink, needed, open_writer, sink_kind
from sinkbench.trial.names import Names
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Audited, Measured, Queue

# Enough to see what happens to every record, or to one in twenty, and fast; of large records fewer are compared.
COMPARED_RECORDS = 64
LEAST_COMPARED, COMPARED_BYTES = 4, 8_000_000
# Limits the time that a slow machine or sink can take.
CHECK_SECONDS = 10.0
AT_ONCE, AT_ONCE_BYTES = 2_000, 8_000_000
# A lost record is searched in this many records of a topic, which takes about a second.
MOST_RECORDS = 20_000


def audit(own: Resources, found: Measured) -> Audited:
    """Compares stored with produced records, if the connector has read the whole topic."""
    if why := diverted(own):
        return replace(found.audited, diverted=why, why_not=why)
    # After a fault, records that never arrived are lost.
    return count(own, found) if found.read_all or found.has_fault else found.audited


def diverted(own: Resources) -> str | None:
    """Returns why the connector's records do not reach the target; None if they do, or if the sink does not say."""
    others = own.sink.capabilities.others
    return None if others is None else others.diverted(own.names.target)


def count(own: Resources, found: Measured) -> Audited:
    own.observer.phase("auditing")
    found_rows = counted(own)
    letters = letters_of(own, found.before.queue)
    if isinstance(found_rows, SeqAudit):
        dead = contents.documents_of([letter.value for letter in letters], own.names.trial, own.cell.form)
        found_rows.add_dead(sorted(dead))
    content, notes = _content(own)
    counts = {"compared": content.compared, "checked": content.checked, "altered": content.altered}
    made = found_rows.result().model_copy(update=counts)
    audited = replace(found.audited, audit=made, why_not="", letters=letters)
    audited = replace(audited, content_notes=notes, altered_ranges=content.altered_ranges)
    if isinstance(found_rows, VersionAudit):
        return replace(audited, wrong_keys=found_rows.wrong_keys())
    return replace(
        audited,
        lost_ranges=found_rows.lost_ranges(),
        duplicated_ranges=found_rows.duplicated_ranges(),
        refused=why_refused(own, found_rows.is_lost) if made.lost and not found.has_fault else None,
    )


def counted(own: Resources) -> SeqAudit | VersionAudit:
    """Counts all stored records of the trial: by key if the load or the pipeline replaces records, else by record."""
    plan, target, trial = own.cluster.plan, own.names.target, own.names.trial
    own.sink.settle(target)
    rows = 0
    found: SeqAudit | VersionAudit
    if plan.changes is not None:
        last = last_versions(plan.changes, plan.load.keys, own.records)
        found = VersionAudit(own.records, key_names(plan.load.keys), *last)
        for keys, of_keys in needed(own.sink.capabilities.changes, "changes").versions(target, trial):
            found.add(keys, of_keys)
            rows += len(keys)
    elif own.keyed:
        names, places = _keys(own)
        last_seqs = np.full(len(names), -1, dtype=np.int64)
        # Of several assignments to one place numpy keeps the last.
        last_seqs[places] = np.arange(own.records)
        found = VersionAudit(own.records, names, last_seqs, last_seqs >= 0)
        for seqs in own.sink.sequences(target, trial):
            ours = (seqs >= 0) & (seqs < own.records)
            found.add_places(np.where(ours, places[np.where(ours, seqs, 0)], -1), seqs)
            rows += len(seqs)
    else:
        found = SeqAudit(own.records)
        for seqs in own.sink.sequences(target, trial):
            found.add(seqs)
            rows += len(seqs)
    # The sink's count includes other trials' records and those without a number.
    before = own.cell.rows_before
    others = own.sink.count(target) - rows - before
    if others < 0 and before:
        gone = f"{-others:,} of the {before:,} rows that were there before are gone"
        raise TrialFailed(gone, ReasonCode.COUNTS_DISAGREE)
    found.add_foreign(others)
    return found


def _keys(own: Resources) -> tuple[Sequence[str], npt.NDArray[np.int64]]:
    """The keys of a load's records, and the place among them of each record's key."""
    kept, keys = own.cluster.records, own.cluster.plan.load.keys
    names, places = (key_names(keys), np.arange(keys)) if kept is None else Dataset.read(kept.path).keys()
    return names, np.resize(places, own.records)


def _content(own: Resources) -> tuple[Content, Sequence[str]]:
    content, why = None, "the sink does not tell what it holds"
    try:
        content = stored_content(own)
    except (ServiceError, OSError) as error:
        why = in_one_line(error)
    if content is None or not content.compared:
        why = why if content is None else "the sink keeps no document of the records that were looked for"
        return content or Content(), [f"what is stored was not compared with what was sent: {why}"]
    notes = []
    if content.altered:
        which = f" (bench.seq {few_ranges(content.altered_ranges)})" if content.altered_ranges else ""
        share = f"{content.altered:,} of {content.compared:,} records that were compared{which}"
        how = content.how or "their checksums are not those of their values"
        notes.append(f"{share} {contents.NOT_AS_SENT}{how}")
    if content.unchecked:
        share = "no record was compared with its checksum"
        if content.checked:
            share = f"{content.checked:,} of {own.records:,} records were compared with their checksums"
        notes.append(f"{share}: {content.unchecked}")
    return content, notes


def stored_content(own: Resources) -> Content | None:
    """Compares a few stored records with the topic's, and many with their checksums."""
    cluster = own.cluster
    count = max(LEAST_COMPARED, min(COMPARED_RECORDS, int(COMPARED_BYTES / cluster.record_bytes)))
    # By key the sink keeps only the last versions.
    last = own.keyed or cluster.plan.changes is not None
    values = cluster.kafka.some_records(own.names.topic, count, last=last)
    sent = contents.documents_of(values, own.names.trial, own.cell.form)
    found = content_of(own.sink, own.names, sent, own.records, cluster.record_bytes)
    if found is None or not found.altered or found.how or cluster.records is None:
        return found
    # None of these is altered, but your own records are at hand.
    dataset = Dataset.read(cluster.records.path)
    sent = {seq: parse(dataset.value(seq % dataset.facts.records)) for seq in found.altered_seqs}
    stored = needed(own.sink.capabilities.documents, "documents").some(own.names.target, own.names.trial, sorted(sent))
    return replace(found, how=compare_content(sent, stored).how)


def content_of(sink: Sink, names: Names, sent: Mapping[int, Any], records: int, record_bytes: float) -> Content | None:
    """Compares stored records with the sent documents by `seq`, and others with their checksums.

    None if the sink cannot return documents. Raises ServiceError if it does not return the sent ones."""
    if (documents := sink.capabilities.documents) is None:
        return None
    audit = contents.ChecksumAudit(
        records, compare_content(sent, documents.some(names.target, names.trial, sorted(sent)))
    )
    if not contents.bear_checksums(sent):
        return audit.result("records of this form, or of this load generator, bear none")
    give_up = time.monotonic() + CHECK_SECONDS
    at_once = max(1, min(AT_ONCE, int(AT_ONCE_BYTES / record_bytes)))
    try:
        for chunk in documents.all(names.target, names.trial, contents.one_in(records, record_bytes), at_once):
            audit.add(chunk)
            if time.monotonic() > give_up:
                return audit.result(f"it took longer than {CHECK_SECONDS:g} s")
    except (ServiceError, OSError) as error:
        return audit.result(in_one_line(error))
    found = audit.result()
    return found if found.checked else audit.result("the sink gives no documents back")


def why_refused(own: Resources, is_lost: Callable[[int], bool]) -> str | None:
    """Returns the sink's error when a plain client writes a lost record to it; `is_lost` decides by `seq`.

    None if the sink accepts it, no lost record was found, or the sink has no plain client or does not answer."""
    cell, names, cluster = own.cell, own.names, own.cluster
    ways = sink_kind(cell.sink).writers
    if not ways or is_row(cell.form):
        return None
    try:
        values = cluster.kafka.some_records(names.topic, MOST_RECORDS)
        found = ((value, contents.documents_of([value], names.trial, cell.form)) for value in values if value)
        value, documents = next(((value, kept) for value, kept in found if any(map(is_lost, kept))), (b"", {}))
        if not documents:
            return None
        if cell.form != DOCUMENT:
            # The sink gets the record without its envelope.
            value = json.dumps(*documents.values()).encode()
        to = Destination(cell.sink, next(iter(ways)), names.target, cluster.stack.endpoints.sinks[cell.sink])
        with closing(open_writer(to)) as writer:
            writer.write(writer.batch([value]))
    except Refused as error:
        return str(error)
    except (ServiceError, OSError):
        return None
    return None


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
