"""What the controller asks of Kafka itself: topics and the offsets of consumer groups."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple

from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from sinkbench.errors import ServiceError, StackError
from sinkbench.services.failures import map_exceptions, maps_exceptions

__all__ = ["Kafka", "PartitionCopies", "group_of", "kafka_errors"]

TIMEOUT_SECONDS = 10.0
# What librdkafka reports of connections that it goes on trying: when that is of no use, and what tells most, in order.
FINAL = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE, KafkaError._ALL_BROKERS_DOWN)
LOOK_SECONDS = 2.0
# A few records of each partition are looked at; a batch comes as a whole, however large.
FETCH_BYTES = 64 << 10
# Offsets of this many partitions are one quick answer of each broker.
STATUS_KEYS, STATUS_SECONDS = 50, 3.0
MOST_PARTITIONS = 5_000
TELLING = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE, KafkaError._TRANSPORT)

# librdkafka reports every refused connection by itself; what matters here comes back as an error.
SILENT = logging.getLogger("sinkbench.services.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


class PartitionCopies(NamedTuple):
    """The brokers of a partition: which leads it (below 0: none), which have a copy, and whose copy is in sync."""

    leader: int
    copies: tuple[int, ...]
    in_sync: tuple[int, ...]


def kafka_errors() -> AbstractContextManager[None]:
    """Raises what Kafka's client raises as ServiceError."""
    return map_exceptions(KafkaException)


def group_of(connector: str) -> str:
    """The consumer group of a sink connector, as Connect names it."""
    return f"connect-{connector}"


