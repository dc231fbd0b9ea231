"""The Kafka producer of a load, connected before the first record is sent."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, Producer

from loadgen.clientconfig import hide
from loadgen.errors import BrokerError
from loadgen.options import Load
from loadgen.topic import BROKER_TIMEOUT_SECONDS, open_client

MOST_IN_FLIGHT = 50_000
MOST_REQUESTS_IN_FLIGHT = 5
MOST_IN_FLIGHT_BYTES = 128 << 20
BIGGEST_OVERHEAD_BYTES = 1_000
STATISTICS_MS = 200
POLL_SECONDS = 0.05


def producer_config(load: Load, largest_bytes: int = 0) -> dict[str, Any]:
    """Returns librdkafka's settings for `load`. `largest_bytes` of value and key; 0: as `record_bytes` says."""
    return {
        "bootstrap.servers": load.bootstrap,
        "client.id": "loadgen",
        "acks": load.acks,
        # So retries neither duplicate nor reorder. Needs acks=all.
        "enable.idempotence": load.acks == "all",
        # The maximum of an idempotent producer, and a Java producer's default. Without it librdkafka sends a request
        # for every few records, even with many waiting: a broker that falls behind then never catches up.
        "max.in.flight": MOST_REQUESTS_IN_FLIGHT,
        "compression.type": load.compression,
        "linger.ms": load.linger_ms,
        "batch.size": load.batch_bytes,
        "batch.num.messages": 100_000,
        "message.max.bytes": max(
            1_000_000, load.batch_bytes, max(load.record_bytes, largest_bytes) + BIGGEST_OVERHEAD_BYTES
        ),
        # Chooses the same partitions as a Java producer.
        "partitioner": "murmur2_random",
        "message.timeout.ms": int(load.delivery_timeout_seconds * 1000),
        "delivery.report.only.error": True,
        # Twice the maximum in flight, so that the producer's queue never delays a record.
        "queue.buffering.max.messages": 2 * MOST_IN_FLIGHT,
        "queue.buffering.max.kbytes": 2 * MOST_IN_FLIGHT_BYTES >> 10,
        "socket.nagle.disable": True,
        "statistics.interval.ms": STATISTICS_MS,
    }


def open_producer(load: Load, client_settings: Mapping[str, str], largest_bytes: int = 0) -> Producer:
    """Returns a producer that is connected, knows the topic's partitions, and has its producer id if it needs one.

    Raises BrokerError if the broker does not answer, and OptionsError if the client refuses its settings.
    """
    # Without its id a producer delays the first records by up to half a second, which would look like the broker's
    # latency. Only the client's statistics show when it has one.
    state: list[str] = []

    def on_statistics(text: str) -> None:
        if "Assigned" not in state:
            state.append(str(json.loads(text).get("eos", {}).get("idemp_state")))

    config = {**producer_config(load, largest_bytes), **client_settings, "stats_cb": on_statistics}
    producer = open_client(Producer, config, client_settings)
    try:
        producer.list_topics(load.topic, timeout=BROKER_TIMEOUT_SECONDS)
    except KafkaException as error:
        why = hide(str(error.args[0].str()), client_settings)
        raise BrokerError(
            f"bootstrap: the broker at {load.bootstrap} stopped answering ({why}); check its log"
        ) from None
    give_up = time.monotonic() + BROKER_TIMEOUT_SECONDS
    while load.acks == "all" and "Assigned" not in state and time.monotonic() < give_up:
        producer.poll(POLL_SECONDS)
    return producer
