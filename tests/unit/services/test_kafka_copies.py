"""Where the partitions of topics are, by Kafka's metadata."""

from types import SimpleNamespace

import pytest

from sinkbench.services.kafka import Kafka, PartitionCopies


def test_copies_are_those_of_the_metadata_without_topics_that_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka("127.0.0.1:1")
    partition = SimpleNamespace(leader=2, replicas=[2, 3, 1], isrs=[2, 1])
    topics = {
        "tides": SimpleNamespace(error=None, partitions={0: partition}),
        "theirs": SimpleNamespace(error="TOPIC_AUTHORIZATION_FAILED", partitions={}),
    }
    seen = SimpleNamespace(brokers=dict.fromkeys((1, 2, 3)), topics=topics)
    monkeypatch.setattr(kafka, "_admin", SimpleNamespace(list_topics=lambda topic, timeout: seen))
    copies = PartitionCopies(2, (2, 3, 1), (2, 1))
    assert kafka.copies() == (frozenset({1, 2, 3}), {"tides": {0: copies}})
