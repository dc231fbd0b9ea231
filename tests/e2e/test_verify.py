"""`sinkbench verify` against what Kafka Connect has stored, and what was planted there."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from elasticsearch import Elasticsearch
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Sink, open_sink
from sinkbench.stack.local import LocalStack
from tests.e2e.hands import with_target
from tests.e2e.races import remove_connectors
from tests.support.commands import Run, succeeded
from tests.support.trials import config_of
from tests.support.waiting import until

TARGET, PARTITIONS, RECORDS = "tides_test_verify", 3, 300
RECORD = '{"id": %d, "place": "Zürich \U0001f30a", "level": 1e23, "more": [-0.0, null, 9007199254740993]}'
LOST, TWICE, CHANGED = 7, 8, 10
PLANT = f"""
    INSERT INTO {TARGET} (__connect_topic, __connect_partition, __connect_offset, payload)
        SELECT __connect_topic, __connect_partition, __connect_offset + {RECORDS}, payload FROM {TARGET}
        WHERE payload ->> 'id' = '{TWICE}';
    DELETE FROM {TARGET} WHERE payload ->> 'id' = '{LOST}';
    UPDATE {TARGET} SET payload = payload || '{{"level": 2e23}}' WHERE payload ->> 'id' = '{CHANGED}';
"""  # noqa: S608 - constants
FAULTS = ("missing", "doubled", "different")


class Elastic:
    file, key = "elasticsearch/camel-idempotent", "id"
    target = None

    def __init__(self, stack: LocalStack) -> None:
        self._address = stack.endpoints.sinks["elasticsearch"].address

    def plant(self) -> None:
        with Elasticsearch(self._address) as client:
            hits = client.search(index=TARGET, size=RECORDS)["hits"]["hits"]
            found = {hit["_source"]["id"]: hit for hit in hits}
            client.delete(index=TARGET, id=found[LOST]["_id"])
            client.index(index=TARGET, document=found[TWICE]["_source"])
            changed = {**found[CHANGED]["_source"], "level": 2e23}
            client.index(index=TARGET, id=found[CHANGED]["_id"], document=changed, refresh=True)


class Postgres:
    file, key = "postgres/jdbc-idempotent", "payload.id"
    target = CHECKOUT / "postgres" / "targets" / "positions.sql"

    def __init__(self, stack: LocalStack) -> None:
        self._address = stack.endpoints.sinks["postgres"].address

    def plant(self) -> None:
        with psycopg.connect(self._address) as connection:
            connection.execute(PLANT.encode())


@pytest.fixture(params=[Elastic, Postgres], ids=lambda into: into.file)
def into(request: pytest.FixtureRequest, stack: LocalStack, connect: ConnectCluster, kafka: Kafka) -> Iterator[Any]:
    """An index or table that a connector has filled."""
    into, name = request.param(stack), request.param.file.partition("/")[0]
    with with_target(open_sink(name, stack.endpoints, CHECKOUT), TARGET, into.target) as sink:
        kafka.create_topic(TARGET, PARTITIONS)
        producer = Producer({"bootstrap.servers": stack.endpoints.kafka})
        for number in range(RECORDS):
            producer.produce(TARGET, (RECORD % number).encode(), b"key", number % PARTITIONS)
        assert producer.flush(30) == 0
        connect.create(TARGET, {**config_of(into.file), "name": TARGET, "topics": TARGET})
        until(lambda: _count(sink) == RECORDS)
        until(lambda: kafka.committed(f"connect-{TARGET}", TARGET) == RECORDS)
        yield into
        remove_connectors(connect, kafka, TARGET)
        kafka.delete_topic(TARGET)


def _count(sink: Sink) -> int:
    sink.settle(TARGET)
    return sink.count(TARGET)


@pytest.mark.long
def test_what_is_missing_doubled_or_altered_in_a_sink_is_found_and_nothing_else(
    into: Any, kafka: Kafka, sinkbench: Run
) -> None:
    name = into.file.partition("/")[0]
    before = kafka.groups()
    asked = ("verify", "--topic", TARGET, "--into", f"{name}:{TARGET}")
    for by in (("--position",), ("--value",), ("--key", into.key), ("--position", "--group", f"connect-{TARGET}")):
        done = succeeded(sinkbench(*asked, *by, "--work", "work"))
        assert ": 300 rows; 300 records, 0 missing, 0 doubled, 0 different\n" in done.stdout
    into.plant()
    done = sinkbench(*asked, "--key", into.key, "--format", "json", "--records-per-second", "200")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert [found[fault] for fault in FAULTS] == [1, 1, 1]
    places = [[(each["partition"], each["offset"]) for each in found["examples"][fault]] for fault in FAULTS]
    assert places == [[divmod(number, PARTITIONS)[::-1]] for number in (LOST, TWICE, CHANGED)]
    assert kafka.groups() == before
    for wrong, said in (
        (("--topic", "tides_test_verifi"), f"tides_test_verifi: there is no such topic; did you mean '{TARGET}'?"),
        (
            ("--into", f"{name}:tides_test_verifi"),
            f"there is no such {'index' if name == 'elasticsearch' else 'table'}",
        ),
        (("--into", f"{name[:-1]}:{TARGET}"), f"did you mean '{name}'?"),
        (("--key", f"{into.key}x"), "none of 300 records has the key; did you mean 'id'?"),
    ):
        done = sinkbench(*asked, "--key", into.key, *wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
