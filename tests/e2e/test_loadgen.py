"""loadgen against a real broker: what it says it sent is what the topic holds."""

import json
import signal
import subprocess
import sys
import uuid
from collections import defaultdict

import pytest
from confluent_kafka import Producer

from loadgen.client import prepare_topic
from loadgen.options import Load
from sinkbench.errors import StackError
from sinkbench.services.kafka import Kafka
from tests.e2e.topics import records_of
from tests.support.commands import loadgen, refuses, succeeded

CLOSED_PORT = "127.0.0.1:9"


def test_each_seq_is_in_the_topic_exactly_once_and_as_the_summary_says(
    bootstrap: str, kafka: Kafka, topic: str
) -> None:
    to = ("--bootstrap", bootstrap, "--topic", topic, "--partitions", "6", "--replication", "1")
    records = ("--count", "30000", "--keys", "500", "--record-bytes", "512", "--run", "e2e", "--first-seq", "7")
    summary = json.loads(succeeded(loadgen(*to, *records)).stdout)
    assert (summary["sent"], summary["acknowledged"], summary["failed"]) == (30_000, 30_000, 0)
    partitions, per_key = defaultdict[int, list[bytes]](list), defaultdict[str, set[int]](set)
    for each in records_of(kafka, topic):
        record = json.loads(each.value())
        assert len(each.value()) == 512
        assert each.key().decode() == record["metadata"]["id"]
        assert record["bench"]["run"] == "e2e"
        partitions[each.partition()].append(each.value())
        per_key[record["metadata"]["id"]].add(each.partition())
    in_order = [[json.loads(value)["bench"]["seq"] for value in values] for values in partitions.values()]
    assert in_order == [sorted(seqs) for seqs in in_order]
    assert sorted(seq for seqs in in_order for seq in seqs) == [*range(7, 30_007)]
    assert len(partitions) == 6
    assert [len(numbers) for numbers in per_key.values()] == [1] * 500
    few = kafka.some_records(topic, 20)
    # Four of each partition, from its middle.
    assert len(few) == 24
    for values in partitions.values():
        found = [values.index(value) for value in few if value in values]
        assert len(found) == 4
        assert max(abs(index - len(values) / 2) for index in found) <= 3
    assert summary["bytes"] == 30_000 * 512


def test_every_partition_of_a_new_topic_has_a_leader_when_a_load_begins(bootstrap: str, kafka: Kafka) -> None:
    # A broker makes the logs of a new topic one after another, for a tenth of a second or more.
    for _ in range(10):
        name = f"loadgen-{uuid.uuid4().hex}"
        prepare_topic(Load(bootstrap=bootstrap, topic=name, count=1, partitions=24, replication=1), {}, 1)
        try:
            assert list(kafka.end_offsets(name).values()) == [0] * 24
        finally:
            kafka.delete_topic(name)


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
    with pytest.raises(StackError, match=r"did not take all of 1 records: .*too large"):
        kafka.produce(topic, [bytes(5_000)])


def test_records_without_padding_are_counted_by_their_own_bytes(bootstrap: str, kafka: Kafka, topic: str) -> None:
    to = ("--bootstrap", bootstrap, "--topic", topic)
    done = succeeded(loadgen(*to, "--count", "1000", "--acks", "1", "--compression", "lz4"))
    values = [each.value() for each in records_of(kafka, topic)]
    assert len(values) == 1000
    assert json.loads(done.stdout)["bytes"] == sum(map(len, values))


def test_a_rate_gives_each_record_its_due_time(bootstrap: str, kafka: Kafka, topic: str) -> None:
    to = ("--bootstrap", bootstrap, "--topic", topic, "--partitions", "1", "--replication", "1")
    summary = json.loads(succeeded(loadgen(*to, "--duration", "2", "--rate", "500")).stdout)
    assert summary["asked"] == summary["acknowledged"] == 1000
    assert summary["rate_asked"] == 500
    benches = [json.loads(each.value())["bench"] for each in records_of(kafka, topic)]
    first = benches[0]["due_us"]
    assert [bench["due_us"] - first for bench in benches] == [2000 * number for number in range(1000)]
    assert all(bench["sent_us"] >= bench["due_us"] for bench in benches)
    assert summary["behind"]["max_ms"] == max(bench["sent_us"] - bench["due_us"] for bench in benches) / 1000


def test_a_topic_with_other_partitions_is_refused_and_left_alone(bootstrap: str, kafka: Kafka, topic: str) -> None:
    arguments = ("--bootstrap", bootstrap, "--topic", topic, "--count", "10", "--replication", "1")
    assert loadgen(*arguments, "--partitions", "3").returncode == 0
    refused = refuses(loadgen(*arguments, "--partitions", "4"))
    assert refused.stdout == ""
    assert "has 3 partitions, 4 are asked for" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert sum(kafka.end_offsets(topic).values()) == 10


@pytest.mark.long
def test_a_broker_that_is_not_there_is_one_line_and_exit_code_2() -> None:
    refused = refuses(loadgen("--bootstrap", CLOSED_PORT, "--topic", "tides", "--count", "10"))
    assert f"no broker answers at {CLOSED_PORT}" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_records_that_the_broker_refuses_are_counted_and_make_exit_code_1(
    bootstrap: str, kafka: Kafka, topic: str
) -> None:
    kafka.create_topic(topic, 2, config={"max.message.bytes": "200"})
    done = loadgen("--bootstrap", bootstrap, "--topic", topic, "--count", "100")
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["sent"], summary["acknowledged"], summary["failed"]) == (100, 0, 100)
    assert sum(summary["errors"].values()) == 100


def test_an_interrupted_load_accounts_for_what_it_sent(bootstrap: str, kafka: Kafka, topic: str) -> None:
    asked = ("--bootstrap", bootstrap, "--topic", topic, "--duration", "60", "--rate", "2000")
    process = subprocess.Popen(
        [sys.executable, "-m", "loadgen", "run", *asked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert " records acknowledged, " in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    summary = json.loads(output)
    assert summary["interrupted"] is True
    assert summary["sent"] == summary["acknowledged"] + summary["failed"]
    assert summary["acknowledged"] == sum(kafka.end_offsets(topic).values())
