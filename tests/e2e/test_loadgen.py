"""loadgen against a real broker: what it says it sent is what the topic holds."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter, defaultdict
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sinkbench.errors import StackError
from sinkbench.services.kafka import Kafka

CLOSED_PORT = "127.0.0.1:9"


@pytest.fixture
def topic(bootstrap: str) -> Any:
    """The name of a topic of the test's own, removed after it."""
    name = f"loadgen-{uuid.uuid4().hex}"
    yield name
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if name in admin.list_topics(timeout=10).topics:
        admin.delete_topics([name])[name].result()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "loadgen", "run", *arguments]


def loadgen(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, "--no-progress"), capture_output=True, text=True, check=False, timeout=120
    )


def read_all(bootstrap: str, topic: str) -> dict[int, list[tuple[str, bytes]]]:
    """Each partition's records, (key, value), in order."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"read-{topic}", "enable.auto.commit": False,
         "auto.offset.reset": "earliest"}
    )  # fmt: skip
    try:
        numbers = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ends = {n: consumer.get_watermark_offsets(TopicPartition(topic, n), timeout=10)[1] for n in numbers}
        consumer.assign([TopicPartition(topic, n, 0) for n in numbers])
        records: dict[int, list[tuple[str, bytes]]] = {n: [] for n in numbers}
        give_up = time.monotonic() + 60
        while any(len(records[n]) < ends[n] for n in numbers):
            assert time.monotonic() < give_up, "the topic could not be read to its end"
            for message in consumer.consume(num_messages=10_000, timeout=1):
                assert message.error() is None
                records[message.partition()].append((message.key().decode(), message.value()))
        return records
    finally:
        consumer.close()


def test_each_seq_is_in_the_topic_exactly_once_and_as_the_summary_says(bootstrap: str, topic: str) -> None:
    done = loadgen(
        *("--bootstrap", bootstrap, "--topic", topic, "--count", "30000", "--keys", "500", "--record-bytes", "512"),
        *("--partitions", "6", "--replication", "1", "--run", "e2e", "--first-seq", "7"),
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["sent"], summary["acknowledged"], summary["failed"]) == (30_000, 30_000, 0)
    partitions = read_all(bootstrap, topic)
    assert len(partitions) == 6
    assert all(partitions.values())
    seqs, where, per_key = Counter[int](), defaultdict[str, set[int]](set), Counter[str]()
    for number, records in partitions.items():
        for key, value in records:
            record = json.loads(value)
            assert len(value) == 512
            assert key == record["metadata"]["id"]
            assert record["bench"]["run"] == "e2e"
            seqs[record["bench"]["seq"]] += 1
            per_key[key] += 1
            where[key].add(number)
        in_order = [json.loads(value)["bench"]["seq"] for _, value in records]
        assert in_order == sorted(in_order)
    assert seqs == Counter(range(7, 30_007))
    assert set(per_key.values()) == {60}
    assert all(len(numbers) == 1 for numbers in where.values())
    few = Kafka(bootstrap).some_records(topic, 20)
    # Four of each partition, from its middle.
    assert len(few) == 24
    for records in partitions.values():
        values = [value for _, value in records]
        found = [values.index(value) for value in few if value in values]
        assert len(found) == 4
        assert max(abs(index - len(values) / 2) for index in found) <= 3
    assert summary["bytes"] == 30_000 * 512


def test_the_topic_in_which_connect_keeps_its_status_is_known_by_its_keys(
    kafka: Kafka, bootstrap: str, topic: str
) -> None:
    kafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    # As Connect's KafkaStatusBackingStore writes them.
    for key in ("status-connector-orders", f"status-topic-{topic}:connector-mine", "status-task-mine-0"):
        producer.produce(topic, key=key, value=b"{}")
    assert producer.flush(20) == 0
    assert kafka.keeps_status(topic, "mine")
    assert kafka.keeps_status("connect-status", "nobodys") is False
    assert kafka.keeps_status(topic, "yours") is False


def test_some_records_of_a_topic_may_be_tombstones(kafka: Kafka, bootstrap: str, topic: str) -> None:
    kafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    values = [b"first", None, b"last"]
    for value in values:
        producer.produce(topic, value, b"key")
    assert producer.flush(20) == 0
    assert kafka.some_records(topic, 3) == values


def test_a_record_that_the_broker_refuses_is_told(kafka: Kafka, topic: str) -> None:
    kafka.create_topic(topic, 1, config={"max.message.bytes": "1000"})
    with pytest.raises(StackError, match=r"did not take 1 of 1 records .*too large"):
        kafka.produce(topic, [bytes(5_000)])


def test_records_without_padding_are_counted_by_their_own_bytes(bootstrap: str, topic: str) -> None:
    done = loadgen("--bootstrap", bootstrap, "--topic", topic, "--count", "1000", "--acks", "1", "--compression", "lz4")
    assert done.returncode == 0, done.stderr
    values = [value for records in read_all(bootstrap, topic).values() for _, value in records]
    assert len(values) == 1000
    assert json.loads(done.stdout)["bytes"] == sum(map(len, values))


def test_a_rate_gives_each_record_its_due_time(bootstrap: str, topic: str) -> None:
    done = loadgen(
        *("--bootstrap", bootstrap, "--topic", topic, "--duration", "2", "--rate", "500"),
        *("--partitions", "1", "--replication", "1"),
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["asked"] == summary["acknowledged"] == 1000
    assert summary["rate_asked"] == 500
    benches = [json.loads(value)["bench"] for _, value in read_all(bootstrap, topic)[0]]
    first = benches[0]["due_us"]
    assert [bench["due_us"] - first for bench in benches] == [2000 * number for number in range(1000)]
    assert all(bench["sent_us"] >= bench["due_us"] for bench in benches)
    assert summary["behind"]["max_ms"] == max(bench["sent_us"] - bench["due_us"] for bench in benches) / 1000


def test_a_topic_with_other_partitions_is_refused_and_left_alone(bootstrap: str, topic: str) -> None:
    arguments = ("--bootstrap", bootstrap, "--topic", topic, "--count", "10", "--replication", "1")
    assert loadgen(*arguments, "--partitions", "3").returncode == 0
    refused = loadgen(*arguments, "--partitions", "4")
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "has 3 partitions, 4 are asked for" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert sum(map(len, read_all(bootstrap, topic).values())) == 10


def test_a_broker_that_is_not_there_is_one_line_and_exit_code_2() -> None:
    refused = loadgen("--bootstrap", CLOSED_PORT, "--topic", "tides", "--count", "10")
    assert refused.returncode == 2
    assert f"no broker answers at {CLOSED_PORT}" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_records_that_the_broker_refuses_are_counted_and_make_exit_code_1(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1, config={"max.message.bytes": "200"})])[topic].result()
    done = loadgen("--bootstrap", bootstrap, "--topic", topic, "--count", "100")
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["sent"], summary["acknowledged"], summary["failed"]) == (100, 0, 100)
    assert sum(summary["errors"].values()) == 100


def test_an_interrupted_load_accounts_for_what_it_sent(bootstrap: str, topic: str) -> None:
    process = subprocess.Popen(
        command("--bootstrap", bootstrap, "--topic", topic, "--duration", "60", "--rate", "2000"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert " records acknowledged, " in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    summary = json.loads(output)
    assert summary["interrupted"] is True
    assert summary["sent"] == summary["acknowledged"] + summary["failed"]
    assert summary["acknowledged"] == sum(map(len, read_all(bootstrap, topic).values()))