@maps_exceptions(KafkaException)
class Kafka:
    """One Kafka cluster, asked by an admin client. Raises ServiceError where it does not answer."""

    def __init__(
        self, bootstrap: str, settings: Mapping[str, str] | None = None, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        """
        Args:
            bootstrap: host:port of brokers, separated by commas.
            settings: further settings of librdkafka, such as those for SASL and TLS.
            timeout_seconds: how long an answer about offsets is waited for.

        Raises:
            StackError: librdkafka knows no such setting, or cannot use its value.
        """
        self.bootstrap = bootstrap
        self._seconds = timeout_seconds
        self._reader: _Reader | None = None
        self._told: deque[Any] = deque(maxlen=50)
        self._settings = {**(settings or {}), "bootstrap.servers": bootstrap, "error_cb": self._told.append}
        try:
            self._admin = AdminClient(self._settings, logger=SILENT)
        except KafkaException as error:
            raise StackError(f"Kafka's settings cannot be used: {error.args[0].str()}") from None

    def problem(self, timeout_seconds: float = TIMEOUT_SECONDS) -> str | None:
        """What keeps the cluster from answering, in librdkafka's words; None if it answers."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            try:
                self._admin.list_topics(timeout=min(LOOK_SECONDS, timeout_seconds))
            except KafkaException as error:
                cause = self._cause(error)
                # librdkafka itself would go on trying until the time is over.
                if time.monotonic() > deadline or any(told.code() in FINAL for told in self._told):
                    return cause
            else:
                return None

    def _cause(self, error: KafkaException) -> str:
        """Why a request failed: a broker that refuses a password is, for the request itself, one that is not there."""
        self._admin.poll(0)
        telling = [told for code in TELLING for told in self._told if told.code() == code]
        return str((telling or error.args)[0].str())

    def topics(self) -> list[str]:
        """Names of all topics. Raises StackError if the cluster does not answer."""
        try:
            return sorted(self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics)
        except KafkaException as error:
            raise StackError(f"Kafka at {self.bootstrap} does not answer: {self._cause(error)}") from None

    def brokers(self, timeout_seconds: float = TIMEOUT_SECONDS) -> frozenset[int]:
        """The ids of the brokers that take part in the cluster now."""
        return frozenset(self._admin.list_topics(timeout=timeout_seconds).brokers)

    def broker_settings(self, names: Iterable[str]) -> dict[str, str | None]:
        """How one of the brokers is set, by Kafka's names; "not set" for what has no value.

        None for what it does not tell: others' clusters may let us see no settings.
        """
        found: Mapping[str, Any] = {}
        with suppress(KafkaException, ValueError):
            broker = min(self._admin.list_topics(timeout=TIMEOUT_SECONDS).brokers)
            asked = [ConfigResource(ConfigResource.Type.BROKER, str(broker))]
            (answer,) = self._admin.describe_configs(asked, request_timeout=TIMEOUT_SECONDS).values()
            found = answer.result()
        return {name: (found[name].value or "not set") if name in found else None for name in names}

    def copies(self, topic: str | None = None) -> tuple[frozenset[int], dict[str, dict[int, PartitionCopies]]]:
        """The brokers that are up, and where the partitions of `topic`, or of all topics, are, by topic and number.

        One request. A topic that is not there, or that this user may not see, is left out.
        """
        seen = self._admin.list_topics(topic, timeout=TIMEOUT_SECONDS)
        found = {
            name: {
                number: PartitionCopies(each.leader, tuple(each.replicas), tuple(each.isrs))
                for number, each in described.partitions.items()
            }
            for name, described in seen.topics.items()
            if described.error is None
        }
        return frozenset(seen.brokers), found

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The end offset of each partition of `topic`, by the partition's number."""
        described = self._admin.list_topics(topic, timeout=self._seconds).topics[topic]
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in described.partitions}
        answers = self._admin.list_offsets(asked, request_timeout=self._seconds)
        return {partition.partition: future.result().offset for partition, future in answers.items()}

    def some_records(
        self, topic: str, count: int, timeout_seconds: float = TIMEOUT_SECONDS, *, last: bool = False
    ) -> list[bytes | None]:
        """The values of about `count` records from the middle of the topic's partitions, or of the `last` ones.

        Fewer if time is up. A tombstone has none.
        """
        return [message.value() for message in self._some(topic, count, timeout_seconds, last=last)]

    def keeps_status(self, topic: str, connector: str) -> bool:
        """Whether Connect keeps its connectors' status in this topic: among its last records is one of `connector`'s.

        Source: org.apache.kafka.connect.storage.KafkaStatusBackingStore.
        """
        keys = [message.key() for message in self._some(topic, STATUS_KEYS, STATUS_SECONDS, last=True)]
        return any(key is not None and key.startswith(b"status-") and connector.encode() in key for key in keys)

    def _some(self, topic: str, count: int, timeout_seconds: float, *, last: bool) -> list[Message]:
        ends = {number: end for number, end in self.end_offsets(topic).items() if end > 0}
        each = -(-count // max(len(ends), 1))
        starts = {number: max(0, end - each if last else (end - each) // 2) for number, end in ends.items()}
        wanted = {number: range(start, min(ends[number], start + each)) for number, start in starts.items()}
        own = {"group.id": "sinkbench", "enable.auto.commit": False, "max.partition.fetch.bytes": FETCH_BYTES}
        consumer = Consumer({**self._settings, **own}, logger=SILENT)
        found: list[Message] = []
        try:
            # Without a subscription no group is joined, and nothing is committed.
            consumer.assign([TopicPartition(topic, number, offsets.start) for number, offsets in wanted.items()])
            missing, deadline = sum(map(len, wanted.values())), time.monotonic() + timeout_seconds
            while len(found) < missing and time.monotonic() < deadline:
                message = consumer.poll(0.2)
                # A tombstone is false, for its value has no length.
                # Others follow the wanted ones of a partition; to pause it would take longer than to pass them by.
                if message is not None and not message.error() and message.offset() in wanted[message.partition()]:
                    found.append(message)
        finally:
            consumer.close()
        return found

    def written(self) -> dict[str, int]:
        """How many records each topic has taken so far; empty if there are too many partitions to ask for them all.

        Kafka's own topics are left out.
        """
        described = self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics
        asked = {
            TopicPartition(name, number): OffsetSpec.latest()
            for name, topic in described.items()
            if not name.startswith("__")
            for number in topic.partitions
        }
        if not 0 < len(asked) <= MOST_PARTITIONS:
            return {}
        counts: dict[str, int] = {}
        for partition, future in self._admin.list_offsets(asked, request_timeout=TIMEOUT_SECONDS).items():
            # A topic may be deleted meanwhile, or be none of what we may see.
            with suppress(KafkaException):
                counts[partition.topic] = counts.get(partition.topic, 0) + future.result().offset
        return counts

    def committed(self, group: str, topic: str) -> int:
        """Sum of the offsets that `group` has committed for `topic`; 0 for a group that has committed nothing."""
        reader = self._reader
        if reader is None or (reader.group, reader.topic) != (group, topic):
            # One trial comes after the other; a reader of an earlier one would keep its threads.
            reader = self._reader = _Reader(self._settings, group, topic)
        return reader.committed(self._seconds)

    def wait_until_empty(self, group: str, timeout_seconds: float = 60.0) -> None:
        """Waits until `group` has no members, so that nothing more is written. Raises StackError if it keeps some."""
        deadline = time.monotonic() + timeout_seconds
        problem = ""
        while time.monotonic() < deadline:
            try:
                if self.is_empty(group):
                    return
                problem = ""
            except ServiceError as error:
                problem = f": {error}"
            time.sleep(0.1)
        raise StackError(
            f"the consumer group {group} still has members after {timeout_seconds:.0f} s{problem}; a task that does not"
            " end may still write: find out what its sink waits for, or start the workers again"
        )

    def groups(self) -> list[str]:
        """Names of all consumer groups that this user may see."""
        listed = self._admin.list_consumer_groups(request_timeout=TIMEOUT_SECONDS).result()
        return sorted(each.group_id for each in listed.valid)

    def is_empty(self, group: str) -> bool:
        """Whether `group` has no members, or is not there."""
        described = self._described(group)
        return described is None or described.state in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)

    def members(self, group: str) -> int | None:
        """How many members a stable `group` has; None while it rebalances, and of a group that is not there."""
        described = None
        with suppress(KafkaException):
            described = self._described(group)
        if described is None or described.state != ConsumerGroupState.STABLE:
            return None
        return len(described.members)

    def _described(self, group: str) -> Any:
        """What the cluster says of `group`; None of one that is not there."""
        answer = self._admin.describe_consumer_groups([group], request_timeout=TIMEOUT_SECONDS)
        return _unless_absent(answer[group])

    def create_topic(
        self, topic: str, partitions: int, replication: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Makes a topic with these settings of its own; one that exists is left as it is."""
        wanted = [NewTopic(topic, partitions, replication, config=dict(config or {}))]
        futures = self._admin.create_topics(wanted, operation_timeout=TIMEOUT_SECONDS)
        _finish(futures, "make the topic", "TOPIC_ALREADY_EXISTS")

    def produce(self, topic: str, values: Iterable[bytes]) -> int:
        """Puts values into a topic, without keys, and waits until they are there. Returns how many there are.

        Raises StackError if not all were acknowledged.
        """
        producer = Producer({**self._settings, "enable.idempotence": True}, logger=SILENT)
        failed: list[str] = []

        def acknowledged(error: Any, _: Message) -> None:
            if error is not None:
                failed.append(error.str())

        count = 0
        for value in values:
            producer.produce(topic, value, on_delivery=acknowledged)
            count += 1
        if left := producer.flush(TIMEOUT_SECONDS):
            raise StackError(f"Kafka did not take {left} of {count} records for {topic} in {TIMEOUT_SECONDS:.0f} s")
        if failed:
            raise StackError(f"Kafka did not take {len(failed)} of {count} records for {topic}: {failed[0]}")
        return count

    def delete_topic(self, topic: str) -> None:
        """Deletes a topic; one that is not there is fine."""
        futures = self._admin.delete_topics([topic], operation_timeout=TIMEOUT_SECONDS)
        _finish(futures, "delete", "UNKNOWN_TOPIC_OR_PART")

    def delete_group(self, group: str) -> None:
        """Deletes a consumer group's offsets; one that is not there is fine."""
        futures = self._admin.delete_consumer_groups([group], request_timeout=TIMEOUT_SECONDS)
        _finish(futures, "delete", "GROUP_ID_NOT_FOUND")


class _Reader:
    """Reads what a group has committed for a topic, as a consumer that never joins the group.

    An admin client would tell the same in one request. But if the group's coordinator dies meanwhile, it may never find
    another one (librdkafka's issue 5511), or end the whole process (issue 4605).
    """

    def __init__(self, settings: Mapping[str, Any], group: str, topic: str) -> None:
        self._consumer = Consumer({**settings, "group.id": group, "enable.auto.commit": False}, logger=SILENT)
        self.group, self.topic = group, topic
        self._partitions: list[TopicPartition] = []

    def committed(self, timeout_seconds: float) -> int:
        # What librdkafka reports would pile up.
        self._consumer.poll(0)
        if not self._partitions:
            described = self._consumer.list_topics(self.topic, timeout=timeout_seconds).topics[self.topic]
            self._partitions = [TopicPartition(self.topic, number) for number in described.partitions]
        if not self._partitions:
            return 0
        found = self._consumer.committed(self._partitions, timeout=timeout_seconds)
        return sum(each.offset for each in found if each.error is None and each.offset > 0)


def _unless_absent(future: Any) -> Any:
    """What was asked of a consumer group; None if it is not there, or is none of what we may see."""
    try:
        return future.result()
    except KafkaException as error:
        if error.args[0].name() in ("GROUP_ID_NOT_FOUND", "GROUP_AUTHORIZATION_FAILED"):
            return None
        raise


def _finish(futures: Mapping[str, Any], what: str, harmless: str) -> None:
    """Waits for what was asked. Raises StackError unless it is done, or failed as is `harmless`."""
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].name() != harmless:
                raise StackError(f"Kafka did not {what} {name}: {error.args[0].str()}") from None
