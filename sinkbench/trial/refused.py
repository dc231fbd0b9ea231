"""Finds why records are lost: writes one of them to the sink directly and keeps the error."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

from loadgen.forms import DOCUMENT, is_row
from sinkbench.analysis.content import documents_of
from sinkbench.errors import ServiceError
from sinkbench.sinks import Destination, Refused, open_writer, sink_kind
from sinkbench.trial.resources import Resources

# A lost record is searched in this many records of a topic, which takes about a second.
MOST_RECORDS = 20_000


def why_refused(own: Resources, is_lost: Callable[[int], bool]) -> str | None:
    """Returns the sink's error when a plain client writes a lost record to it; `is_lost` decides by `seq`.

    None if the sink accepts the record, no lost record was found, or the sink has no plain client or does not answer.
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
