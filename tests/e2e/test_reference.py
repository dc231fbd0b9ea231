"""sinkbench's own connectors: what they store, and what they do with records that are refused and workers that die."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from sinkbench.errors import ReasonCode
from sinkbench.services.causes import failure
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka, Record, send
from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from sinkbench.stack.tools import find_java, find_program, run
from tests.e2e.onetrial import one_trial
from tests.e2e.races import in_a_drain, remove_connectors
from tests.e2e.test_deadletters import LOAD, RECORDS, STORED, narrow
from tests.support.commands import succeeded
from tests.support.present import present
from tests.support.trials import config_of
from tests.support.waiting import until

POSITIONS = "target: postgres/targets/positions.sql"
BULK, COPY = "pipeline: elasticsearch/reference-bulk", "pipeline: postgres/reference-copy"
FORMS = (BULK, f"{BULK}-exactly-once", COPY, f"{COPY}-exactly-once, {POSITIONS}")
RARE = pytest.mark.rare
# All three tasks write long enough for a sample to see their connections together.
ENOUGH = 150_000
LETTERS = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "reference-letters",
    "errors.deadletterqueue.topic.replication.factor": "-1",
    "errors.deadletterqueue.context.headers.enable": "true",
}


@pytest.mark.parametrize("pipeline", FORMS)
def test_every_record_is_stored_once_by_one_request_for_a_poll(
    stack: LocalStack, tmp_path: Path, pipeline: str
) -> None:
    record, _ = one_trial(stack, tmp_path, f"pipelines: [{{{pipeline}}}]\n", ENOUGH)
    assert record.audit is not None, record.reasons
    assert (record.audit.stored, record.audit.lost, record.audit.duplicates) == (ENOUGH, 0, 0)
    assert (record.audit.altered, record.audit.dead_letters) == (0, 0)
    assert record.records_per_write is None or record.records_per_write > 100
    # One connection a task into PostgreSQL, and for each of its nodes into Elasticsearch.
    assert record.connections.clients_peak == 3


@pytest.mark.long
def test_a_record_that_elasticsearch_refuses_is_a_dead_letter_and_its_neighbours_are_stored_once(
    stack: LocalStack, tmp_path: Path
) -> None:
    plan = f"pipelines: [{{{BULK}, target: {narrow(tmp_path)}, overrides: {LETTERS}}}]\n{LOAD}"
    record, _ = one_trial(stack, tmp_path, plan, RECORDS)
    assert record.audit is not None, record.reasons
    assert (record.audit.stored, record.audit.lost, record.audit.duplicates) == (STORED, 0, 0)
    assert record.audit.dead_letters == RECORDS - STORED


@pytest.mark.long
def test_without_a_queue_the_task_fails_and_names_the_record_with_what_the_sink_says(
    stack: LocalStack, tmp_path: Path
) -> None:
    plan = f"pipelines: [{{{BULK}, target: {narrow(tmp_path)}}}]\n{LOAD}"
    record, _ = one_trial(stack, tmp_path, plan, RECORDS)
    first = record.reasons[0]
    assert first.code == ReasonCode.TASKS_FAILED
    assert "partition" in first.text
    assert "offset" in first.text
    assert "[bench.seq] of type [byte]" in first.text


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("elasticsearch/reference-bulk", "delivery", "at-most-once"),
        ("elasticsearch/reference-bulk", "elasticsearch.hosts", "a:b:c"),
        ("postgres/reference-copy", "connection.url", "jdbc:mysql://a/b"),
        ("postgres/reference-copy", "batch.records", "0"),
    ],
)
def test_connect_says_which_setting_is_wrong(connect: ConnectCluster, file: str, key: str, value: str) -> None:
    config = {**config_of(file), "name": "reference"}
    assert key not in connect.validate(config).errors
    assert key in connect.validate({**config, key: value}).errors


def test_what_its_own_tests_say_of_every_failure_holds_also_in_a_real_postgresql(
    stack: LocalStack, tmp_path: Path, database: psycopg.Connection
) -> None:
    at, schema = conninfo_to_dict(stack.endpoints.sinks["postgres"].address), "java_tests"
    url = f"jdbc:postgresql://{at['host']}:{at['port']}/{at['dbname']}?currentSchema={schema}"
    login = f"&user={at['user']}&password={at['password']}"
    maven = [str(find_program("mvn", "maven")), "-q", "-B", "-f", str(CHECKOUT / "connect" / "reference" / "pom.xml")]
    database.execute(f"CREATE SCHEMA {schema}")
    try:
        tests = [*maven, "test", f"-Ddist={tmp_path}", f"-Dpostgres.url={url}{login}"]
        succeeded(run(tests, {**os.environ, "JAVA_HOME": str(find_java())}))
    finally:
        database.execute(f"DROP SCHEMA {schema} CASCADE")
    reports = " ".join(file.read_text() for file in tmp_path.glob("build/**/TEST-*.xml"))
    ran, skipped = (
        sum(map(int, re.findall(rf'<testsuite [^>]*{what}="(\d+)"', reports))) for what in ("tests", "skipped")
    )
    assert ran > 80
    assert skipped == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("pipeline", "what", "seconds"),
    [
        pytest.param(*each, marks=() if each == (FORMS[1], "kill", 1) else RARE)
        for form in FORMS
        # Frozen for longer than its group waits, a worker goes on with records that others have by then.
        for each in ((form, "kill", 1), (form, "freeze", 16))
    ],
)
def test_a_worker_that_dies_or_comes_back_late_loses_nothing_and_doubles_nothing_that_has_an_id(
    stack: LocalStack, tmp_path: Path, pipeline: str, what: str, seconds: int
) -> None:
    record, _ = one_trial(stack, tmp_path, in_a_drain(pipeline, what, seconds))
    assert record.audit is not None, record.reasons
    assert (record.audit.stored - record.audit.duplicates, record.audit.lost) == (300_000, 0)
    if "exactly-once" in pipeline:
        assert record.audit.duplicates == 0


@dataclass(frozen=True)
class Mishap:
    """What befalls a sink, what the task says of it, and how it is undone; SQL, or for `elasticsearch` a POST."""

    sink: str
    happens: str
    says: str
    undone: str


USER = "mishap"
MISHAPS = {
    "a closed index": Mishap("elasticsearch", "_close", "closed", "_open"),
    "a table that is gone": Mishap(
        "postgres", 'ALTER TABLE "{0}" RENAME TO away', "does not exist", 'ALTER TABLE away RENAME TO "{0}"'
    ),
    "another password": Mishap(
        "postgres",
        "ALTER ROLE mishap PASSWORD 'other';"
        " SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mishap'",
        "(connection.username, connection.password): correct the login",
        "ALTER ROLE mishap PASSWORD 'mishap'",
    ),
}


@pytest.fixture
def table(database: psycopg.Connection, topic: str) -> Iterator[psycopg.Connection]:
    """A connection beside a table for the topic, and a user who may write to it."""
    database.execute(
        f"CREATE ROLE {USER} LOGIN PASSWORD '{USER}'; CREATE TABLE \"{topic}\" (__connect_topic text,"
        " __connect_partition int, __connect_offset bigint, payload jsonb,"
        " UNIQUE (__connect_topic, __connect_partition, __connect_offset));"
        f' GRANT INSERT, SELECT ON "{topic}" TO {USER}'.encode()
    )
    try:
        yield database
    finally:
        database.execute(f'DROP TABLE IF EXISTS "{topic}", away; DROP ROLE {USER}'.encode())


@pytest.mark.long
@pytest.mark.parametrize("mishap", MISHAPS.values(), ids=MISHAPS)
def test_what_befalls_the_sink_in_the_middle_is_named_and_each_record_is_stored_once_after_it(
    stack: LocalStack, connect: ConnectCluster, kafka: Kafka, topic: str, table: psycopg.Connection, mishap: Mishap
) -> None:
    index = f"{stack.endpoints.sinks['elasticsearch'].address}/{topic}"
    file = "elasticsearch/reference-bulk" if mishap.sink == "elasticsearch" else "postgres/reference-copy"
    login = {"connection.username": USER, "connection.password": USER, "table": topic}
    config = {
        **config_of(f"{file}-exactly-once"),
        **{"topics": topic, "tasks.max": "1", **(login if mishap.sink == "postgres" else {"index": topic})},
    }

    def change(what: str) -> None:
        if mishap.sink == "postgres":
            table.execute(what.format(topic).encode())
        else:
            httpx.post(f"{index}/{what}", timeout=30).raise_for_status()

    def stored() -> int:
        if mishap.sink == "postgres":
            return int(table.execute(SQL("SELECT count(*) FROM {}").format(Identifier(topic))).fetchall()[0][0])
        httpx.post(f"{index}/_refresh")
        return int(httpx.get(f"{index}/_count").json().get("count", 0))

    def produce() -> None:
        values = [Record(topic, b'{"tide": %d}' % number) for number in range(500)]
        send({"bootstrap.servers": stack.endpoints.kafka}, values, 30)

    kafka.create_topic(topic, 3)
    httpx.put(index).raise_for_status()
    try:
        produce()
        connect.create(topic, config)
        until(lambda: stored() == 500, 60)
        change(mishap.happens)
        produce()
        status = present(until(lambda: found if (found := connect.status(topic)) and found.failed else None, 60))
        assert mishap.says in (failure(status, config) or "")
        change(mishap.undone)
        connect.restart_failed(topic)
        until(lambda: stored() >= 1000, 60)
        assert stored() == 1000
    finally:
        remove_connectors(connect, kafka, topic)
        httpx.delete(index)
