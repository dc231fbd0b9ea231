"""The Kafka producer of a load: its settings, and a start that is over before the first record is sent."""

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

__all__ = ["MOST_IN_FLIGHT", "MOST_IN_FLIGHT_BYTES", "open_producer", "producer_config"]

MOST_IN_FLIGHT = 50_000
MOST_IN_FLIGHT_BYTES = 128 << 20
BIGGEST_OVERHEAD_BYTES = 1_000
STATISTICS_MS = 200
POLL_SECONDS = 0.05


def producer_config(load: Load) -> dict[str, Any]:
    """The Kafka client's settings for `load`."""
    return {
        "bootstrap.servers": load.bootstrap,
        "client.id": "loadgen",
        "acks": load.acks,
        # Retries then neither duplicate nor reorder. It needs acks of all.
        "enable.idempotence": load.acks == "all",
        "compression.type": load.compression,
        "linger.ms": load.linger_ms,
        "batch.size": load.batch_bytes,
        "batch.num.messages": 100_000,
        "message.max.bytes": max(1_000_000, load.batch_bytes, load.record_bytes + BIGGEST_OVERHEAD_BYTES),
        # The same partitions as a Java producer chooses for these keys.
        "partitioner": "murmur2_random",
        "message.timeout.ms": int(load.delivery_timeout_seconds * 1000),
        "delivery.report.only.error": True,
        # Twice what is ever in flight: the producer's queue is never what holds a record back.
        "queue.buffering.max.messages": 2 * MOST_IN_FLIGHT,
        "queue.buffering.max.kbytes": 2 * MOST_IN_FLIGHT_BYTES >> 10,
        "socket.nagle.disable": True,
        "statistics.interval.ms": STATISTICS_MS,
    }


def open_producer(load: Load, client_settings: Mapping[str, str]) -> Producer:
    """A producer that is connected, knows the topic's partitions, and has its producer id if it needs one.

    Without the wait for the id the first records of a load would be held back for up to half a second, and that would
    pass for the broker's latency. The client's statistics are the only place that tells of it.

    Args:
        load: what will be produced.
        client_settings: further settings of the Kafka client.

    Raises:
        BrokerError: the broker does not answer.
        OptionsError: the Kafka client refuses its settings.
    """
    state: list[str] = []

    def on_statistics(text: str) -> None:
        if "Assigned" not in state:
            state.append(str(json.loads(text).get("eos", {}).get("idemp_state")))

    config = {**producer_config(load), **client_settings, "stats_cb": on_statistics}
    producer = open_client(Producer, config, client_settings)
    try:
        producer.list_topics(load.topic, timeout=BROKER_TIMEOUT_SECONDS)
    except KafkaException as error:
        why = hide(str(error.args[0].str()), client_settings)
        raise BrokerError(
            f"bootstrap: the broker at {load.bootstrap} stopped answering ({why}); look at its log"
        ) from None
    give_up = time.monotonic() + BROKER_TIMEOUT_SECONDS
    while load.acks == "all" and "Assigned" not in state and time.monotonic() < give_up:
        producer.poll(POLL_SECONDS)
    return producer
