"""Compares what the sink stores with what was sent: a few records with the topic's, and many with their checksums."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from sinkbench.analysis.checksums import ChecksumAudit, bear_checksums, one_in
from sinkbench.analysis.content import Content, compare_content, documents_of
from sinkbench.errors import ServiceError
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import Sink
from sinkbench.trial.names import Names
from sinkbench.trial.resources import Resources

# Enough to see what happens to every record, or to one in twenty, and few enough to be fast.
COMPARED_RECORDS = 64
# Large records are compared in smaller number.
LEAST_COMPARED, COMPARED_BYTES = 4, 8_000_000
# Limits the time that a slow machine or sink can take.
CHECK_SECONDS = 10.0
AT_ONCE, AT_ONCE_BYTES = 2_000, 8_000_000


def stored_content(own: Resources) -> Content | None:
    cluster = own.cluster
    count = max(LEAST_COMPARED, min(COMPARED_RECORDS, int(COMPARED_BYTES / cluster.record_bytes)))
    # With changes the sink keeps only the last versions.
    values = cluster.kafka.some_records(own.names.topic, count, last=cluster.plan.changes is not None)
    sent = documents_of(values, own.names.trial, own.cell.form)
    return content_of(own.sink, own.names, sent, own.records, cluster.record_bytes)


def content_of(sink: Sink, names: Names, sent: Mapping[int, Any], records: int, record_bytes: float) -> Content | None:
    """Compares stored records with the sent documents by `seq`, and others with their checksums.

    None if the sink cannot return documents. Raises ServiceError if it does not return the sent ones.
    """
    documents = sink.capabilities.documents
    if documents is None:
        return None
    audit = ChecksumAudit(records, compare_content(sent, documents.some(names.target, names.trial, sorted(sent))))
    if not bear_checksums(sent):
        return audit.result("records of this form, or of this load generator, bear none")
    give_up = time.monotonic() + CHECK_SECONDS
    at_once = max(1, min(AT_ONCE, int(AT_ONCE_BYTES / record_bytes)))
    try:
        with ExitStack() as opened:
            chunks = documents.all(names.target, names.trial, one_in(records, record_bytes), at_once)
            if hasattr(chunks, "close"):
                opened.callback(chunks.close)
            for chunk in chunks:
                audit.add(chunk)
                if time.monotonic() > give_up:
                    return audit.result(f"it took longer than {CHECK_SECONDS:g} s")
    except (ServiceError, OSError) as error:
        return audit.result(in_one_line(error))
    found = audit.result()
    return found if found.checked else audit.result("the sink gives no documents back")
