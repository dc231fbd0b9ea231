"""What must hold around a trial: replication before and after it, and no other clients of the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from sinkbench.analysis.replication import (
    ReplicationState,
    acks_in_words,
    acks_nodes,
    as_replicated,
    promise_in_words,
    topic_replication,
)
from sinkbench.analysis.samples import OTHER_CONNECTIONS, OTHER_POOL_CLIENTS, Sample, own_count
from sinkbench.errors import ServiceError
from sinkbench.results import Durability
from sinkbench.services.failures import in_one_line
from sinkbench.trial.following import pool_of
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Before, Others, Replication, met

# New or moved replicas settle within this time.
SETTLE_SECONDS, AGAIN_SECONDS = 10.0, 0.5
# A connector's connections close within this time after its tasks are gone.
CLOSING_SECONDS = 3.0


def replication_before(own: Resources) -> Replication:
    """Returns the state before the connector starts, after a wait for what is not met yet."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        found = replication_now(own, Replication())
        if not found.broken or time.monotonic() > deadline:
            return found
        time.sleep(AGAIN_SECONDS)


def replication_now(own: Resources, before: Replication) -> Replication:
    """Returns the state now, and what was unknown once; a sink or topic on one node can only change by dying."""

    def asked(known: ReplicationState | None, what: str, ask: Callable[[], ReplicationState]) -> ReplicationState:
        if known is not None and known.alone:
            return known
        try:
            return ask()
        except (ServiceError, OSError) as error:
            # If the service does not answer at all, the trial's next request reports it.
            return ReplicationState(unchecked=(f"what must hold {what}: {in_one_line(error)}",))

    def of_sink() -> ReplicationState:
        if (replication := own.sink.capabilities.replication) is None:
            raise ServiceError("this sink does not tell")
        return replication.check(own.names.target, own.config)

    def of_topic() -> ReplicationState:
        brokers, topics = own.cluster.kafka.copies(own.names.topic)
        if not topics.get(own.names.topic):
            raise ServiceError("Kafka does not show its partitions")
        return topic_replication(brokers, topics[own.names.topic])

    sink = asked(before.of_sink, f"in {own.cell.sink}", of_sink)
    topic = asked(before.of_topic, "of the topic", of_topic)
    return Replication(sink, topic, tuple(dict.fromkeys([*before.unchecked, *sink.unchecked, *topic.unchecked])))


def durability_of(own: Resources, found: Replication) -> Durability | None:
    """Returns on how many nodes a record is when it counts as stored; None if the sink does not answer."""
    try:
        settings = own.sink.settings(own.names.target, own.config)
    except (ServiceError, OSError):
        return None
    acks = own.cluster.plan.load.acks if own.cell.acks is None else own.cell.acks
    kafka, brokers = acks_in_words(acks, found.of_topic), acks_nodes(acks, found.of_topic)
    settled = {name: value for name, value in settings.durability.items() if value is not None}
    made = Durability(kafka=kafka, kafka_nodes=brokers, settings=settled)
    if settings.promise is None:
        return made
    promise = as_replicated(settings.promise, found.of_sink)
    told = {"text": promise_in_words(promise), "nodes": promise.nodes, "on_disk": promise.on_disk}
    return made.model_copy(update=told)


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
