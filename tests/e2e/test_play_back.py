"""The way back of dead letters that Kafka Connect itself has written: through the connectors that write them."""

import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from confluent_kafka import Producer

from elasticsearch import Elasticsearch
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka, group_of
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink
from sinkbench.stack.local import LocalStack
from tests.e2e.hands import with_target
from tests.e2e.onetrial import index_with
from tests.e2e.races import remove_connectors
from tests.e2e.topics import records_of
from tests.support.commands import Run
from tests.support.trials import config_of
from tests.support.waiting import until

TARGET = "tides_test_play_back"
PARTITIONS = 3
# Two records of each partition are before the bad one, and one of each is behind it.
GOOD = BAD = 3 * PARTITIONS
LAST = BAD + 1
PLACE = 1, 2
KEY, HEADERS = b"9414290", [("own", b"1")]


class IntoElasticsearch:
    """An index that takes no member that it does not know, until it is told of it."""

    file = "elasticsearch/camel-idempotent"
    bad = b'{"bench": {"run": "r1", "seq": %d}, "tide": "spring"}' % BAD
    stage, read_again = "TASK_PUT", 0
    reason = "ElasticsearchException: [es/index] failed: [strict_dynamic_mapping_exception]"

    def __init__(self, stack: LocalStack) -> None:
        self._address = stack.endpoints.sinks["elasticsearch"].address

    def target(self, folder: Path) -> Path:
        return index_with(folder, mappings={"dynamic": "strict"})

    def fix(self, config: dict[str, str]) -> dict[str, str]:
        with Elasticsearch(self._address) as client:
            client.indices.put_mapping(index=TARGET, properties={"tide": {"type": "keyword"}})
        return config

    def stored(self) -> list[Any]:
        with Elasticsearch(self._address) as client:
            client.indices.refresh(index=TARGET)
            return [hit["_source"] for hit in client.search(index=TARGET, size=100)["hits"]["hits"]]


class IntoPostgres:
    """A table whose JSONB takes no NUL, until its column is JSON and nobody looks for one any more."""

    file = "postgres/jdbc-checked"
    bad = b'{"bench": {"run": "r1", "seq": %d}, "tide": "\\u0000"}' % BAD
    stage, read_again = "TRANSFORMATION", 1
    reason = "IllegalArgumentException: no JSONB: a NUL"

    def __init__(self, stack: LocalStack) -> None:
        self._address = stack.endpoints.sinks["postgres"].address

    def target(self, folder: Path) -> Path:
        return CHECKOUT / "postgres" / "targets" / "positions.sql"

    def fix(self, config: dict[str, str]) -> dict[str, str]:
        with psycopg.connect(self._address) as connection:
            connection.execute(f"ALTER TABLE {TARGET} ALTER payload TYPE json".encode())
        others = {key: value for key, value in config.items() if not key.startswith("transforms.check.")}
        return {**others, "transforms": config["transforms"].removeprefix("check,")}

    def stored(self) -> list[Any]:
        with psycopg.connect(self._address) as connection:
            rows = connection.execute(f"SELECT payload::text FROM {TARGET}".encode()).fetchall()  # noqa: S608
        return [json.loads(text) for (text,) in rows]


Into = IntoElasticsearch | IntoPostgres


@pytest.fixture(params=[IntoElasticsearch, IntoPostgres], ids=lambda into: into.file)
def into(request: pytest.FixtureRequest, stack: LocalStack, tmp_path: Path) -> Iterator[Into]:
    """Each of the connectors with a dead letter queue, and the index or table that it writes to."""
    into = request.param(stack)
    sink = open_sink(into.file.partition("/")[0], stack.endpoints, CHECKOUT)
    with with_target(sink, TARGET, into.target(tmp_path)):
        yield into


@pytest.fixture
def queue(kafka: Kafka) -> Iterator[str]:
    """The name of a dead letter queue of its own; Connect makes the topic."""
    name = f"queue-{uuid.uuid4().hex}"
    yield name
    kafka.delete_topic(name)
    kafka.delete_group(f"sinkbench-dlq-{name}")


@pytest.fixture
def producer(stack: LocalStack) -> Producer:
    return Producer({"bootstrap.servers": stack.endpoints.kafka})


