"""Reads the records of a topic by their offsets, and commits nothing."""

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from sinkbench.errors import ServiceError, StackError
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.kafka import SILENT
from sinkbench.suggest import did_you_mean

AT_ONCE, POLL_SECONDS = 1_000, 0.5
SILENT_SECONDS, TIMEOUT_SECONDS = 30.0, 10.0
# What waits in the client's memory.
QUEUED_KILOBYTES = 16_384


@maps_exceptions(KafkaException)
class TopicReader:
    """A topic by its offsets; `group` is the one whose committed offsets are read."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str], topic: str, group: str | None = None) -> None:
        """Raises StackError without such a topic, ServiceError if Kafka does not answer."""
        self.topic = topic
        own = {
            "group.id": group or "sinkbench-verify",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": QUEUED_KILOBYTES,
            # The target is read in between.
            "max.poll.interval.ms": 86_400_000,
        }
        self.consumer = Consumer({**settings, "bootstrap.servers": bootstrap, **own}, logger=SILENT)
        # A request for one that is missing makes some brokers create it.
        there = self.consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
        if topic not in there:
            raise StackError(f"{topic}: there is no such topic{did_you_mean(topic, there)}")
        self._partitions = [TopicPartition(topic, number) for number in there[topic].partitions]

    def close(self) -> None:
        self.consumer.close()

    def spans(self) -> dict[int, tuple[int, int]]:
        """The first offset, and the one behind the last, of each partition now."""
        return {
            one.partition: self.consumer.get_watermark_offsets(one, timeout=TIMEOUT_SECONDS) for one in self._partitions
        }

    def committed(self) -> dict[int, int]:
        """The offsets that the group has committed, of each partition with one."""
        found = self.consumer.committed(self._partitions, timeout=TIMEOUT_SECONDS)
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def records(self, spans: Mapping[int, tuple[int, int]], at_once: int = AT_ONCE) -> Iterator[list[Message]]:
        """Yields the records from the first offset of each partition's span to before its second, in order by
        partition. Raises ServiceError after 30 s without one."""
        missing = {number: end for number, (start, end) in spans.items() if end > start}
        # Without a subscription no group is joined, and nothing is committed.
        self.consumer.assign([TopicPartition(self.topic, number, spans[number][0]) for number in missing])
        moved = time.monotonic()
        while missing:
            if some := self.consumer.consume(at_once, POLL_SECONDS):
                moved = time.monotonic()
            elif time.monotonic() - moved > SILENT_SECONDS:
                raise ServiceError(f"{self.topic}: nothing more comes of it for {SILENT_SECONDS:g} s")
            found = []
            for message in some:
                number, error = message.partition(), message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if number not in missing:
                    continue
                if error is None and message.offset() < missing[number]:
                    found.append(message)
                # A transaction marker has an offset but is no record.
                if error is not None or message.offset() >= missing[number] - 1:
                    del missing[number]
            if found:
                yield found
                moved = time.monotonic()
