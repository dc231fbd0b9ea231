"""Why tasks fail, as the real connectors, services and their logs say it: all are brought about at the same time."""

import json
import re
from collections.abc import Iterator
from contextlib import closing

import httpx
import psycopg
import pytest

from sinkbench.services.causes import failure
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka, Record, send
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink, sinks_of
from sinkbench.stack.local import LocalStack
from sinkbench.stack.logs import logs_of
from tests.e2e.races import remove_connectors
from tests.support.commands import Run
from tests.support.waiting import until

TOPIC, USER = "reasons", "reasons_reader"
FILES = {
    name: json.loads((CHECKOUT / "connectors" / f"{name}.json").read_text())["config"]
    for name in (
        *("postgres/jdbc", "postgres/jdbc-pgbouncer", "postgres/camel-sql", "postgres/reference-copy"),
        "elasticsearch/camel-index",
    )
}
URL = "connection.url"
JDBC, POOLED, SQL, COPY, INDEX = FILES.values()
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
POOL = "camel.beans.pool"
TABLE = "collection.name.format"
# Tables that refuse the record, each for another reason.
TABLES = """
    CREATE TABLE reasons (payload jsonb NOT NULL);
    CREATE TABLE reasons_more (payload jsonb NOT NULL, needed text NOT NULL);
    CREATE TABLE reasons_once (payload jsonb UNIQUE);
    INSERT INTO reasons_once VALUES ('{"tide": 1}');
    CREATE TABLE reasons_short (payload varchar(3) NOT NULL);
    CREATE TABLE reasons_keyless
        (__connect_topic text, __connect_partition int, __connect_offset bigint, payload jsonb NOT NULL);
"""
VALUES = {TOPIC: b'{"tide": 1}', f"{TOPIC}-text": b"no json", f"{TOPIC}-nul": b'{"tide": "\\u0000"}'}
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
QUEUE = "errors.deadletterqueue.topic"


def changed(config: dict[str, str], old: str, new: str, key: str = URL) -> dict[str, str]:
    assert old in config[key]
    return {**config, key: config[key].replace(old, new)}


LOGIN = "(connection.username, connection.password): correct the login"
DATABASE, PASSWORD = "${env:POSTGRES_DB}", "connection.password"
TLS = "sslmode=${env:POSTGRES_SSLMODE}&sslrootcert=${env:POSTGRES_CA}"
CASES = {
    "startup": ({**POOLED, URL: f"{POOLED[URL]}&currentSchema=public"}, "PgBouncer refuses the startup parameter"
                " search_path (connection.url: currentSchema): take it out, or add it to ignore_startup_parameters"),
    "options": ({**POOLED, URL: f"{POOLED[URL]}&options=-c%20statement_timeout=5s"},
                "PgBouncer refuses the startup parameter options (connection.url: options): take it out"),
    "password": ({**JDBC, PASSWORD: "wrong"}, LOGIN),
    "pooled-password": ({**POOLED, PASSWORD: "wrong"}, LOGIN),
    "sql-password": ({**SQL, f"{POOL}.password": "wrong"}, f"({POOL}.username, {POOL}.password): correct the login"),
    "database": (changed(JDBC, DATABASE, "nosuch"), 'database "nosuch" does not exist (connection.url): name'),
    "pooled-database": (changed(POOLED, DATABASE, "nosuch"), "(connection.url): name a database"),
    "certificate": (changed(JDBC, TLS, "ssl=true"), "(connection.url: ssl): set sslmode"),
    "port": (changed(JDBC, "${env:POSTGRES_PORT}", "1"), "(connection.url): start that service, correct host and port"),
    "host": (changed(JDBC, "${env:POSTGRES_HOST}", "no.invalid"), "workers know no host no.invalid (connection.url)"),
    "table": ({**JDBC, "collection.name.format": "no"}, "no (collection.name.format, schema.evolution): create the"),
    "sql-table": (changed(SQL, "{{topics}}", "nosuch", "camel.sink.url"),
                  'relation "nosuch" does not exist (camel.sink.url): create the table'),
    "column": ({**JDBC, "transforms.payload.field": "no"}, "(schema.evolution): add the column, drop the field"),
    "right": ({**JDBC, "connection.username": USER, PASSWORD: USER}, "(connection.username): GRANT it INSERT"),
    "schemas": ({**JDBC, **JSON}, "(value.converter.schemas.enable): set it to false for plain JSON"),
    "no-json": ({**JDBC, **JSON, "topics": f"{TOPIC}-text"}, "(value.converter): the records are not what it reads"),
    "no-document": ({**JDBC, "topics": f"{TOPIC}-text", TABLE: TOPIC}, "(transforms): change the column's type"),
    "zero": ({**JDBC, "topics": f"{TOPIC}-nul", TABLE: TOPIC}, "(transforms): PostgreSQL stores no zero character"),
    "bytes": ({**JDBC, "value.converter": BYTES}, "(connection.url: stringtype): add stringtype=unspecified"),
    "more": ({**JDBC, TABLE: f"{TOPIC}_more"}, "(primary.key.fields, transforms): send that field"),
    "once": ({**JDBC, TABLE: f"{TOPIC}_once"}, "(insert.mode): use upsert"),
    "short": ({**JDBC, TABLE: f"{TOPIC}_short"}, "(transforms): change the column's type"),
    "keyless": ({**JDBC, TABLE: f"{TOPIC}_keyless", "insert.mode": "upsert", "primary.key.mode": "kafka"},
                "(primary.key.fields): give the table a primary key"),
    "timeout": ({**JDBC, URL: f"{JDBC[URL]}&options=-c%20statement_timeout=1"}, "(batch.size): write less at once"),
    "read-only": ({**JDBC, URL: f"{JDBC[URL]}&options=-c%20default_transaction_read_only=on"},
                  "(connection.url): it leads to a standby"),
    "queue": ({**JDBC, "errors.tolerance": "all", f"{QUEUE}.name": f"{TOPIC}-letters",
               f"{QUEUE}.replication.factor": "3"}, f"({QUEUE}.replication.factor): set it to the number of brokers"),
    "copy-table": ({**COPY, "table": "nosuch"}, 'relation "nosuch" does not exist'),
    "copy-password": ({**COPY, PASSWORD: "wrong"}, LOGIN),
    "copy-text": ({**COPY, "topics": f"{TOPIC}-text", "table": TOPIC},
                  f"topic {TOPIC}-text, partition 0, offset 0 is refused"),
    "key": ({**JDBC, "primary.key.mode": "record_key", "insert.mode": "upsert", "primary.key.fields": "id"},
            "(primary.key.mode, key.converter): send records with a key"),
    "strict": (changed(INDEX, "${env:ELASTICSEARCH_INDEX}", TOPIC, "camel.sink.url"), "(transforms): correct the in"),
    "search-text": ({**INDEX, "topics": f"{TOPIC}-text"}, "(value.converter): the records are not what it reads"),
    "search-host": (changed(INDEX, "${env:ELASTICSEARCH_HOSTS}", "no.invalid:1", "camel.sink.url"),
                    "the workers know no host no.invalid (camel.sink.url): correct it"),
}  # fmt: skip


