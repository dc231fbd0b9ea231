"""The controller's requests to Kafka: topics, and the offsets of consumer groups."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, NamedTuple
from warnings import catch_warnings

from confluent_kafka import (
    OFFSET_END,
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
from sinkbench.services.failures import maps_exceptions

TIMEOUT_SECONDS, POLL_SECONDS = 10.0, 0.5
MOVING = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
"""Errors of a group's coordinator that has moved, until the new one has read the group."""
# librdkafka's errors of connections that it retries: after these, retries are useless.
FINAL = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE, KafkaError._ALL_BROKERS_DOWN)
LOOK_SECONDS = 2.0
# A few records of each partition are read; a batch comes as a whole, however large.
FETCH_BYTES = 64 << 10
STATUS_KEYS, STATUS_SECONDS = 50, 3.0
# With this many partitions, one quick answer of each broker has all offsets.
MOST_PARTITIONS = 5_000
# The most informative ones, in order.
TELLING = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE, KafkaError._TRANSPORT)

# librdkafka logs every refused connection; the relevant ones are returned as errors.
SILENT = logging.getLogger("sinkbench.services.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


class PartitionCopies(NamedTuple):
    """The brokers of a partition: its leader (below 0: none), its replicas, and its in-sync replicas."""

    leader: int
    copies: tuple[int, ...]
    in_sync: tuple[int, ...]


class Record(NamedTuple):
    """A record to write; to a partition that Kafka chooses if it is below 0."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = -1
    headers: Sequence[tuple[str, bytes | None]] = ()


OWN_GROUP = "consumer.override.group.id"
"""The key of a connector file that names another group."""


def group_of(connector: str) -> str:
    """Returns the consumer group of a sink connector, as Connect names it."""
    return f"connect-{connector}"


@maps_exceptions(KafkaException)
class Kafka:
    """One Kafka cluster, with an admin client. Methods raise ServiceError if it does not answer."""

    def __init__(
        self, bootstrap: str, settings: Mapping[str, str] | None = None, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        """`timeout_seconds` is for requests about offsets. Raises StackError for invalid settings."""
        self.bootstrap = bootstrap
        self._seconds = timeout_seconds
        self._reader: Consumer | None = None
        self._ends: Consumer | None = None
        self._read = "", ""
        self._refused: KafkaError | None = None
        self._partitions: list[TopicPartition] = []
        self._told: deque[Any] = deque(maxlen=50)
        self._settings = {**(settings or {}), "bootstrap.servers": bootstrap, "error_cb": self._told.append}
        try:
            self._admin = AdminClient(self._settings, logger=SILENT)
        except KafkaException as error:
            raise StackError(f"Kafka's settings cannot be used: {error.args[0].str()}") from None

    def problem(self, timeout_seconds: float = TIMEOUT_SECONDS) -> str | None:
        """Returns librdkafka's reason why the cluster does not answer; None if it does."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            try:
                self._admin.list_topics(timeout=min(LOOK_SECONDS, timeout_seconds))
            except KafkaException as error:
                cause = self._cause(error)
                # librdkafka itself would retry until the timeout.
                if time.monotonic() > deadline or any(told.code() in FINAL for told in self._told):
                    return cause
            else:
                return None

    def _cause(self, error: KafkaException) -> str:
        """The reason of a failed request, for which a broker that rejects a password is just unavailable."""
        self._admin.poll(0)
        telling = [told for code in TELLING for told in self._told if told.code() == code]
        return str((telling or error.args)[0].str())

    def topics(self) -> list[str]:
        """Raises StackError if the cluster does not answer."""
        try:
            return sorted(self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics)
        except KafkaException as error:
            raise StackError(f"Kafka at {self.bootstrap} does not answer: {self._cause(error)}") from None

    def brokers(self, timeout_seconds: float = TIMEOUT_SECONDS) -> frozenset[int]:
        return frozenset(self._admin.list_topics(timeout=timeout_seconds).brokers)

    def broker_settings(self, names: Iterable[str]) -> dict[str, str | None]:
        """Returns the settings of one broker: "not set" without a value, None if not disclosed."""
        found: Mapping[str, Any] = {}
        with suppress(KafkaException, ValueError):
            broker = min(self._admin.list_topics(timeout=TIMEOUT_SECONDS).brokers)
            asked = [ConfigResource(ConfigResource.Type.BROKER, str(broker))]
            (answer,) = self._admin.describe_configs(asked, request_timeout=TIMEOUT_SECONDS).values()
            found = answer.result()
        return {name: (found[name].value or "not set") if name in found else None for name in names}

    def copies(self, topic: str | None = None) -> tuple[frozenset[int], dict[str, dict[int, PartitionCopies]]]:
        """Returns the brokers that are up, and the replicas by topic and partition of visible topics. One request."""
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
        """Returns the end offset by partition; empty if the topic does not exist."""
        # An admin client answers with a future for each partition, which takes four times the CPU time.
        if self._ends is None:
            self._ends = self._consumer({"group.id": "sinkbench", "isolation.level": "read_uncommitted"})
        self._ends.poll(0)
        described = self._ends.list_topics(topic, timeout=self._seconds).topics[topic]
        asked = [TopicPartition(topic, number, OFFSET_END) for number in described.partitions]
        found = self._ends.offsets_for_times(asked, timeout=self._seconds) if asked else []
        for each in found:
            if each.error is not None or each.offset < 0:
                raise KafkaException(each.error or KafkaError(KafkaError._TIMED_OUT))
        return {each.partition: each.offset for each in found}

    def _consumer(self, settings: Mapping[str, object]) -> Consumer:
        """Without a subscription it joins no group and commits nothing."""
        return Consumer({**self._settings, "enable.auto.commit": False, **settings}, logger=SILENT)

    def some_records(self, topic: str, count: int, *, last: bool = False) -> list[bytes | None]:
        """Returns about `count` values from the middle of the partitions, or the last ones; fewer after the timeout."""
        return [message.value() for message in self._some(topic, count, TIMEOUT_SECONDS, last=last)]

    def keeps_status(self, topic: str, connector: str) -> bool:
        """Whether one of the topic's last records is Connect's status of `connector` (KafkaStatusBackingStore)."""
        keys = [message.key() for message in self._some(topic, STATUS_KEYS, STATUS_SECONDS, last=True)]
        return any(key is not None and key.startswith(b"status-") and connector.encode() in key for key in keys)

    def _some(self, topic: str, count: int, timeout_seconds: float, *, last: bool) -> list[Message]:
        ends = {number: end for number, end in self.end_offsets(topic).items() if end > 0}
        each = -(-count // max(len(ends), 1))
        starts = {number: max(0, end - each if last else (end - each) // 2) for number, end in ends.items()}
        wanted = {number: range(start, min(ends[number], start + each)) for number, start in starts.items()}
        found: list[Message] = []
        with closing(self._consumer({"group.id": "sinkbench", "max.partition.fetch.bytes": FETCH_BYTES})) as consumer:
            consumer.assign([TopicPartition(topic, number, offsets.start) for number, offsets in wanted.items()])
            missing, deadline = sum(map(len, wanted.values())), time.monotonic() + timeout_seconds
            while len(found) < missing and time.monotonic() < deadline:
                message = consumer.poll(0.2)
                # A tombstone is falsy, since its value has no length. Other records follow the wanted ones of a
                # partition; pausing it would take longer than skipping them.
                if message is not None and not message.error() and message.offset() in wanted[message.partition()]:
                    found.append(message)
        return found

    def written(self) -> dict[str, int]:
        """Returns the sum of the end offsets by topic, without internal topics; empty with too many partitions."""
        described = self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics
        own = [(name, topic) for name, topic in described.items() if not name.startswith("__")]
        asked = {TopicPartition(name, each): OffsetSpec.latest() for name, topic in own for each in topic.partitions}
        if not 0 < len(asked) <= MOST_PARTITIONS:
            return {}
        counts: dict[str, int] = {}
        for partition, future in self._admin.list_offsets(asked, request_timeout=TIMEOUT_SECONDS).items():
            # A topic may be deleted in the meantime, or not be visible.
            with suppress(KafkaException):
                counts[partition.topic] = counts.get(partition.topic, 0) + future.result().offset
        return counts

    def committed(self, group: str, topic: str) -> int:
        """Returns the sum of the offsets that `group` has committed for `topic`; 0 without any."""
        # A consumer that does not join the group. An admin client may never find a new coordinator after the old one
        # died (librdkafka issue 5511), or abort the process (issue 4605).
        if self._reader is None or self._read != (group, topic):
            # Trials run one after another; a reader of an earlier one would keep its threads.
            self._reader, self._partitions = self._consumer({"group.id": group}), []
            self._read, self._refused = (group, topic), None
        # Otherwise librdkafka's events accumulate.
        self._reader.poll(0)
        if not self._partitions:
            described = self._reader.list_topics(topic, timeout=self._seconds).topics[topic]
            self._partitions = [TopicPartition(topic, number) for number in described.partitions]
        try:
            found = self._reader.committed(self._partitions, timeout=self._seconds) if self._partitions else []
        except KafkaException as late:
            # Without the right to its group every question times out; the reason is told once, in an event.
            told = self._reader.poll(0)
            if told is not None and (error := told.error()) and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                self._refused = error
            raise KafkaException(self._refused) if self._refused else late from None
        return sum(each.offset for each in found if each.error is None and each.offset > 0)

    def kept_seconds(self, topic: str) -> float | None:
        """Returns for how long Kafka keeps a record of the topic; None: forever, or not disclosed."""
        asked = [ConfigResource(ConfigResource.Type.TOPIC, topic)]
        (answer,) = self._admin.describe_configs(asked, request_timeout=TIMEOUT_SECONDS).values()
        with suppress(KafkaException):
            kept = int(answer.result()["retention.ms"].value)
            return None if kept < 0 else kept / 1000
        return None

    def wait_until_empty(self, group: str, timeout_seconds: float = 60.0) -> None:
        """Waits until `group` has no members, so that nothing more is written. Raises StackError after the timeout."""
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

    def groups(self, asked: str | None = None) -> dict[str, ConsumerGroupState]:
        """Returns the state of each visible group. Raises if a broker does not answer, unless `asked` is known."""
        # Described or deleted by an admin client, a group whose coordinator hangs may abort the process when the answer
        # comes after the timeout (librdkafka issue 4605).
        listed = self._admin.list_consumer_groups(request_timeout=self._seconds).result()
        found = {each.group_id: each.state for each in listed.valid}
        if listed.errors and asked not in found:
            raise KafkaException(listed.errors[0])
        return found

    def is_empty(self, group: str) -> bool:
        """Whether `group` has no members, or does not exist."""
        return self.groups(group).get(group) in (None, ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)

    def members(self, group: str) -> int | None:
        """Returns the number of members of a stable `group`; None while it rebalances or if it does not exist."""
        with suppress(KafkaException), catch_warnings(action="ignore"):
            for described in self._admin.list_groups(group, timeout=self._seconds):
                return len(described.members) if described.state == "Stable" else None
        return None

    def create_topic(
        self,
        topic: str,
        partitions: int,
        replication: int = 1,
        config: Mapping[str, str] | None = None,
        brokers: int | None = None,
    ) -> None:
        """Creates a topic unless it exists; with `brokers`, on these many, those with the lowest ids."""
        wanted = NewTopic(topic, partitions, replication, config=dict(config or {}))
        if brokers is not None:
            ids = sorted(self._admin.list_topics(timeout=TIMEOUT_SECONDS).brokers)[:brokers]
            on = [[ids[(each + copy) % len(ids)] for copy in range(replication)] for each in range(partitions)]
            wanted = NewTopic(topic, partitions, replica_assignment=on, config=dict(config or {}))
        futures = self._admin.create_topics([wanted], operation_timeout=TIMEOUT_SECONDS)
        _finish(futures, "make the topic", "TOPIC_ALREADY_EXISTS")

    def produce(self, topic: str, values: Iterable[bytes]) -> int:
        """Writes values without keys. Returns their number once all are acknowledged, else raises StackError."""
        records = [Record(topic, value) for value in values]
        send(self._settings, records, TIMEOUT_SECONDS)
        return len(records)

    def delete_topic(self, topic: str) -> None:
        futures = self._admin.delete_topics([topic], operation_timeout=TIMEOUT_SECONDS)
        _finish(futures, "delete", "UNKNOWN_TOPIC_OR_PART")

    def delete_group(self, group: str) -> None:
        """Deletes a consumer group's offsets if it exists."""
        deadline, last = time.monotonic() + TIMEOUT_SECONDS, False
        while group in self.groups(group) and not last:
            last = time.monotonic() > deadline
            # An admin client remembers for ten minutes who coordinates a group, also after the coordinator has moved.
            admin = AdminClient(self._settings, logger=SILENT)
            futures = admin.delete_consumer_groups([group], request_timeout=TIMEOUT_SECONDS)
            _finish(futures, "delete", "GROUP_ID_NOT_FOUND", *(() if last else MOVING))


def send(
    settings: Mapping[str, Any], records: Sequence[Record], seconds: float, tell: Callable[[int], None] = lambda n: None
) -> None:
    """Writes records; `tell` gets the number sent. StackError unless all are acknowledged `seconds` after the last."""
    failed: list[str] = []

    def acknowledged(error: Any, message: Message) -> None:
        if error is not None:
            failed.append(f"{message.topic()}: {error.str()}")

    producer = Producer({**settings, "enable.idempotence": True}, logger=SILENT)
    for sent, each in enumerate(records, 1):
        more: dict[str, Any] = {"on_delivery": acknowledged, "headers": list(each.headers)}
        while not failed:
            try:
                producer.produce(each.topic, each.value, each.key, each.partition, **more)
                break
            except BufferError:
                producer.poll(POLL_SECONDS)
        producer.poll(0)
        tell(sent)
    left = producer.flush(seconds)
    if failed or left:
        why = failed[0] if failed else f"{left} were not acknowledged in {seconds:g} s"
        raise StackError(f"Kafka did not take all of {len(records)} records: {why}")


def _finish(futures: Mapping[str, Any], what: str, *harmless: str) -> None:
    """Waits for the results. Raises StackError for errors other than `harmless`."""
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].name() not in harmless:
                raise StackError(f"Kafka did not {what} {name}: {error.args[0].str()}") from None
