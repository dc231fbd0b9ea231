"""Reads dead letter queues, and sends their records back to the original topics."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from confluent_kafka import KafkaException, TopicPartition

from sinkbench.analysis.deadletters import DeadLetter
from sinkbench.errors import StackError
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.kafka import Record, send
from sinkbench.services.topics import TopicReader

TIMEOUT_SECONDS, FLUSH_SECONDS = 10.0, 60.0


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
        self._reader = TopicReader(bootstrap, settings, topic, f"sinkbench-dlq-{topic}")
        self._consumer = self._reader.consumer
        since = self._reader.committed() if since is None else since
        self._spans = {
            number: (start, end, min(max(start, since.get(number, start)), end))
            for number, (start, end) in self._reader.spans().items()
        }

    def close(self) -> None:
        self._consumer.close()

    @property
    def played_back(self) -> int:
        """Number of records played back before; transaction markers count as records."""
        return sum(done - start for start, _, done in self._spans.values())

    @property
    def left(self) -> int:
        return sum(end - done for _, end, done in self._spans.values())

    def records(self) -> Iterator[DeadLetter]:
        """Yields the records not played back yet, in order by partition. Raises ServiceError after 30 s without one."""
        spans = {number: (done, end) for number, (_, end, done) in self._spans.items()}
        for some in self._reader.records(spans):
            yield from (DeadLetter(each.key(), each.value(), tuple(each.headers() or ())) for each in some)

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
