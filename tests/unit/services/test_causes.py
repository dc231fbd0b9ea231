"""What a trace or a log says, as the keys of the connector file that it concerns, and what to do."""

import re

import pytest

from sinkbench.secrets import conceal
from sinkbench.services.causes import CAUSES, HIDDEN, explained, failure, texts_of, warnings_in
from sinkbench.services.connect import ConnectorStatus, Task

PG = "org.postgresql.util.PSQLException"
EXIT = "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask"
DEBEZIUM = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "connection.url": "jdbc:postgresql://h:6432/b?ssl=true&currentSchema=public&options=-c%20statement_timeout=5s",
    "connection.username": "u",
}
CONFLUENT = {"connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector", "connection.user": "u"}
SEARCH = {"connector.class": "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"}
CAMEL = {
    "connector.class": "org.apache.camel.kafkaconnector.CamelSinkConnector",
    "camel.sink.url": "sql:INSERT?dataSource=#pool",
    "camel.beans.pool.url": "jdbc:postgresql://h/b",
    "camel.beans.pool.username": "u",
}
BULK = {**CAMEL, "camel.sink.url": "elasticsearch://x?operation=Bulk&indexName=tides"}
BULK.pop("camel.beans.pool.url")
COPY = {"connector.class": "sinkbench.reference.PostgresCopyConnector", "topics": "t", "table": "t",
        "connection.url": "jdbc:postgresql://h/b", "connection.username": "u"}  # fmt: skip
OURS = {"connector.class": "sinkbench.reference.ElasticsearchBulkConnector", "topics": "t", "index": "t",
        "elasticsearch.hosts": "h:9200", "elasticsearch.username": "u"}  # fmt: skip
STARTUP = "take it out, or add it to ignore_startup_parameters"
ROWS = "Batch entry 0 INSERT INTO t VALUES (('permission denied for x')) was aborted: ERROR: value too long for type"

