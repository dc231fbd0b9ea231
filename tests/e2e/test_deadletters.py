"""Dead letters, the way back, and records that come twice to pipelines that replace what they have stored."""

import json
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

from sinkbench.analysis.deadletters import PREFIX
from sinkbench.errors import ReasonCode
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka, group_of
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import NAMES, index_with, one_trial
from tests.e2e.races import remove_connectors
from tests.support.commands import Run, refuses, succeeded
from tests.support.observers import At
from tests.support.waiting import until

RECORDS, STORED = 200, 128
LOAD = "load: {partitions: 6, keys: 100}\ndrain: {stall_seconds: 8}\n"
QUEUE = "elasticsearch-dead-letters"


def narrow(folder: Path) -> str:
    """An index that takes the first records alone: a byte ends at 127, and the others are of the wrong type."""
    index = json.loads(index_with(folder, "narrow.json").read_text())
    index["mappings"]["properties"]["bench"]["properties"]["seq"] = {"type": "byte"}
    (folder / "narrow.json").write_text(json.dumps(index))
    return "narrow.json"


@pytest.mark.long
def test_what_a_mapping_rejects_is_a_dead_letter_not_lost(stack: LocalStack, tmp_path: Path, sinkbench: Run) -> None:
    plan = f"pipelines: [{{pipeline: elasticsearch/camel-idempotent, target: {narrow(tmp_path)}}}]\n{LOAD}"
    record, _ = one_trial(stack, tmp_path, plan, RECORDS)
    assert record.audit is not None, record.reasons
    assert (record.audit.stored, record.audit.lost, record.audit.duplicates) == (STORED, 0, 0)
    assert record.audit.dead_letters == RECORDS - STORED
    assert ReasonCode.DEAD_LETTERS in {reason.code for reason in record.reasons}
    assert "TASK_PUT" in succeeded(sinkbench("dlq", QUEUE)).stdout
    # Its topic went with the trial.
    back = refuses(sinkbench("dlq", QUEUE, "--play-back"))
    assert "nothing was played back" in back.stderr
    assert NAMES.topic in back.stderr


@pytest.mark.long
def test_what_a_bulk_loses_without_a_word_is_named_with_what_the_sink_says(stack: LocalStack, tmp_path: Path) -> None:
    plan = f"pipelines: [{{pipeline: elasticsearch/camel-bulk, target: {narrow(tmp_path)}}}]\n{LOAD}"
    record, _ = one_trial(stack, tmp_path, plan, RECORDS)
    assert record.audit is not None, record.reasons
    assert (record.audit.stored, record.audit.lost, record.audit.dead_letters) == (STORED, RECORDS - STORED, 0)
    assert record.lost_ranges == f"{STORED}-{RECORDS - 1}"
    first = record.reasons[0]
    assert first.code == ReasonCode.WRITES_REJECTED
    assert "[bench.seq] of type [byte]" in first.text


@pytest.mark.parametrize(
    ("pipeline", "duplicates"),
    [
        ("{pipeline: postgres/jdbc-idempotent, target: postgres/targets/positions.sql}", 0),
        pytest.param("elasticsearch/camel-idempotent", 0, marks=pytest.mark.long),
        pytest.param("postgres/jdbc", RECORDS, marks=pytest.mark.long),
    ],
)
def test_a_renamed_connector_reads_all_again_and_an_idempotent_pipeline_stores_nothing_twice(
    stack: LocalStack, kafka: Kafka, connect: ConnectCluster, tmp_path: Path, pipeline: str, duplicates: int
) -> None:
    def read_again() -> None:
        """Posts the trial's connector once more under another name, when all is stored."""
        again = f"again-{uuid.uuid4().hex}"
        other = {"name": again, "consumer.override.auto.offset.reset": "earliest"}
        connect.create(again, {**connect.config(NAMES.connector), **other})
        connect.wait_for_tasks(again, 3)
        until(lambda: kafka.committed(group_of(again), NAMES.topic) >= RECORDS)
        remove_connectors(connect, kafka, again)

    observer = At(stopping=read_again)
    record, _ = one_trial(stack, tmp_path, f"pipelines: [{pipeline}]\n{LOAD}", RECORDS, observer=observer)
    assert record.audit is not None, record.reasons
    assert (record.audit.lost, record.audit.duplicates, record.audit.foreign) == (0, duplicates, 0)


def test_dead_letters_go_back_once_to_where_they_came_from(stack: LocalStack, kafka: Kafka, sinkbench: Run) -> None:
    queue, topic = (f"{what}-{uuid.uuid4().hex}" for what in ("queue", "orders"))
    producer = Producer({"bootstrap.servers": stack.endpoints.kafka})
    try:
        for name in (queue, topic):
            kafka.create_topic(name, 2)
        said = {
            **{"topic": topic, "partition": "1", "connector.name": "pg", "stage": "VALUE_CONVERTER"},
            **{"exception.class.name": "org.apache.kafka.connect.errors.DataException", "exception.message": "no JSON"},
        }
        headers = [("own", b"1"), *((PREFIX + name, text.encode()) for name, text in said.items())]
        # The last one was put aside twice, as by a task that began again.
        for offset in (7, 8, 9, 9):
            producer.produce(queue, b"{", b"key", headers=[*headers, (PREFIX + "offset", b"%d" % offset)])
        assert producer.flush(30) == 0
        told = succeeded(sinkbench("dlq", queue, "--play-back"))
        assert f"{queue}: 4 dead letters" in told.stdout
        assert "DataException: no JSON" in told.stdout
        assert "4 letters of 3 records: each record goes back once" in told.stdout
        assert "3 played back" in told.stdout
        assert kafka.end_offsets(topic) == {0: 0, 1: 3}
        assert kafka.some_records(topic, 3) == [b"{"] * 3
        again = sinkbench("dlq", queue, "--play-back")
        assert f"{queue}: 0 dead letters; 4 were played back before" in again.stdout
        assert kafka.end_offsets(topic) == {0: 0, 1: 3}
    finally:
        for name in (queue, topic):
            kafka.delete_topic(name)
        kafka.delete_group(f"sinkbench-dlq-{queue}")


def test_a_queue_that_is_not_there_is_refused(stack: LocalStack, sinkbench: Run) -> None:
    assert "no-such-queue: there is no such topic" in refuses(sinkbench("dlq", "no-such-queue")).stderr
