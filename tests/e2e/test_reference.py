"""sinkbench's own connectors: what they store, and what they do with records that are refused and workers that die."""

import os
import re
import subprocess
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from sinkbench.errors import ReasonCode
from sinkbench.plan.entries import read_connector
from sinkbench.services.connect import ConnectCluster
from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from sinkbench.stack.tools import find_java, find_program
from tests.e2e.onetrial import one_trial
from tests.e2e.test_deadletters import LOAD, RECORDS, STORED, narrow

POSITIONS = "target: postgres/targets/positions.sql"
BULK, COPY = "pipeline: elasticsearch/reference-bulk", "pipeline: postgres/reference-copy"
FORMS = (BULK, f"{BULK}-exactly-once", COPY, f"{COPY}-exactly-once, {POSITIONS}")
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
    record, _ = one_trial(stack, tmp_path, f"pipelines: [{{{pipeline}}}]\n", 30_000)
    assert record.audit is not None, record.reasons
    assert (record.audit.stored, record.audit.lost, record.audit.duplicates) == (30_000, 0, 0)
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
    config = {**read_connector(CHECKOUT / "connectors" / f"{file}.json"), "name": "reference"}
    assert key not in connect.validate(config).errors
    assert key in connect.validate({**config, key: value}).errors


def test_what_its_own_tests_say_of_every_failure_holds_also_in_a_real_postgresql(
    stack: LocalStack, tmp_path: Path
) -> None:
    address, schema = stack.endpoints.sinks["postgres"].address, "java_tests"
    at = conninfo_to_dict(address)
    url = f"jdbc:postgresql://{at['host']}:{at['port']}/{at['dbname']}?currentSchema={schema}"
    login = f"&user={at['user']}&password={at['password']}"
    maven = [str(find_program("mvn", "maven")), "-q", "-B", "-f", str(CHECKOUT / "connect" / "reference" / "pom.xml")]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            done = subprocess.run(
                [*maven, "test", f"-Ddist={tmp_path}", f"-Dpostgres.url={url}{login}"],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "JAVA_HOME": str(find_java())},
            )
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
    assert done.returncode == 0, done.stdout + done.stderr
    reports = " ".join(file.read_text() for file in tmp_path.glob("build/**/TEST-*.xml"))
    ran, skipped = (
        sum(map(int, re.findall(rf'<testsuite [^>]*{what}="(\d+)"', reports))) for what in ("tests", "skipped")
    )
    assert ran > 80
    assert skipped == 0


KILLED = """
mode: faults
pipelines: [{PIPELINE, overrides: {consumer.override.session.timeout.ms: "6000"}}]
sustain: {backlog_records: 300_000}
faults:
  - {what: kill, target: worker, at_share: 0.2, seconds: 1}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "pipeline", [pytest.param(each, marks=() if each == FORMS[1] else pytest.mark.rare) for each in FORMS]
)
def test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing_that_has_an_id(
    stack: LocalStack, tmp_path: Path, pipeline: str
) -> None:
    record, _ = one_trial(stack, tmp_path, KILLED.replace("PIPELINE", pipeline))
    assert record.audit is not None, record.reasons
    assert (record.audit.stored - record.audit.duplicates, record.audit.lost) == (300_000, 0)
    if "exactly-once" in pipeline:
        assert record.audit.duplicates == 0
