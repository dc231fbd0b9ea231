"""Reads dead letter queues, and sends their records back to the original topics."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sinkbench.errors import ServiceError, StackError
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.kafka import SILENT, Record, send

AT_ONCE, POLL_SECONDS = 1_000, 0.5
SILENT_SECONDS, TIMEOUT_SECONDS, FLUSH_SECONDS = 30.0, 10.0, 60.0


class QueueRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


# librdkafka's client raises the latter for a name that no topic can have.
@maps_exceptions(KafkaException, RuntimeError)
class DeadLetterQueue:
    """A dead letter queue up to its end when opened. A consumer group's offsets record what was played back."""

    def __init__(
        self, bootstrap: str, settings: Mapping[str, str], topic: str, since: Mapping[int, int] | None = None
    ) -> None:
        """`since` has the first offset by partition, else 0; by default, reading starts after what was played back.
        Raises StackError without such a topic, ServiceError if Kafka does not answer."""
        self.topic = topic
        self._settings = {**settings, "bootstrap.servers": bootstrap}
        own = {"group.id": f"sinkbench-dlq-{topic}", "enable.auto.commit": False, "enable.partition.eof": True}
        self._consumer = Consumer({**self._settings, **own}, logger=SILENT)
        described = self._consumer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic]
        if described.error is not None:
            raise StackError(f"{topic}: there is no such topic; `sinkbench dlq` lists the queues of the connectors")
        partitions = [TopicPartition(topic, number) for number in described.partitions]
        if since is None:
            committed = self._consumer.committed(partitions, timeout=TIMEOUT_SECONDS)
            since = {each.partition: each.offset for each in committed}
        self._spans: dict[int, tuple[int, int, int]] = {}
        for each in partitions:
            start, end = self._consumer.get_watermark_offsets(each, timeout=TIMEOUT_SECONDS)
            self._spans[each.partition] = (start, end, min(max(start, since.get(each.partition, start)), end))

    def close(self) -> None:
        self._consumer.close()

    @property
    def played_back(self) -> int:
        """Number of records played back before; transaction markers count as records."""
        return sum(done - start for start, _, done in self._spans.values())

    @property
    def left(self) -> int:
        return sum(end - done for _, end, done in self._spans.values())

    def records(self) -> Iterator[QueueRecord]:
        """Yields the records not played back yet, in order by partition. Raises ServiceError after 30 s without one."""
        missing = {number: end for number, (_, end, done) in self._spans.items() if end > done}
        self._consumer.assign([TopicPartition(self.topic, number, self._spans[number][2]) for number in missing])
        moved = time.monotonic()
        while missing:
            some = self._consumer.consume(AT_ONCE, POLL_SECONDS)
            if some:
                moved = time.monotonic()
            elif time.monotonic() - moved > SILENT_SECONDS:
                raise ServiceError(f"{self.topic}: nothing more comes of it for {SILENT_SECONDS:g} s")
            for message in some:
                number, error = message.partition(), message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if number not in missing:
                    continue
                if error is None and message.offset() < missing[number]:
                    headers = tuple(message.headers() or ())
                    yield QueueRecord(message.key(), message.value(), headers)
                # A transaction marker has an offset but is no record.
                if error is not None or message.offset() >= missing[number] - 1:
                    del missing[number]

    def play_back(self, originals: Sequence[Record], tell: Callable[[int], None] = lambda sent: None) -> None:
        """Sends records to their original partitions; `tell` gets the number sent.

        All are acknowledged before they are recorded as played back: an interrupted play-back may send some twice, but
        loses none. Raises StackError if a topic is gone, before sending, and if a topic rejects records."""
        there = self._consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
        if gone := sorted({original.topic for original in originals} - set(there)):
            raise StackError(f"nothing was played back: there is no topic {', '.join(gone)} any more")
        try:
            send(self._settings, originals, FLUSH_SECONDS, tell)
        except StackError as error:
            raise StackError(
                f"not all was played back; the next play-back begins with the same records: {error}"
            ) from None
        ends = [TopicPartition(self.topic, number, end) for number, (_, end, _) in self._spans.items()]
        self._consumer.commit(offsets=ends, asynchronous=False)
