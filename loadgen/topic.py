"""Sees to it that the topic is there and as asked, before anything is measured."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from loadgen.clientconfig import hide
from loadgen.errors import BrokerError, OptionsError, TopicError
from loadgen.options import Load

__all__ = ["BROKER_TIMEOUT_SECONDS", "client_logger", "open_client", "prepare_topic"]

BROKER_TIMEOUT_SECONDS = 8.0
PAUSE_SECONDS = 0.1
BROKERS_OWN = -1
# What the client calls a broker that does not let it in, or whose certificate it does not trust.
REFUSALS = frozenset({"_AUTHENTICATION", "_SSL"})


def client_logger() -> logging.Logger:
    """Where the Kafka client's own log lines go: to `loadgen.kafka`, which shows none unless logging is set up."""
    logger = logging.getLogger("loadgen.kafka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return logger


def open_client(kind: Callable[..., Any], config: Mapping[str, Any], client_settings: Mapping[str, str]) -> Any:
    """A client of the class `kind` with `config`, of which `client_settings` are to be kept secret.

    Raises:
        OptionsError: the Kafka client refuses its settings; the message has none of the secret values.
    """
    try:
        return kind(dict(config), logger=client_logger())
    except KafkaException as error:
        why = hide(str(error.args[0].str()), client_settings)
        raise OptionsError(
            f"client-config: the Kafka client cannot use its settings ({why}); mend what this names"
        ) from None


def prepare_topic(load: Load, client_settings: Mapping[str, str]) -> None:
    """Creates the topic of `load` if it does not exist, and waits until each partition has a leader.

    Others may create the same topic at the same time: all of them come to the topic of the one that was first.

    Args:
        load: what will be produced.
        client_settings: further settings of the Kafka client.

    Raises:
        BrokerError: no broker answers within 8 s, or it lets nobody in, or it refuses to create the topic.
        OptionsError: the Kafka client refuses its settings.
        TopicError: the topic exists with other partitions or replicas than asked.
    """
    admin = _Admin(load, client_settings)
    partitions = admin.partitions()
    if partitions is None:
        admin.create()
    # One that somebody else is creating may be seen before it has its leaders.
    if not _has_leaders(partitions):
        partitions = admin.await_leaders()
    _check(load, partitions)


def _has_leaders(partitions: dict[int, Any] | None) -> TypeGuard[dict[int, Any]]:
    return bool(partitions) and all(partition.leader >= 0 for partition in (partitions or {}).values())


class _Admin:
    """Asks the broker about the topic of one load."""

    def __init__(self, load: Load, client_settings: Mapping[str, str]) -> None:
        self._load = load
        self._settings = client_settings
        self._seen: list[Any] = []
        config = {
            "bootstrap.servers": load.bootstrap,
            "socket.connection.setup.timeout.ms": 5000,
            **client_settings,
            "error_cb": self._seen.append,
        }
        self._admin = open_client(AdminClient, config, client_settings)

    def partitions(self) -> dict[int, Any] | None:
        """The topic's partitions; None if there is no such topic."""
        try:
            # Of all topics: asking for one that does not exist makes some brokers create it, with their own defaults.
            topics = self._admin.list_topics(timeout=BROKER_TIMEOUT_SECONDS).topics
        except KafkaException as error:
            self._admin.poll(0)
            raise self._no_answer(error.args[0]) from None
        found = topics.get(self._load.topic)
        return None if found is None else dict(found.partitions)

    def _no_answer(self, error: Any) -> BrokerError:
        at = self._load.bootstrap
        refused = [each for each in self._seen if each.name() in REFUSALS]
        if refused:
            return BrokerError(
                f"bootstrap: the broker at {at} and this client do not come to terms ({self._text(refused[0])}); "
                "mend security.*, sasl.* and ssl.* in the file of --client-config"
            )
        # That all brokers are down is said after each reason for one, and is none itself.
        reasons = [each for each in self._seen if each.name() != "_ALL_BROKERS_DOWN"]
        why = self._text(reasons[-1] if reasons else error)
        more = ", or mend the file of --client-config" if self._settings else ""
        return BrokerError(
            f"bootstrap: no broker answers at {at} within {BROKER_TIMEOUT_SECONDS:g} s ({why}); "
            f"start it, or give its address with --bootstrap{more}"
        )

    def _text(self, error: Any) -> str:
        return hide(str(error.str()), self._settings)

    def create(self) -> None:
        """Creates the topic; one that is there by now is fine."""
        load = self._load
        new = NewTopic(
            load.topic,
            num_partitions=BROKERS_OWN if load.partitions is None else load.partitions,
            replication_factor=BROKERS_OWN if load.replication is None else load.replication,
        )
        try:
            self._admin.create_topics([new], operation_timeout=BROKER_TIMEOUT_SECONDS)[load.topic].result()
        except KafkaException as error:
            if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                return
            raise BrokerError(
                f"topic {load.topic}: the broker does not create it ({self._text(error.args[0])}); "
                "give other --partitions or --replication, or create it yourself"
            ) from None

    def await_leaders(self) -> dict[int, Any]:
        """The topic's partitions, once each of them has a leader."""
        give_up = time.monotonic() + BROKER_TIMEOUT_SECONDS
        while time.monotonic() < give_up:
            partitions = self.partitions()
            if _has_leaders(partitions):
                return partitions
            time.sleep(PAUSE_SECONDS)
        raise BrokerError(
            f"topic {self._load.topic}: has partitions without a leader for {BROKER_TIMEOUT_SECONDS:g} s; "
            "look at the broker's log, then try again"
        )


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
