"""Why records are lost: one of them is written to the sink from here, which may say what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

from loadgen.forms import DOCUMENT, is_row
from sinkbench.analysis.content import documents_of
from sinkbench.errors import ServiceError
from sinkbench.sinks import Destination, Refused, open_writer, sink_kind
from sinkbench.trial.resources import Resources

__all__ = ["why_refused"]

# In N records of a topic one is searched that is lost: a second's work.
MOST_RECORDS = 20_000


def why_refused(own: Resources, is_lost: Callable[[int], bool]) -> str | None:
    """What the sink says when a lost record is written to it by a plain client, after the audit.

    Args:
        own: the trial, whose connector is gone.
        is_lost: tells of a record's `seq` whether it is lost.

    Returns:
        The sink's words. None if it takes the record, if none of the records that were read is lost, or if the
        sink has no plain client, or none for rows, or does not answer.
    """
    cell, names, cluster = own.cell, own.names, own.cluster
    ways = sink_kind(cell.sink).writers
    if not ways or is_row(cell.form):
        return None
    try:
        values = cluster.kafka.some_records(names.topic, MOST_RECORDS)
        found = ((value, documents_of([value], names.trial, cell.form)) for value in values if value)
        value, documents = next(((value, kept) for value, kept in found if any(map(is_lost, kept))), (b"", {}))
        if not documents:
            return None
        if cell.form != DOCUMENT:
            # The sink gets the record without what is around it.
            value = json.dumps(*documents.values()).encode()
        to = Destination(cell.sink, next(iter(ways)), names.target, cluster.stack.endpoints.sinks[cell.sink])
        with closing(open_writer(to)) as writer:
            writer.write(writer.batch([value]))
    except Refused as error:
        return str(error)
    except (ServiceError, OSError):
        return None
    return None
