"""Sees to it that the topic is there and as asked, before anything is measured."""

from __future__ import annotations

import logging
import time
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from loadgen.errors import BrokerError, TopicError
from loadgen.options import Load

__all__ = ["BROKER_TIMEOUT_SECONDS", "client_logger", "prepare_topic"]

BROKER_TIMEOUT_SECONDS = 8.0
PAUSE_SECONDS = 0.1
BROKERS_OWN = -1


def client_logger() -> logging.Logger:
    """Where the Kafka client's own log lines go: to `loadgen.kafka`, which shows none unless logging is set up."""
    logger = logging.getLogger("loadgen.kafka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return logger


def prepare_topic(load: Load) -> None:
    """Creates the topic of `load` if it does not exist, and waits until each partition has a leader.

    Raises:
        BrokerError: no broker answers within 8 s, or it refuses to create the topic.
        TopicError: the topic exists with other partitions or replicas than asked.
    """
    seen: list[str] = []
    admin = AdminClient(
        {
            "bootstrap.servers": load.bootstrap,
            "socket.connection.setup.timeout.ms": 5000,
            "error_cb": lambda error: seen.append(str(error.str())),
        },
        logger=client_logger(),
    )
    partitions = _partitions(admin, load, seen)
    if partitions is None:
        _create(admin, load)
        partitions = _await_leaders(admin, load, seen)
    _check(load, partitions)


def _partitions(admin: Any, load: Load, seen: list[str]) -> dict[int, Any] | None:
    try:
        # Of all topics: asking for one that does not exist makes some brokers create it, with their own defaults.
        topics = admin.list_topics(timeout=BROKER_TIMEOUT_SECONDS).topics
    except KafkaException as error:
        admin.poll(0)
        why = seen[-1] if seen else str(error.args[0].str())
        raise BrokerError(
            f"bootstrap: no broker answers at {load.bootstrap} within {BROKER_TIMEOUT_SECONDS:g} s ({why}); "
            "start it, or give its address with --bootstrap"
        ) from None
    found = topics.get(load.topic)
    return None if found is None else dict(found.partitions)


def _create(admin: Any, load: Load) -> None:
    new = NewTopic(
        load.topic,
        num_partitions=BROKERS_OWN if load.partitions is None else load.partitions,
        replication_factor=BROKERS_OWN if load.replication is None else load.replication,
    )
    try:
        admin.create_topics([new], operation_timeout=BROKER_TIMEOUT_SECONDS)[load.topic].result()
    except KafkaException as error:
        if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
            return
        raise BrokerError(
            f"topic {load.topic}: the broker does not create it ({error.args[0].str()}); "
            "give other --partitions or --replication, or create it yourself"
        ) from None


def _await_leaders(admin: Any, load: Load, seen: list[str]) -> dict[int, Any]:
    give_up = time.monotonic() + BROKER_TIMEOUT_SECONDS
    while time.monotonic() < give_up:
        partitions = _partitions(admin, load, seen)
        if partitions and all(partition.leader >= 0 for partition in partitions.values()):
            return partitions
        time.sleep(PAUSE_SECONDS)
    raise BrokerError(f"topic {load.topic}: was created, but has no leaders; look at the broker's log, then try again")


def _check(load: Load, partitions: dict[int, Any]) -> None:
    found = len(partitions)
    if load.partitions is not None and found != load.partitions:
        raise TopicError(
            f"topic {load.topic}: has {found} partitions, {load.partitions} are asked for; "
            f"give --partitions {found}, or another topic"
        )
    replicas = min(len(partition.replicas) for partition in partitions.values())
    if load.replication is not None and replicas != load.replication:
        raise TopicError(
            f"topic {load.topic}: has {replicas} replicas of each partition, {load.replication} are asked for; "
            f"give --replication {replicas}, or another topic"
        )
