"""What must hold around a trial: replication before and after it, and no other clients of the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from sinkbench.analysis.durability import acks_in_words, acks_nodes, as_replicated, promise_in_words
from sinkbench.analysis.replication import ReplicationState, topic_replication
from sinkbench.analysis.samples import OTHER_CONNECTIONS, OTHER_POOL_CLIENTS, Sample, own_count
from sinkbench.errors import ServiceError
from sinkbench.results import Durability
from sinkbench.services.failures import in_one_line
from sinkbench.trial.following import pool_of
from sinkbench.trial.others import Others, met
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Before, Replication

# New or moved replicas settle within this time.
SETTLE_SECONDS, AGAIN_SECONDS = 10.0, 0.5


def replication_before(own: Resources) -> Replication:
    """Returns the state before the connector starts, after a wait for what is not met yet."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        found = _look(own, Replication())
        if not found.broken or time.monotonic() > deadline:
            return found
        time.sleep(AGAIN_SECONDS)


def replication_after(own: Resources, before: Replication) -> Replication:
    """Returns the state now; what cannot have changed is copied from `before`."""
    return _look(own, before)


def _look(own: Resources, before: Replication) -> Replication:
    of_sink, of_topic = before.of_sink, before.of_topic
    if of_sink is None or not of_sink.alone:
        of_sink = _asked(f"what must hold in {own.cell.sink}", lambda: _ask_sink(own))
    if of_topic is None or not of_topic.alone:
        of_topic = _asked("what must hold of the topic", lambda: _ask_topic(own))
    # What was unknown once is not known of the whole trial.
    unchecked = dict.fromkeys([*before.unchecked, *of_sink.unchecked, *of_topic.unchecked])
    return Replication(of_sink, of_topic, tuple(unchecked))


def _asked(what: str, ask: Callable[[], ReplicationState]) -> ReplicationState:
    try:
        return ask()
    except (ServiceError, OSError) as error:
        # If the service does not answer at all, the trial's next request reports it.
        return ReplicationState(unchecked=(f"{what}: {in_one_line(error)}",))


def _ask_sink(own: Resources) -> ReplicationState:
    replication = own.sink.capabilities.replication
    if replication is None:
        return ReplicationState(unchecked=(f"what must hold in {own.cell.sink}: this sink does not tell",))
    return replication.check(own.names.target, own.config)


def _ask_topic(own: Resources) -> ReplicationState:
    topic = own.names.topic
    brokers, topics = own.cluster.kafka.copies(topic)
    if not topics.get(topic):
        return ReplicationState(
            unchecked=("whether the topic's copies are in sync: Kafka does not show its partitions",)
        )
    return topic_replication(brokers, topics[topic])


def durability_of(own: Resources, found: Replication) -> Durability | None:
    """Returns on how many nodes a record is when it counts as stored; None if the sink does not answer."""
    try:
        settings = own.sink.settings(own.names.target, own.config)
    except (ServiceError, OSError):
        return None
    acks = own.cluster.plan.load.acks if own.cell.acks is None else own.cell.acks
    kafka, brokers = acks_in_words(acks, found.of_topic), acks_nodes(acks, found.of_topic)
    settled = {name: value for name, value in settings.durability.items() if value is not None}
    if settings.promise is None:
        return Durability(kafka=kafka, kafka_nodes=brokers, settings=settled)
    promise = as_replicated(settings.promise, found.of_sink)
    return Durability(
        text=promise_in_words(promise),
        nodes=promise.nodes,
        on_disk=promise.on_disk,
        kafka=kafka,
        kafka_nodes=brokers,
        settings=settled,
    )


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
