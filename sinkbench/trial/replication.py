"""Checks replication before and after a trial: replicas in sync, shards and leaders spread.

A sink or topic on one node is checked once: it can only change by dying, which other checks detect."""

from __future__ import annotations

import time
from collections.abc import Callable

from sinkbench.analysis.durability import acks_in_words, acks_nodes, as_replicated, promise_in_words
from sinkbench.analysis.replication import ReplicationState, topic_replication
from sinkbench.errors import ServiceError
from sinkbench.results import Durability
from sinkbench.services.failures import in_one_line
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Replication

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