@pytest.fixture(scope="module")
def connect(stack: LocalStack) -> Iterator[ConnectCluster]:
    """The workers, with what all connectors need; whatever has the name of a case is gone afterwards."""
    kafka = Kafka(stack.endpoints.kafka)
    names = [f"reasons-{name}" for name in [*CASES, "stands"]]
    with ConnectCluster(stack.endpoints.connect.values()) as cluster, psycopg.connect(dsn_of(stack)) as database:
        for name in sinks_of(stack.endpoints):
            with closing(open_sink(name, stack.endpoints, CHECKOUT)) as sink:
                sink.offer_default()
        database.autocommit = True
        database.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{USER}'".encode())
        database.execute(TABLES.encode())
        body = {"mappings": {"dynamic": "strict", "properties": {"id": {"type": "keyword"}}}}
        httpx.put(f"{stack.endpoints.sinks['elasticsearch'].address}/{TOPIC}", json=body).raise_for_status()
        for topic, value in VALUES.items():
            kafka.create_topic(topic, 1)
            send({"bootstrap.servers": stack.endpoints.kafka}, [Record(topic, value)], 10)
        try:
            yield cluster
        finally:
            remove_connectors(cluster, kafka, *(name for name in names if name in cluster.connectors()))
            for topic in VALUES:
                kafka.delete_topic(topic)
            httpx.delete(f"{stack.endpoints.sinks['elasticsearch'].address}/{TOPIC}").raise_for_status()
            tables = ", ".join(re.findall(r"CREATE TABLE (\w+)", TABLES))
            database.execute(f"DROP TABLE {tables}; DROP ROLE {USER}".encode())


def dsn_of(stack: LocalStack) -> str:
    return stack.endpoints.sinks["postgres"].address


def few(config: dict[str, str]) -> dict[str, str]:
    """With one task and one connection."""
    pool = {"connection.pool.min_size": "1", "connection.pool.max_size": "1"} if "insert.mode" in config else {}
    return {**config, "topics": config["topics"].replace("tides", TOPIC), "tasks.max": "1", **pool}


@pytest.fixture(scope="module")
def reasons(stack: LocalStack, connect: ConnectCluster) -> dict[str, str]:
    """What is said of each."""
    for name, (config, _) in CASES.items():
        connect.create(f"reasons-{name}", few(config))
    found = {}
    for name, (config, _) in CASES.items():
        whole = f"reasons-{name}"
        until(lambda of=whole: (status := connect.status(of)) is not None and bool(status.failed), 90)
        found[name] = failure(connect.status(whole), few(config), *logs_of(stack, whole)) or ""
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_task_that_fails_says_which_key_of_its_file_is_the_cause_and_what_to_do(
    reasons: dict[str, str], name: str
) -> None:
    assert CASES[name][1] in reasons[name], reasons


@pytest.mark.long
@pytest.mark.rare
def test_a_connector_that_waits_for_a_lock_is_running_and_stands_still(
    stack: LocalStack, connect: ConnectCluster, sinkbench: Run
) -> None:
    with psycopg.connect(dsn_of(stack)) as other:
        other.execute(f"LOCK TABLE {TOPIC} IN EXCLUSIVE MODE".encode())
        connect.create("reasons-stands", few(JDBC))
        connect.wait_for_tasks("reasons-stands", 1)
        done = sinkbench("doctor", "--connector", "reasons-stands")
        assert done.returncode == 1, done.stdout + done.stderr
        shown = done.stdout.splitlines()
        assert shown[0].startswith("reasons-stands: RUNNING, 1 task (connect-"), done.stdout
        assert shown[2].startswith(f"unread: 1 record ({TOPIC}-0 1); the next one was written "), done.stdout
        assert f"in 1 of 1 partition ({TOPIC}-0) nothing was committed for 6" in done.stdout
        assert "docs/doctor.md#standing-still" in done.stdout
        assert len(shown) < 25
    until(lambda: "unread: 0 records" in sinkbench("doctor", "--connector", "reasons-stands").stdout, 90)
    done = sinkbench("doctor", "--connector", "reasons-stand")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such connector; did you mean 'reasons-stands'?" in done.stderr
