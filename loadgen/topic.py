"""Creates or checks the topic before the load."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from loadgen.clientconfig import hide
from loadgen.errors import BrokerError, OptionsError, TopicError
from loadgen.options import Load

BROKER_TIMEOUT_SECONDS = 8.0
PAUSE_SECONDS = 0.1
BROKERS_OWN = -1
# Brokers' default maximum of a batch, and the overhead of a batch of one record.
USUAL_MOST_BYTES = 1_048_588
BATCH_OVERHEAD_BYTES = 1_000
# The client's names for a refused login and an untrusted certificate.
REFUSALS = frozenset({"_AUTHENTICATION", "_SSL"})


# For the Kafka client's own lines, which are not shown without another handler.
LOGGER = logging.getLogger("loadgen.kafka")
LOGGER.addHandler(logging.NullHandler())
LOGGER.propagate = False


def open_client(kind: Callable[..., Any], config: Mapping[str, Any], client_settings: Mapping[str, str]) -> Any:
    """Returns a client of class `kind`. Raises OptionsError without secret values if it refuses `config`."""
    try:
        return kind(dict(config), logger=LOGGER)
    except KafkaException as error:
        why = hide(str(error.args[0].str()), client_settings)
        raise OptionsError(
            f"client-config: the Kafka client cannot use its settings ({why}); correct what this names"
        ) from None


def prepare_topic(load: Load, client_settings: Mapping[str, str], largest_bytes: int = 0) -> None:
    """Creates the topic unless it exists, and waits for its leaders; other processes may do so at the same time.

    Raises BrokerError if no broker answers within 8 s or it refuses, OptionsError for refused client settings, and
    TopicError if the topic has other partitions or replicas than asked.
    """
    admin = _Admin(load, client_settings)
    if admin.partitions() is None:
        admin.create(topic_config(largest_bytes))
    # A topic that another process is creating may not have its leaders yet.
    _check(load, admin.await_leaders())


def topic_config(largest_bytes: int) -> dict[str, str]:
    needed = largest_bytes + BATCH_OVERHEAD_BYTES
    return {} if needed <= USUAL_MOST_BYTES else {"max.message.bytes": str(needed)}


class _Admin:
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
        try:
            # Lists all topics: a request for a missing one makes some brokers create it, with their own defaults.
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
                "correct security.*, sasl.* and ssl.* in the file of --client-config"
            )
        # "All brokers are down" follows every other error, and gives no reason.
        reasons = [each for each in self._seen if each.name() != "_ALL_BROKERS_DOWN"]
        why = self._text(reasons[-1] if reasons else error)
        more = ", or correct the file of --client-config" if self._settings else ""
        return BrokerError(
            f"bootstrap: no broker answers at {at} within {BROKER_TIMEOUT_SECONDS:g} s ({why}); "
            f"start it, or give its address with --bootstrap{more}"
        )

    def _text(self, error: Any) -> str:
        return hide(str(error.str()), self._settings)

    def create(self, config: Mapping[str, str]) -> None:
        load = self._load
        new = NewTopic(load.topic, load.partitions or BROKERS_OWN, load.replication or BROKERS_OWN, config=dict(config))
        try:
            self._admin.create_topics([new], operation_timeout=BROKER_TIMEOUT_SECONDS)[load.topic].result()
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise BrokerError(
                    f"topic {load.topic}: the broker does not create it ({self._text(error.args[0])}); "
                    "give other --partitions or --replication, or create it yourself"
                ) from None

    def await_leaders(self) -> dict[int, Any]:
        give_up = time.monotonic() + BROKER_TIMEOUT_SECONDS
        while time.monotonic() < give_up:
            partitions = self.partitions()
            if partitions and all(partition.leader >= 0 for partition in partitions.values()):
                return partitions
            time.sleep(PAUSE_SECONDS)
        raise BrokerError(
            f"topic {self._load.topic}: has partitions without a leader for {BROKER_TIMEOUT_SECONDS:g} s; "
            "check the broker's log, then try again"
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
