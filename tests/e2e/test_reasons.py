"""Why tasks fail, as the real connectors, services and their logs say it: all are brought about at the same time."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import psycopg
import pytest

from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka, Record, send
from sinkbench.stack.local import LocalStack
from tests.e2e.failing import TOPIC, URL, changed, few, told
from tests.e2e.races import cluster_set, offer_defaults, remove_connectors
from tests.support.commands import Run
from tests.support.trials import config_of
from tests.support.waiting import until

USER, FULL = "reasons_reader", "reasons_full"
JDBC, POOLED, SQL, COPY, INDEX, BULK = (
    config_of(name)
    for name in (
        *("postgres/jdbc", "postgres/jdbc-pgbouncer", "postgres/camel-sql", "postgres/reference-copy"),
        *("elasticsearch/camel-index", "elasticsearch/reference-bulk"),
    )
)
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
    CREATE TABLE reasons_held (payload jsonb);
    CREATE TABLE reasons_circle (payload text);
"""
# Of users who may do nothing, and who may have no connection.
ROLES = f"CREATE ROLE {USER} LOGIN PASSWORD '{USER}'; CREATE ROLE {FULL} LOGIN PASSWORD '{FULL}' CONNECTION LIMIT 0"
KEYED, SMALL = f"{TOPIC}-keyed", f"{TOPIC}-small"
VALUES = {
    **dict.fromkeys((TOPIC, KEYED), b'{"tide": 1}'),
    f"{TOPIC}-text": b"no json",
    f"{TOPIC}-nul": b'{"tide": "\\u0000"}',
    f"{TOPIC}-latin": b'"Z\xfcrich"',
    f"{TOPIC}-long": b'{"tide": "%s"}' % (b"x" * 40_000),
}
ID = {"properties": {"id": {"type": "keyword"}}}
# Indices that refuse the record, each for another reason.
INDICES = {
    TOPIC: {"mappings": {"dynamic": "strict", **ID}},
    f"{TOPIC}-typed": {"mappings": {"properties": {"tide": {"type": "ip"}}}},
    f"{TOPIC}-wide": {"settings": {"mapping.total_fields.limit": 1}, "mappings": ID},
    f"{TOPIC}-words": {"mappings": {"properties": {"tide": {"type": "keyword"}}}},
    f"{TOPIC}-blocked": {"settings": {"blocks.write": True}},
}
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
QUEUE = "errors.deadletterqueue.topic"


def into(index: str) -> dict[str, str]:
    return changed(INDEX, "${env:ELASTICSEARCH_INDEX}", index, "camel.sink.url")


