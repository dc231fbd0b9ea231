"""Before a race, ten records show where a pipeline's records come out, and what they made elsewhere is removed."""

import uuid
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition

from sinkbench.services.kafka import Kafka
from sinkbench.stack.local import LocalStack
from tests.e2e.races import left_behind
from tests.support.commands import Run, refuses, succeeded

# A router with a condition, which only records show to be met.
ROUTED = """
      transforms: payload,route
      transforms.route.type: org.apache.kafka.connect.transforms.RegexRouter
      transforms.route.regex: ".*"
      transforms.route.replacement: "theirs_$0"
      transforms.route.predicate: gone
      transforms.route.negate: "true"
      predicates: gone
      predicates.gone.type: org.apache.kafka.connect.transforms.predicates.RecordIsTombstone
      schema.evolution: basic
"""
DRAIN = "drain: {compiling_percent: 100, window_seconds: 3, pilot_seconds: 1, warm_up_seconds: 1}"
TABLES = "SELECT table_schema || '.' || table_name FROM information_schema.tables WHERE table_name LIKE '%%tides\\_%%'"


def test_ten_records_show_what_is_wrong_with_each_pipeline_and_nothing_of_them_stays(
    stack: LocalStack, kafka: Kafka, sinkbench: Run, tmp_path: Path, database: psycopg.Connection
) -> None:
    nowhere = 'consumer.override.group.id: "their group", connection.password: wrong'
    (tmp_path / "mine.yaml").write_text(
        f"pipelines:\n  - pipeline: postgres/jdbc\n    label: elsewhere\n    overrides:{ROUTED}"
        f"  - {{pipeline: postgres/jdbc, label: nowhere, overrides: {{{nowhere}}}}}\n"
        f"  - {{pipeline: postgres/jdbc, label: broken, target: '{tmp_path}/broken.sql'}}\n"
        f"  - {{pipeline: postgres/jdbc, label: lacking, target: '{tmp_path}/lacking.sql'}}\n"
        f"  - {{pipeline: postgres/jdbc, label: doomed, may_fail: true, overrides: {{{nowhere}}}}}\n"
        # Whether 24 tasks find connections is what its trials would tell.
        f"  - {{pipeline: postgres/jdbc, label: many, multiples: [8]}}\n"
        # It commits what it holds back for longer than that takes, and is well.
        f"  - {{pipeline: elasticsearch/camel-bulk, overrides: {{camel.aggregation.timeout: '4000'}}}}\n"
        f"trials: 1\n{DRAIN}\n"
    )
    (tmp_path / "broken.sql").write_text("CREATE TABLE tides (payload jsonb,);\n")
    (tmp_path / "lacking.sql").write_text("CREATE TABLE tides (id bigint GENERATED ALWAYS AS IDENTITY, p jsonb);\n")
    done = refuses(sinkbench("race", "mine.yaml"))
    lines = done.stderr.splitlines()
    assert len(lines) == 4, done.stderr
    assert "elsewhere: 10 of 10 records did not arrive in postgres" in lines[0]
    assert "meanwhile 10 went into postgres's theirs_tides_" in lines[0]
    assert "(removed again)" in lines[0]
    assert "nowhere: 3 of 3 tasks FAILED" in lines[1]
    assert "password" in lines[1]
    assert "broken" in lines[2]
    assert "syntax error" in lines[2]
    assert "lacking" in lines[3]
    assert "the table needs a column" in lines[3]
    assert list((tmp_path / "results").glob("*")) == []
    assert left_behind(stack) == []
    assert "their group" not in kafka.groups()
    assert database.execute(TABLES).fetchall() == []


@pytest.mark.long
def test_a_group_that_a_connector_file_names_is_followed_and_removed_and_one_that_exists_is_refused(
    kafka: Kafka, sinkbench: Run, topic: str, tmp_path: Path
) -> None:
    group = f"team-{uuid.uuid4().hex}.sink one"
    plan = (
        f'pipelines: [{{pipeline: postgres/jdbc, overrides: {{consumer.override.group.id: "{group}"}}}}]\ntrials: 1\n'
    )
    (tmp_path / "mine.yaml").write_text(plan + DRAIN)
    assert "0 lost, 0 duplicated" in succeeded(sinkbench("race", "mine.yaml")).stdout
    assert group not in kafka.groups()
    # Somebody else's.
    kafka.create_topic(topic, 1)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    refused = refuses(sinkbench("race", "mine.yaml"))
    assert f"the consumer group {group} of consumer.override.group.id exists" in refused.stderr
    assert group in kafka.groups()
    kafka.delete_group(group)
