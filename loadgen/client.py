"""The Kafka clients of a load: one creates or checks its topic, a producer is connected before the first record.

Their further settings, such as those for SASL and TLS, are secret: no message shows a value."""

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from loadgen.errors import BrokerError, OptionsError
from loadgen.options import Load
from loadgen.reading import read_option

BROKER_TIMEOUT_SECONDS = 8.0
PAUSE_SECONDS = 0.05
# Answers of a broker that has not made a partition's log yet.
NOT_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART)
MOST_IN_FLIGHT = 50_000
MOST_IN_FLIGHT_BYTES = 128 << 20
OVERHEAD_BYTES = 1_000
"""More than a record takes in a batch of its own, in addition to its value and key."""
# Brokers' default maximum of a batch.
USUAL_MOST_BYTES = 1_048_588
POLL_SECONDS = 0.05

# For the Kafka client's own lines, which are not shown without another handler.
LOGGER = logging.getLogger("loadgen.kafka")
LOGGER.addHandler(logging.NullHandler())
LOGGER.propagate = False


def open_client(kind: Callable[..., Any], config: Mapping[str, Any], client_settings: Mapping[str, str]) -> Any:
    """Returns a client of class `kind`. Raises OptionsError without secret values if it refuses `config`."""
    try:
        return kind({**config, **client_settings}, logger=LOGGER)
    except KafkaException as error:
        raise OptionsError(
            f"client-config: the Kafka client cannot use its settings ({why(error, client_settings)}); correct what"
            " this names"
        ) from None


def why(error: KafkaException, client_settings: Mapping[str, str], seen: list[Any] | None = None) -> str:
    """The cause of a client's exception in words, without secrets; `seen` are the errors that it reported before."""
    # "All brokers are down" follows every other error, and gives no reason; a refusal is one, whatever follows.
    reasons = [each for each in seen or () if each.name() != "_ALL_BROKERS_DOWN"]
    reasons = [each for each in reasons if each.name() in ("_AUTHENTICATION", "_SSL")] or reasons
    return hide(str((reasons[-1] if reasons else error.args[0]).str()), client_settings)


def topic_config(largest_bytes: int) -> dict[str, str]:
    needed = largest_bytes + OVERHEAD_BYTES
    return {} if needed <= USUAL_MOST_BYTES else {"max.message.bytes": str(needed)}


def prepare_topic(load: Load, client_settings: Mapping[str, str], largest_bytes: int) -> None:
    """Creates the topic unless it exists, and waits for its leaders; other processes may do so at the same time.

    Raises BrokerError if no broker answers within 8 s, it refuses, or the topic has other partitions or replicas than
    asked, and OptionsError for refused client settings."""
    seen: list[Any] = []
    config = {"bootstrap.servers": load.bootstrap, "socket.connection.setup.timeout.ms": 5000, "error_cb": seen.append}
    admin = open_client(AdminClient, config, client_settings)

    def partitions() -> dict[int, Any] | None:
        try:
            # Lists all topics: a request for a missing one makes some brokers create it, with their own defaults.
            found = admin.list_topics(timeout=BROKER_TIMEOUT_SECONDS).topics.get(load.topic)
        except KafkaException as error:
            admin.poll(0)
            raise BrokerError(
                f"bootstrap: no broker answers at {load.bootstrap} within {BROKER_TIMEOUT_SECONDS:g} s"
                f" ({why(error, client_settings, seen)}); start it, give its address with --bootstrap, or correct"
                " security.*, sasl.* and ssl.* in the file of --client-config"
            ) from None
        return None if found is None else dict(found.partitions)

    if partitions() is None:
        new = NewTopic(load.topic, load.partitions or -1, load.replication or -1, config=topic_config(largest_bytes))
        try:
            admin.create_topics([new], operation_timeout=BROKER_TIMEOUT_SECONDS)[load.topic].result()
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise BrokerError(
                    f"topic {load.topic}: the broker does not create it ({why(error, client_settings)}); "
                    "give other --partitions or --replication, or create it yourself"
                ) from None
    # A leader refuses records until it has made its log; one that was sent meanwhile was once acknowledged and lost.
    give_up = time.monotonic() + BROKER_TIMEOUT_SECONDS
    while not (found := partitions()) or not _lead(admin, load.topic, found):
        if time.monotonic() >= give_up:
            raise BrokerError(
                f"topic {load.topic}: has partitions without a leader for {BROKER_TIMEOUT_SECONDS:g} s; "
                "check the broker's log, then try again"
            )
        time.sleep(PAUSE_SECONDS)
    replicas = min(len(each.replicas) for each in found.values())
    for option, asked, number, what in (
        ("partitions", load.partitions, len(found), "partitions"),
        ("replication", load.replication, replicas, "replicas of each partition"),
    ):
        if asked is not None and asked != number:
            raise BrokerError(
                f"topic {load.topic}: has {number} {what}, {asked} are asked for; give --{option} {number}, or another"
                " topic"
            )


def _lead(admin: AdminClient, topic: str, partitions: Mapping[int, Any]) -> bool:
    """Whether each partition has a leader that answers."""
    if any(partition.leader < 0 for partition in partitions.values()):
        return False
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}
    for answer in admin.list_offsets(asked, request_timeout=BROKER_TIMEOUT_SECONDS).values():
        try:
            answer.result()
        except KafkaException as error:
            # Whoever may write need not be allowed to ask.
            if error.args[0].code() in NOT_YET:
                return False
    return True