LOGIN = "(connection.username, connection.password): correct the login"
DATABASE, PASSWORD = "${env:POSTGRES_DB}", "connection.password"
BY_KEY = {"primary.key.mode": "record_key", "insert.mode": "upsert", "primary.key.fields": "id"}
CONSUMER, HELD = "consumer.override", f"{TOPIC}_held"
CIRCLE = f"{TOPIC}_circle SELECT # FROM {HELD} FOR UPDATE"  # noqa: S608 - constants
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
    "key": ({**JDBC, **BY_KEY}, "(primary.key.mode, key.converter): send records with a key"),
    "strict": (into(TOPIC), "(transforms): correct the index's mapping"),
    "typed": (into(f"{TOPIC}-typed"), "(transforms): correct the index's mapping"),
    "term": ({**into(f"{TOPIC}-words"), "topics": f"{TOPIC}-long"}, "(transforms): correct the index's mapping"),
    "wide": (into(f"{TOPIC}-wide"), "(transforms): correct the index's mapping"),
    "blocked": (into(f"{TOPIC}-blocked"), ": free disk space at the sink"),
    "index": (into("nosuch"), "(camel.sink.url: indexName): create the index, or allow it"),
    "bulk-index": ({**BULK, "index": "nosuch"}, "(index): create the index, or allow it"),
    "search-text": ({**INDEX, "topics": f"{TOPIC}-text"}, "(value.converter): the records are not what it reads"),
    "search-host": (changed(INDEX, "${env:ELASTICSEARCH_HOSTS}", "no.invalid:1", "camel.sink.url"),
                    "the workers know no host no.invalid (camel.sink.url): correct it"),
    # Each record has a connection of its own to PgBouncer, and PgBouncer has one to PostgreSQL.
    "prepared": ({**changed(SQL, "{{topics}}", TOPIC, "camel.sink.url"), "topics": f"{TOPIC},{KEYED}",
                  f"{POOL}.url": changed(POOLED, "prepareThreshold=0", "prepareThreshold=1")[URL],
                  f"{POOL}.maxIdle": "0"}, f"({POOL}.url: prepareThreshold): through PgBouncer add prepareThreshold=0"),
    "pooled-user": ({**POOLED, "connection.username": "nobody"}, LOGIN),
    "copy-no-password": ({**COPY, PASSWORD: ""}, LOGIN),
    # PostgreSQL knows 127.0.0.1 alone.
    "address": ({**JDBC, URL: f"{JDBC[URL]}&localSocketAddress=127.0.0.2"},
                "(connection.url, connection.username): allow it in pg_hba.conf"),
    "full": ({**JDBC, "connection.username": FULL, PASSWORD: FULL},
             "(connection.pool.max_size, tasks.max): lower it"),
    "owner": ({**JDBC, "connection.username": USER, PASSWORD: USER, "schema.evolution": "basic",
               "transforms.payload.field": "more"}, "(connection.username): GRANT it INSERT"),
    "sql-column": (changed(SQL, "(payload)", "(nosuch)", "camel.sink.url"),
                   'column "nosuch" of relation "reasons" does not exist: add the column'),
    "copy-latin": ({**COPY, "topics": f"{TOPIC}-latin", "table": TOPIC}, "(transforms): PostgreSQL stores no zero"),
    "copy-once": ({**COPY, "table": f"{TOPIC}_once"}, "(delivery): use upsert"),
    "struct": ({**JDBC, "transforms.payload.type": "org.apache.kafka.connect.transforms.InsertField$Value",
                "transforms.payload.topic.field": "topic"}, "(value.converter, transforms): have the converter give"),
    "key-schema": ({**JDBC, **BY_KEY, "key.converter": JSON["value.converter"],
                    "key.converter.schemas.enable": "false"}, "(primary.key.mode, key.converter): send records with"),
    "text-key": ({**JDBC, "topics": KEYED, TABLE: TOPIC, **BY_KEY},
                 "(value.converter, primary.key.mode, transforms): have the converters give a Struct"),
    "letters": ({**COPY, "topics": f"{TOPIC}-text", "table": TOPIC, "errors.tolerance": "all",
                 f"{QUEUE}.name": SMALL}, f"(producer.override.max.request.size, {QUEUE}.name): raise it"),
    "value": ({**JDBC, f"{CONSUMER}.max.poll.records": "0"}, f"({CONSUMER}.max.poll.records): correct it"),
    "class": ({**SQL, f"{POOL}.driverClassName": "no.such.Driver"}, "(connector.class): the plugin is missing"),
    "lock": ({**JDBC, TABLE: HELD, URL: f"{JDBC[URL]}&options=-c%20lock_timeout=1"}, "(batch.size): write less at on"),
    "ended": ({**COPY, "table": HELD, "retry.for.ms": "0"}, "(retry.for.ms): the server ended the connection"),
    # The last of those that run at the same time: it waits for 5 s to be deadlocked.
    "deadlock": ({**changed(SQL, "{{topics}} (payload) VALUES (#)", CIRCLE, "camel.sink.url"),
                  f"{POOL}.url": f"{JDBC[URL]}&ApplicationName=reasons-deadlock&options=-c%20deadlock_timeout=5s"},
                 "(tasks.max, camel.sink.url): have one task write a row"),
    # These keep others out, too.
    "pool": (POOLED, "(tasks.max): use fewer tasks"),
    "breaker": (INDEX, "(camel.aggregation.size, tasks.max): write less at once"),
}  # fmt: skip
LATE = {name: CASES[name][0] for name in ("pool", "breaker")}


