"""What a connector that is posted by hand needs: the topic, the index and the table that connector files name."""

from __future__ import annotations

from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink, sinks_of
from sinkbench.stack import Stack

__all__ = ["offer_by_hand"]

PARTITIONS = 24


def offer_by_hand(stack: Stack) -> None:
    """Makes the topic, the index and the table that connector files name, so that they can be posted as they stand."""
    if stack.endpoints.shared:
        return
    kafka = Kafka(stack.endpoints.kafka, stack.endpoints.kafka_settings)
    kafka.create_topic("tides", PARTITIONS, stack.endpoints.replication)
    for name in sinks_of(stack.endpoints):
        sink = open_sink(name, stack.endpoints, CHECKOUT)
        sink.offer_default()
        sink.close()