def producer_config(load: Load, largest_bytes: int) -> dict[str, Any]:
    """Returns librdkafka's settings for `load`, of which a value and its key have at most `largest_bytes`."""
    return {
        "bootstrap.servers": load.bootstrap,
        "client.id": "loadgen",
        "acks": load.acks,
        # So retries neither duplicate nor reorder. Needs acks=all.
        "enable.idempotence": load.acks == "all",
        # The maximum of an idempotent producer, and a Java producer's default. Without it librdkafka sends a request
        # for every few records, even with many waiting: a broker that falls behind then never catches up.
        "max.in.flight": 5,
        "compression.type": load.compression,
        "linger.ms": load.linger_ms,
        "batch.size": load.batch_bytes,
        "batch.num.messages": 100_000,
        "message.max.bytes": max(1_000_000, load.batch_bytes, largest_bytes + OVERHEAD_BYTES),
        # Chooses the same partitions as a Java producer.
        "partitioner": "murmur2_random",
        "message.timeout.ms": int(load.delivery_timeout_seconds * 1000),
        "delivery.report.only.error": True,
        # Twice the maximum in flight, so that the producer's queue never delays a record.
        "queue.buffering.max.messages": 2 * MOST_IN_FLIGHT,
        "queue.buffering.max.kbytes": 2 * MOST_IN_FLIGHT_BYTES >> 10,
        "socket.nagle.disable": True,
        "statistics.interval.ms": 200,
    }


def open_producer(load: Load, client_settings: Mapping[str, str], largest_bytes: int) -> Producer:
    """Returns a producer that is connected, knows the topic's partitions, and has its producer id if it needs one.

    Raises BrokerError if the broker does not answer, and OptionsError if the client refuses its settings."""
    # Without its id a producer delays the first records by up to half a second, which would look like the broker's
    # latency. Only the client's statistics show when it has one.
    states: set[str] = set()

    def on_statistics(text: str) -> None:
        states.add(str(json.loads(text).get("eos", {}).get("idemp_state")))

    config = {**producer_config(load, largest_bytes), "stats_cb": on_statistics}
    producer: Producer = open_client(Producer, config, client_settings)
    try:
        producer.list_topics(load.topic, timeout=BROKER_TIMEOUT_SECONDS)
    except KafkaException as error:
        raise BrokerError(
            f"bootstrap: the broker at {load.bootstrap} stopped answering ({why(error, client_settings)}); check its"
            " log"
        ) from None
    give_up = time.monotonic() + BROKER_TIMEOUT_SECONDS
    while load.acks == "all" and "Assigned" not in states and time.monotonic() < give_up:
        producer.poll(POLL_SECONDS)
    return producer


TAKEN = (
    "security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.", "socket.", "client.dns.", "broker.address.",
    "client.rack",
)  # fmt: skip
"""Prefixes of accepted settings; loadgen sets all others from a load's options."""

_KEY = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)+")
_LONG = 8


def read_client_config(path: Path | None) -> dict[str, str]:
    """Reads a settings file, only once since it may be /dev/fd/3; none without one. Raises OptionsError."""
    return {} if path is None else parse_client_config(read_option(path, "client-config"), f"client-config {path}")


def parse_client_config(text: str, name: str = "client-config") -> dict[str, str]:
    r"""Parses `key=value` lines; in the value of a key that ends in .pem, \n stands for a line end.

    Raises OptionsError, with `name` and the line's number, if a setting is not accepted."""
    settings: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        if not line or line.startswith("#"):
            continue
        where = f"{name}, line {number}"
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not _KEY.fullmatch(key):
            # The line is not shown: it may be the rest of a secret.
            raise OptionsError(f"{where}: is not key=value with a setting of librdkafka as key; correct it")
        if not key.startswith(TAKEN):
            raise OptionsError(
                f"{where}: {key} is set by loadgen itself, from the load's options; leave it out. "
                f"Taken are those that begin with {', '.join(TAKEN)}"
            )
        if key in settings:
            raise OptionsError(f"{where}: {key} is given a second time; leave one of them")
        settings[key] = value.replace("\\n", "\n") if key.endswith(".pem") else value
    return settings


def format_client_config(settings: Mapping[str, str]) -> str:
    """The inverse of `parse_client_config`. Raises OptionsError if a key is not accepted or a value has two lines."""
    lines = []
    for key, value in settings.items():
        if not key.startswith(TAKEN):
            raise OptionsError(f"Kafka's setting {key}: is not one that a load generator takes; leave it out")
        text = value.strip().replace("\n", "\\n") if key.endswith(".pem") else value
        if text != text.strip() or "\n" in text:
            raise OptionsError(f"Kafka's setting {key}: a value must have no blank at its ends and no line break")
        lines.append(f"{key}={text}\n")
    return "".join(lines)


def hide(text: str, settings: Mapping[str, str]) -> str:
    """Returns a message of the Kafka client on one line, with *** in place of the values of `settings`."""
    for value in sorted(settings.values(), key=len, reverse=True):
        if len(value) >= _LONG:
            text = text.replace(value, "***")
        elif value:
            # A short value, such as "ssl", may be part of a setting's name, which the message needs.
            text = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.]*\w)", "***", text)
    return " ".join(text.split())