@pytest.fixture(scope="module")
def connect(stack: LocalStack) -> Iterator[ConnectCluster]:
    """The workers, with what all connectors need; whatever has the name of a case is gone afterwards."""
    kafka, address = Kafka(stack.endpoints.kafka), stack.endpoints.sinks["elasticsearch"].address
    names = [f"reasons-{name}" for name in [*CASES, "stands"]]
    with ConnectCluster(stack.endpoints.connect.values()) as cluster, psycopg.connect(dsn_of(stack)) as database:
        offer_defaults(stack)
        database.autocommit = True
        try:
            database.execute(ROLES.encode())
            database.execute(TABLES.encode())
            for index, body in INDICES.items():
                httpx.put(f"{address}/{index}", json=body).raise_for_status()
            for topic, value in VALUES.items():
                kafka.create_topic(topic, 1)
                key = b"1" if topic == KEYED else None
                send({"bootstrap.servers": stack.endpoints.kafka}, [Record(topic, value, key)], 10)
            kafka.create_topic(SMALL, 1, config={"max.message.bytes": "10"})
            yield cluster
        finally:
            remove_connectors(cluster, kafka, *(name for name in names if name in cluster.connectors()))
            for topic in (*VALUES, SMALL):
                kafka.delete_topic(topic)
            httpx.delete(f"{address}/{','.join(INDICES)}?ignore_unavailable=true").raise_for_status()
            tables = ", ".join(re.findall(r"CREATE TABLE (\w+)", TABLES))
            database.execute(f"DROP TABLE IF EXISTS {tables}; DROP ROLE IF EXISTS {USER}, {FULL}".encode())


def dsn_of(stack: LocalStack) -> str:
    return stack.endpoints.sinks["postgres"].address


WAITING = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name ="


@contextmanager
def no_room(stack: LocalStack) -> Iterator[None]:
    """PgBouncer takes no clients, and Elasticsearch nothing that has a body."""
    console = stack.endpoints.sinks["pgbouncer"].address
    with psycopg.connect(console, autocommit=True, prepare_threshold=None) as pooler:
        try:
            pooler.execute("SET max_client_conn = 0")
            with cluster_set(stack, {"network.breaker.inflight_requests.limit": "1b"}):
                yield
        finally:
            pooler.execute("RELOAD")


@pytest.fixture(scope="module")
def reasons(stack: LocalStack, connect: ConnectCluster) -> dict[str, str]:
    """What is said of each."""
    with psycopg.connect(dsn_of(stack)) as other, psycopg.connect(dsn_of(stack), autocommit=True) as database:
        other.execute(f"LOCK TABLE {HELD} IN EXCLUSIVE MODE; SET LOCAL deadlock_timeout = '30s'".encode())

        def find(what: str, name: str) -> None:
            until(lambda: database.execute(f"SELECT {what} {WAITING} '{name}'".encode()).fetchall(), 60)

        def break_in() -> None:
            # What does not come about is told by its own case.
            with suppress(AssertionError, psycopg.errors.DeadlockDetected):
                find("pid", "reasons-deadlock")
                other.execute(f"LOCK TABLE {TOPIC}_circle IN EXCLUSIVE MODE".encode())
                find("pg_terminate_backend(pid)", "sinkbench-reference reasons-ended-0")

        found = told(stack, connect, {name: CASES[name][0] for name in CASES if name not in LATE}, break_in)
    with no_room(stack):
        return found | told(stack, connect, LATE)


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