# Innermost causes of real traces, and a part of what is said of them; tests/e2e/test_reasons.py brings others about.
SAID = [
    (DEBEZIUM, f"{PG}: FATAL: unsupported startup parameter: search_path",
     f"PgBouncer refuses the startup parameter search_path (connection.url: currentSchema): {STARTUP}"),
    (DEBEZIUM, f"{PG}: FATAL: unsupported startup parameter: options",
     f"PgBouncer refuses the startup parameter options (connection.url: options): {STARTUP}"),
    (DEBEZIUM, f"{PG}: FATAL: unsupported startup parameter in options: statement_timeout",
     f"PgBouncer refuses the startup parameter statement_timeout (connection.url: statement_timeout): {STARTUP}"),
    (DEBEZIUM, f"{PG}: FATAL: unsupported startup parameter: extra_float_digits",
     "extra_float_digits (connection.url): "),
    (DEBEZIUM, f'{PG}: FATAL: password authentication failed for user "u"',
     'FATAL: password authentication failed for user "u" (connection.username, connection.password): correct'),
    (CONFLUENT, f'{PG}: FATAL: password authentication failed for user "u"', "(connection.user, connection.password)"),
    (CAMEL, f"{PG}: FATAL: no such database: nosuch", "(camel.beans.pool.url): name a database"),
    (DEBEZIUM, f"{PG}: The server does not support SSL.", "(connection.url: ssl): set sslmode"),
    (COPY, f'{PG}: ERROR: relation "t" does not exist', '(table): create the table'),
    (COPY, "java.net.UnknownHostException: nohost", "no host nohost (connection.url)"),
    (OURS, "java.net.UnknownHostException: nohost", "no host nohost (elasticsearch.hosts)"),
    (OURS, "a.B: index_not_found_exception: no such index [t]", "(index): create the index"),
    (BULK, "java.net.UnknownHostException: nohost: Name or service not known", "no host nohost (camel.sink.url)"),
    (SEARCH, "java.net.ConnectException: Connection refused", "refused (connection.url): start that service"),
    (DEBEZIUM, f"{PG}: FATAL: sorry, too many clients already", "(connection.pool.max_size, tasks.max): lower it"),
    (DEBEZIUM, f'{PG}: ERROR: prepared statement "S_1" does not exist', "(connection.url): through PgBouncer add prep"),
    (CONFLUENT, 'a.TableAlterOrCreateException: Table "t" is missing and auto-creation is disabled', "auto.create): "),
    (CONFLUENT, 'a.B: Table "t" is missing fields ([SinkRecordField]) and auto-evolution is disabled',
     "(auto.evolve): "),
    (CAMEL, f'{PG}: ERROR: column "x" is of type jsonb but expression is of type character varying', "add stringtype="),
    (DEBEZIUM, f'{PG}: ERROR: invalid input syntax for type bigint: "x"', "(transforms): change the column's type"),
    (DEBEZIUM, f"{PG}: ERROR: unsupported Unicode escape sequence", "(transforms): PostgreSQL stores no zero"),
    (DEBEZIUM, "a.C: Configured primary key mode 'record_key' cannot have null schema",
     "(primary.key.mode, key.convert"),
    (CONFLUENT,
     "a.C: Sink connector 's' is configured with 'delete.enabled=false' and 'pk.mode=record_key' and therefore"
     " requires records with a non-null key and non-null Struct or primitive key schema", "(pk.mode, key.converter): "),
    (CONFLUENT, "a.C: 'pk.mode=none' and therefore requires records with a non-null Struct value",
     "(value.converter, tr"),
    (DEBEZIUM, f"{PG}: ERROR: canceling statement due to statement timeout", "(batch.size): write less at once"),
    (DEBEZIUM, f"{PG}: ERROR: cannot execute INSERT in a read-only transaction", "(connection.url): it leads to a s"),
    (SEARCH, "a.SerializationException: Unknown magic byte!", "(value.converter): the records"),
    (BULK, "a.JsonParsingException: Unexpected char -1 at (line no=1)", "(value.converter): the records"),
    (SEARCH, "a.RecordTooLargeException: The message is 1048680 bytes", "(producer.override.max.request.size, errors"),
    (SEARCH, "a.InvalidReplicationFactorException: Replication factor: 3 larger than available brokers: 1.",
     "(errors.deadletterqueue.topic.replication.factor): set it"),
    (DEBEZIUM, "a.B: The target replication factor of 3 cannot be reached because only 1 broker(s) are registered",
     "(errors.deadletterqueue.topic.replication.factor): set it"),
    (DEBEZIUM, 'java.lang.NullPointerException: Cannot invoke "a.Struct.schema()" because "data" is null',
     "(value.converter, primary.key.mode, transforms): have the converters"),
    (DEBEZIUM, "a.B: class java.lang.String cannot be cast to class org.apache.kafka.connect.data.Struct (java.lang.",
     "(value.converter, primary.key.mode, transforms): have the converters"),
    ({**SEARCH, "consumer.override.max.poll.records": "many"},
     "a.ConfigException: Invalid value many for configuration max.poll.records: Not a number",
     "(consumer.override.max.poll.records): correct it"),
    (SEARCH, 'a.B: Bulk request failed: [{"type":"mapper_parsing_exception","reason":"failed to parse"}]',
     "(behavior.on.malformed.documents, transforms): correct the index's mapping"),
    (BULK, "a.ResponseException: method [POST], URI [/t/_bulk], status line [HTTP/1.1 413 Request Entity Too Large]",
     "(camel.aggregation.size, consumer.override.max.poll.records): send less at once"),
    (SEARCH, "a.ResponseException: URI [/tides/_bulk], status line [HTTP/1.1 429 Too Many Requests]",
     "(batch.size, max.in.flight.requests, tasks.max): write less at once"),
    (SEARCH, "a.E: [security_exception] action [indices:data/write] is unauthorized for user [u]", "(connection.us"),
    (SEARCH, "a.E: [security_exception] unable to authenticate user [u]", "(connection.username, connection.password)"),
    (BULK, "a.E: [index_not_found_exception] no such index [x] and [action.auto_create_index] is [false]",
     "(camel.sink.url: indexName): create the index, or allow it"),
    (SEARCH, "java.lang.OutOfMemoryError: Java heap space", "out of memory, Java heap space (consumer.override.max"),
    (BULK, "a.B: org.apache.http.ConnectionClosedException: Connection closed unexpectedly", "the server ended the c"),
    (DEBEZIUM, f"a.B: {ROWS} character varying(3)  Call getNextException to see other errors in"
     " the batch.", "ERROR: value too long for type character varying(3) (transforms): change"),
    # Of another connector only keys that are there, or are of all.
    ({"connector.class": "a.Mine", "connection.url": "x"}, "a.B: Connection refused", "refused (connection.url):"),
    ({}, "a.B: Connection refused", "Connection refused: start that service"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "cause", "said"), SAID, ids=[cause.partition(": ")[2][:50] for _, cause, _ in SAID])
def test_a_cause_comes_with_the_keys_that_it_concerns_and_what_to_do(
    config: dict[str, str], cause: str, said: str
) -> None:
    found = failure(failed(f"{EXIT}.\n\tat a.B.c(B.java:1)\nCaused by: {cause}\n\tat a.B.d(B.java:2)\n"), config)
    assert found is not None
    assert said in found
    assert "\n" not in found
    assert len(found) < 500


def failed(*traces: str) -> ConnectorStatus:
    tasks = [Task(number, "FAILED", "w:1", trace) for number, trace in enumerate(traces)]
    return ConnectorStatus("RUNNING", "", tuple(tasks))


