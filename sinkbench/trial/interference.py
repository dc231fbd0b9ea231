"""Other clients of the cluster during a trial: connectors, load, and connections that are not the connector's."""

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

__all__ = ["connections_of", "exclude_existing", "others_met", "others_now", "unattributed"]

# A connector's own connections are closed within so long after its tasks are gone.
CLOSING_SECONDS = 3.0


def others_now(own: Resources) -> Others | None:
    """Other clients at this moment; None if that cannot be seen, which changes nothing else."""
    names = own.names
    with suppress(ServiceError, OSError):
        return own.cluster.others([own.cell.sink], {each.connector for each in (names, names.renamed, names.second)})
    return None


def exclude_existing(own: Resources) -> None:
    """Connections that are open by now, before the connector, are others'."""
    if (others := own.sink.capabilities.others) is not None:
        others.exclude_existing()


def unattributed(own: Resources, samples: Sequence[Sample]) -> int | None:
    """Connections that came while the connector ran and are there without it: others'. None if that is not known."""
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
    """Other clients since `before`, a phrase each. The connector's own dead letter queue is none of them."""
    now = others_now(own)
    if before.others is None or now is None:
        return []
    queue = before.queue.name
    return met(before.others, now, own.records, lambda topic: topic == queue or _keeps_status(own, topic))


def _keeps_status(own: Resources, topic: str) -> bool:
    """Whether Connect keeps its connectors' status in that topic; not if that cannot be seen."""
    with suppress(ServiceError, OSError):
        return own.cluster.kafka.keeps_status(topic, own.names.connector)
    return False


def connections_of(found: Measured) -> Connections:
    """The most connections of the trial's own, as far as they can be distinguished from others."""
    others = (found.stopped.unattributed or 0) if found.policy.shares_sink else 0
    clients, servers = (None, None) if others else connection_peaks(found.samples)
    limit = found.before.connection_limit
    return Connections(clients_peak=clients, server_peak=servers, server_limit=limit, others=others)
