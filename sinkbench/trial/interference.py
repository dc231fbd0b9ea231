"""Finds other clients of the cluster during a trial: connectors, load, and connections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from sinkbench.analysis.samples import OTHER_CONNECTIONS, OTHER_POOL_CLIENTS, Sample, own_count
from sinkbench.errors import ServiceError
from sinkbench.trial.others import Others, met
from sinkbench.trial.probes import pool_of
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Before

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
    # A service that hangs would hang here, too.
    if sink.capabilities.others is None or (samples and samples[-1].silent):
        return None
    pooled = any(own_count(each.pool_clients, each.signs, OTHER_POOL_CLIENTS) for each in samples)
    deadline = time.monotonic() + CLOSING_SECONDS
    with suppress(ServiceError, OSError):
        while True:
            if pooled:
                pool = pool_of(sink)
                found = own_count(pool.clients, pool.signs, OTHER_POOL_CLIENTS)
            else:
                seen = sink.read(own.names.target)
                found = own_count(seen.backends, seen.signs, OTHER_CONNECTIONS)
            if not found or time.monotonic() > deadline:
                break
            time.sleep(0.2)
    return found


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
