"""Finds other clients of the cluster during a trial: connectors, load, and connections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from sinkbench.analysis.samples import OTHER_CONNECTIONS, OTHER_POOL_CLIENTS, Sample, connection_peaks, own_count
from sinkbench.errors import ServiceError
from sinkbench.results import Connections
from sinkbench.trial.others import Others, met
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Before, Measured

# A connector's connections close within this time after its tasks are gone.
CLOSING_SECONDS = 3.0


def others_now(own: Resources) -> Others | None:
    names = own.names
    with suppress(ServiceError, OSError):
        return own.cluster.others([own.cell.sink], {each.connector for each in (names, names.renamed, names.second)})
    return None


def exclude_existing(own: Resources) -> None:
    """Counts connections that are open before the connector starts as other clients'."""
    if (others := own.sink.capabilities.others) is not None:
        others.exclude_existing()


def unattributed(own: Resources, samples: Sequence[Sample]) -> int | None:
    """Returns the connections that were opened during the run and remain without the connector; None if not known."""
    sink, found = own.sink, None
    if sink.capabilities.others is None:
        return None
    pooled = any(own_count(each.pool_clients, each.signs, OTHER_POOL_CLIENTS) for each in samples)
    deadline = time.monotonic() + CLOSING_SECONDS
    with suppress(ServiceError, OSError):
        while True:
            seen = sink.read(own.names.target)
            count, sign = (seen.pool_clients, OTHER_POOL_CLIENTS) if pooled else (seen.backends, OTHER_CONNECTIONS)
            found = own_count(count, seen.signs, sign)
            if not found or time.monotonic() > deadline:
                break
            time.sleep(0.2)
    return found


def others_met(own: Resources, before: Before) -> list[str]:
    """Returns the other clients since `before`, a phrase each, without the connector's dead letter queue."""
    now = others_now(own)
    if before.others is None or now is None:
        return []
    queue = before.queue.name
    return met(before.others, now, own.records, lambda topic: topic == queue or _keeps_status(own, topic))


def _keeps_status(own: Resources, topic: str) -> bool:
    """Whether the topic is Connect's status topic; False if that cannot be seen."""
    with suppress(ServiceError, OSError):
        return own.cluster.kafka.keeps_status(topic, own.names.connector)
    return False


def connections_of(found: Measured) -> Connections:
    """Maximum of the trial's own connections, as far as they can be distinguished."""
    others = (found.stopped.unattributed or 0) if found.policy.shares_sink else 0
    clients, servers = (None, None) if others else connection_peaks(found.samples)
    limit = found.before.connection_limit
    return Connections(clients_peak=clients, server_peak=servers, server_limit=limit, others=others)