@pytest.fixture
def topic(kafka: Kafka, producer: Producer, into: Into) -> Iterator[str]:
    """A topic of good records, and the bad one at its `PLACE`."""
    kafka.create_topic(TARGET, PARTITIONS)
    for seq in range(GOOD):
        if seq == 2 * PARTITIONS:
            producer.produce(TARGET, into.bad, KEY, PLACE[0], headers=HEADERS)
        producer.produce(TARGET, document(seq), KEY, seq % PARTITIONS)
    assert producer.flush(30) == 0
    yield TARGET
    kafka.delete_topic(TARGET)


@pytest.fixture
def config(topic: str, into: Into, queue: str, connect: ConnectCluster, kafka: Kafka) -> Iterator[dict[str, str]]:
    """The configuration of the connector, which runs: its file, but for the topic and the queue."""
    own = {"name": TARGET, "topics": topic, "errors.deadletterqueue.topic.name": queue}
    config = {**config_of(into.file), **own}
    connect.create(TARGET, config)
    yield config
    remove_connectors(connect, kafka, TARGET)


def document(seq: int) -> bytes:
    return b'{"bench": {"run": "r1", "seq": %d}}' % seq


def stop(stack: LocalStack, kafka: Kafka) -> None:
    """Ends the connector's tasks; it keeps its configuration and its offsets."""
    httpx.put(f"{stack.endpoints.connect['connect-1']}/connectors/{TARGET}/stop").raise_for_status()
    kafka.wait_until_empty(group_of(TARGET))


@pytest.mark.long
def test_what_a_connector_has_put_aside_is_stored_once_when_its_cause_is_mended_and_it_is_played_back(
    stack: LocalStack,
    kafka: Kafka,
    connect: ConnectCluster,
    sinkbench: Run,
    into: Into,
    producer: Producer,
    config: dict[str, str],
) -> None:
    queue, topic = config["errors.deadletterqueue.topic.name"], TARGET
    partition, offset = PLACE
    good = [json.loads(document(seq)) for seq in range(GOOD)]

    def letters() -> int:
        return sum(kafka.end_offsets(queue).values()) if queue in kafka.topics() else 0

    def stored() -> Sequence[Any]:
        return sorted(into.stored(), key=lambda each: each["bench"]["seq"])

    until(lambda: stored() == good)
    until(lambda: letters() == 1)
    told = sinkbench("dlq").stdout
    assert f"{queue}: 1 dead letters" in told
    assert [TARGET, into.stage, "1", f"{topic}-{partition},", "offset", str(offset)] == told.splitlines()[3].split()[:6]
    assert into.reason in told
    assert f"{topic}-{partition}, offset {offset}: {into.bad.decode()}" in told
    # What is played back too soon comes again, and nothing else does.
    back = sinkbench("dlq", queue, "--play-back")
    assert "1 played back" in back.stdout, back.stderr
    until(lambda: letters() == 2)
    told = sinkbench("dlq", queue).stdout
    assert f"{queue}: 1 dead letters; 1 were played back before" in told
    assert f"{topic}-{partition}, offset {offset + 2}: {into.bad.decode()}" in told
    assert stored() == good
    # A sink that commits only what it was given reads it again, until a good record follows.
    stop(stack, kafka)
    producer.produce(topic, document(LAST), KEY, partition)
    assert producer.flush(30) == 0
    connect.resume(TARGET)
    until(lambda: stored() == [*good, json.loads(document(LAST))])
    until(lambda: kafka.committed(group_of(TARGET), topic) == GOOD + 3)
    assert letters() == 2 + into.read_again
    # Then its cause is mended.
    stop(stack, kafka)
    connect.configure(TARGET, into.fix(config))
    back = sinkbench("dlq", queue, "--play-back")
    assert ("2 letters of 1 records" in back.stdout) is bool(into.read_again), back.stdout
    assert "1 played back" in back.stdout, back.stderr
    connect.resume(TARGET)
    everything = [*good, json.loads(into.bad), json.loads(document(LAST))]
    until(lambda: stored() == everything)
    until(lambda: kafka.committed(group_of(TARGET), topic) == GOOD + 4)
    assert stored() == everything
    assert letters() == 2 + into.read_again
    played = f"{queue}: 0 dead letters; {2 + into.read_again} were played back before"
    assert played in sinkbench("dlq", queue).stdout
    # It went as it once came.
    assert kafka.end_offsets(topic) == {0: 3, 1: 7, 2: 3}
    last = [each for each in records_of(kafka, topic) if each.partition() == partition][-1]
    assert (last.offset(), last.key(), last.value(), last.headers()) == (offset + 4, KEY, into.bad, HEADERS)
