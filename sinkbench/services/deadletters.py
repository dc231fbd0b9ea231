"""Reads dead letter queues, and sends what is in them back to the topics that it came from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from sinkbench.analysis.deadletters import DeadLetter, own_headers
from sinkbench.errors import ServiceError, StackError
from sinkbench.services.failures import maps_exceptions

__all__ = ["DeadLetterQueue"]

AT_ONCE = 1_000
POLL_SECONDS = 0.5
SILENT_SECONDS = 30.0
TIMEOUT_SECONDS = 10.0
FLUSH_SECONDS = 60.0


@maps_exceptions(KafkaException)
class DeadLetterQueue:
    """The topic of a dead letter queue, up to the end that it has when it is opened.

    What was played back is remembered as the offsets of a consumer group, so that nothing is played back twice.
    """

    def __init__(self, bootstrap: str, settings: Mapping[str, str], topic: str) -> None:
        """
        Args:
            bootstrap: host:port of brokers, separated by commas.
            settings: further settings of librdkafka, such as those for SASL and TLS.
            topic: the queue.

        Raises:
            StackError: there is no such topic.
            ServiceError: Kafka does not answer.
        """
        self.topic = topic
        self._settings = {**settings, "bootstrap.servers": bootstrap}
        own = {
            "group.id": f"sinkbench-dlq-{topic}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "error_cb": lambda error: None,
        }
        self._consumer = Consumer({**self._settings, **own})
        try:
            self._spans = self._look()
        except Exception:
            self._consumer.close()
            raise

    def _look(self) -> dict[int, tuple[int, int, int]]:
        """Of each partition its first offset, its end, and the offset from which on nothing was played back."""
        described = self._consumer.list_topics(self.topic, timeout=TIMEOUT_SECONDS).topics[self.topic]
        if described.error is not None:
            raise StackError(
                f"{self.topic}: there is no such topic; `sinkbench dlq` lists the queues of the connectors"
            )
        partitions = [TopicPartition(self.topic, number) for number in described.partitions]
        done = {each.partition: each.offset for each in self._consumer.committed(partitions, timeout=TIMEOUT_SECONDS)}
        spans = {}
        for each in partitions:
            start, end = self._consumer.get_watermark_offsets(each, timeout=TIMEOUT_SECONDS)
            spans[each.partition] = (start, end, min(max(start, done.get(each.partition, start)), end))
        return spans

    def close(self) -> None:
        """Closes the client."""
        self._consumer.close()

    @property
    def played_back(self) -> int:
        """How many were played back before; offsets of transactions count as records, too."""
        return sum(done - start for start, _, done in self._spans.values())

    @property
    def left(self) -> int:
        """How many were not played back yet."""
        return sum(end - done for _, end, done in self._spans.values())

    def letters(self) -> Iterator[DeadLetter]:
        """Those that were not played back yet, each partition's in its order.

        Raises ServiceError if nothing more comes for 30 s.
        """
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
                    yield _letter(message)
                # The mark of a transaction stands at an offset where no record is.
                if error is not None or message.offset() >= missing[number] - 1:
                    del missing[number]

    def play_back(self, letters: Sequence[DeadLetter], tell: Callable[[int], None] = lambda sent: None) -> int:
        """Sends letters to the partitions that they came from, without Connect's headers; returns how many.

        All of them are acknowledged before they are remembered as played back, so an interrupted play-back may send
        some of them twice, and leaves none out.

        Raises:
            ServiceError: a letter names no topic, or the topic does not take it.
        """
        producer = Producer({**self._settings, "enable.idempotence": True, "error_cb": lambda error: None})
        failed: list[str] = []

        def acknowledged(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(f"{message.topic()}: {error.str()}")

        for sent, letter in enumerate(letters):
            if letter.source is None:
                raise ServiceError(f"{self.topic}: offset {letter.offset} does not say which topic it came from")
            topic, partition, _ = letter.source
            while True:
                try:
                    producer.produce(
                        topic,
                        letter.value,
                        letter.key,
                        partition,
                        on_delivery=acknowledged,
                        headers=own_headers(letter.headers),
                    )
                    break
                except BufferError:
                    producer.poll(POLL_SECONDS)
            producer.poll(0)
            if failed:
                break
            tell(sent)
        unsent = producer.flush(FLUSH_SECONDS)
        if failed or unsent:
            why = failed[0] if failed else f"{unsent} were not acknowledged in {FLUSH_SECONDS:g} s"
            raise ServiceError(
                f"not all was played back ({why}); the next play-back begins again with the same letters"
            )
        ends = [TopicPartition(self.topic, number, end) for number, (_, end, _) in self._spans.items()]
        self._consumer.commit(offsets=ends, asynchronous=False)
        return len(letters)


def _letter(message: Any) -> DeadLetter:
    headers = tuple(message.headers() or ())
    return DeadLetter(message.key(), message.value(), headers, message.partition(), message.offset())
