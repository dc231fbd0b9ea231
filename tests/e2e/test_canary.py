"""Before a race, ten records show where a pipeline's records come out, and what they made elsewhere is removed."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from psycopg import sql

from sinkbench.services.kafka import Kafka
from sinkbench.stack.local import LocalStack
from tests.e2e.races import left_behind
from tests.support.commands import Run

URL = (
    "jdbc:postgresql://${env:POSTGRES_HOST}:${env:POSTGRES_PORT}/${env:POSTGRES_DB}?stringtype=unspecified"
    "&sslmode=${env:POSTGRES_SSLMODE}&sslrootcert=${env:POSTGRES_CA}&currentSchema=SCHEMA"
)
DRAIN = "drain: {compiling_percent: 100, window_seconds: 3, pilot_seconds: 1, warm_up_seconds: 1}"
TABLES = "SELECT table_schema || '.' || table_name FROM information_schema.tables WHERE table_name LIKE '%%tides\\_%%'"


@pytest.fixture
def schema(stack: LocalStack) -> Iterator[str]:
    """A schema of somebody's."""
    name = f"theirs_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(stack.endpoints.sinks["postgres"].address, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def test_ten_records_show_what_is_wrong_with_each_pipeline_and_nothing_of_them_stays(
    stack: LocalStack, kafka: Kafka, sinkbench: Run, schema: str, tmp_path: Path
) -> None:
    elsewhere = f'connection.url: "{URL.replace("SCHEMA", schema)}", schema.evolution: basic'
    nowhere = 'consumer.override.group.id: "their group", connection.password: wrong'
    (tmp_path / "mine.yaml").write_text(
        "pipelines:\n"
        f"  - {{pipeline: postgres/jdbc, label: elsewhere, overrides: {{{elsewhere}}}}}\n"
        f"  - {{pipeline: postgres/jdbc, label: nowhere, overrides: {{{nowhere}}}}}\n"
        "  - elasticsearch/camel-bulk\n"
        f"trials: 1\n{DRAIN}\n"
    )
    done = sinkbench("race", "mine.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert "elsewhere: 10 of 10 records did not arrive in postgres" in lines[0]
    assert f"meanwhile 10 went into postgres's {schema}.tides_" in lines[0]
    assert "(removed again)" in lines[0]
    assert "nowhere: 3 of 3 tasks FAILED" in lines[1]
    assert "password" in lines[1]
    assert list((tmp_path / "results").glob("*")) == []
    assert left_behind(stack) == []
    assert "their group" not in kafka.groups()
    with psycopg.connect(stack.endpoints.sinks["postgres"].address) as connection:
        assert connection.execute(TABLES).fetchall() == []


def test_a_group_that_a_connector_file_names_is_followed_and_removed_and_one_that_exists_is_refused(
    kafka: Kafka, sinkbench: Run, topic: str, tmp_path: Path
) -> None:
    group = f"team-{uuid.uuid4().hex}.sink one"
    plan = (
        f'pipelines: [{{pipeline: postgres/jdbc, overrides: {{consumer.override.group.id: "{group}"}}}}]\ntrials: 1\n'
    )
    (tmp_path / "mine.yaml").write_text(plan + DRAIN)
    done = sinkbench("race", "mine.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 duplicated" in done.stdout
    assert group not in kafka.groups()
    # Somebody else's.
    kafka.create_topic(topic, 1)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    refused = sinkbench("race", "mine.yaml")
    assert refused.returncode == 2
    assert f"the consumer group {group} of consumer.override.group.id exists" in refused.stderr
    assert group in kafka.groups()
    kafka.delete_group(group)