def test_every_line_of_the_table_has_words_and_a_fix_that_can_be_written() -> None:
    for pattern, keys, fix, words in CAUSES:
        assert not keys.startswith("{0}"), pattern.pattern
        assert fix, pattern.pattern
        assert {each.count("|") for each in keys.split()} <= {0, *range(3, 6)}, keys
        assert set(re.findall(r"\{(\d)\}", f"{keys} {words}")) <= set("0123456789"[: pattern.groups + 1])


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (f"{EXIT}: wrapped\n\tat a.B\nCaused by: a.B: it broke", "it broke"),
        ("java.lang.NullPointerException\n\tat a.B.c(B.java:1)", "java.lang.NullPointerException"),
        ("a.B: it broke\nCaused by: java.io.EOFException\n\tat a.B", "it broke"),
        # What was suppressed has causes of its own.
        ("a.B: it broke\n\tSuppressed: a.B: closing\n\tCaused by: a.B: closed", "it broke"),
        ("", "no trace"),
    ],
)
def test_what_no_line_knows_is_said_as_the_innermost_cause_that_says_something(trace: str, said: str) -> None:
    assert failure(failed(trace), DEBEZIUM) == said
    # The connector's own trace goes before those of its tasks.
    assert failure(ConnectorStatus("FAILED", "a.B: no class", failed(trace).tasks), {}) == "no class"


def test_what_runs_has_no_reason_and_a_long_or_secret_text_is_not_shown_whole() -> None:
    assert failure(ConnectorStatus("RUNNING", "", (Task(0, "RUNNING", "w:1"),)), {}) is None
    conceal("geheimnis")
    found = failure(failed("a.B: Connection refused by geheimnis " + "x" * 5_000), {}) or ""
    assert "geheimnis" not in found
    assert len(found) < 400


def test_the_converter_of_a_key_is_named_where_the_key_cannot_be_read() -> None:
    trace = "a.B: Unknown magic byte!\n\tat org.apache.kafka.connect.runtime.WorkerSinkTask.convertKey(W.java:1)"
    assert "(key.converter)" in (failure(failed(trace), {}) or "")


DIALECT = "org.hibernate.HibernateException: Unable to determine Dialect without JDBC metadata (please set 'x')"
LOG = f"""\
2026-11-26 10:00:00.000 WARN  [mine|task-0] FATAL: database "old" does not exist (error)
2026-11-26 12:00:00.000 INFO  [mine|task-0] FATAL: password authentication failed (error)
Caused by: {PG}: FATAL: password authentication failed
2026-11-26 12:00:01.000 WARN  [other|task-1] FATAL: password authentication failed (error)
Caused by: {PG}: FATAL: password authentication failed
2026-11-26 12:00:02.000 WARN  [mine|task-0] HHH100046: Could not obtain connection (jdbc)
org.hibernate.exception.GenericJDBCException: Unable [FATAL: unsupported startup parameter: search_path] [n/a]
\tat a.B.c(B.java:1)
Caused by: {PG}: FATAL: unsupported startup parameter: search_path
2026-11-26 12:00:02.000 WARN  Connection refused (of another's thread)
2026-11-26 12:00:03.000 ERROR [mine|task-0] WorkerSinkTask{{id=mine-0}} Task threw an uncaught exception (WorkerTask)
Caused by: {DIALECT}
"""
POOLER = """\
2026-11-26 10:00:00.000 UTC [5] WARNING C-0x56: d/u@127.0.0.1:4 pooler error: no such database: old
2026-11-26 12:00:00.000 UTC [5] LOG stats: 0 xacts/s
2026-11-26 12:00:01.000 UTC [5] WARNING C-0x56: d/u@127.0.0.1:4 pooler error: unsupported startup parameter: options=x
2026-11-26 12:00:01.000 UTC [7] psql FATAL:  password authentication failed for user "another"
2026-11-26 12:00:01.000 UTC [7] PostgreSQL JDBC Driver ERROR:  permission denied for table tides
"""


def test_a_reason_that_is_in_a_log_alone_is_read_there_and_only_what_the_connector_said_since_it_began() -> None:
    def of(log: str, since: str = "2026-11-26 12") -> list[str]:
        return list(warnings_in(log, "mine", since, alone=log == POOLER))[::-1]

    hidden = failed(f"a.B: wrapped\nCaused by: {DIALECT}")
    parameter = "PgBouncer refuses the startup parameter search_path (connection.url: currentSchema): "
    assert (failure(hidden, DEBEZIUM, lambda: of(LOG)) or "").startswith(parameter)
    assert of(POOLER) == ["permission denied for table tides", "unsupported startup parameter: options=x"]
    assert "options (connection.url: options)" in (failure(hidden, DEBEZIUM, list, lambda: of(POOLER)[1:]) or "")
    # What the table does not know is said as it is; without a log it is said where the reason is.
    unknown = f"{PG}: FATAL: something new"
    assert failure(hidden, DEBEZIUM, lambda: ["a warning", unknown]) == "FATAL: something new"
    assert failure(hidden, DEBEZIUM) == HIDDEN
    # The trace of one task goes before what most have in a log alone.
    assert failure(failed(*[task.trace for task in hidden.failed] * 2, "a.B: it broke"), DEBEZIUM) == "it broke"
    assert explained(texts_of(DIALECT), DEBEZIUM) is None
