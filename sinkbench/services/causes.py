"""Why a connector's tasks fail: from what a trace or a log says to the keys that it concerns, and what to do. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from sinkbench.analysis.keyed import REFERENCE
from sinkbench.secrets import quoted
from sinkbench.services.connect import ConnectorStatus

LONGEST = 240
# Hibernate's message without a connection. It logs the reason, and suggests settings that change nothing.
_NO_CONNECTION = "Unable to determine Dialect without JDBC metadata"
HIDDEN = "no connection to the database came about; the reason is in the worker's log alone"
# A key has a column for each of Debezium's JDBC, other JDBC, Elasticsearch and OpenSearch, and Camel, if it is not of
# all, and more for the reference connectors, of which the last in the file is meant. The connector file fills in "*";
# behind ":" is the part of its value. {1} is the pattern's first group.
_FAMILIES = re.compile(r"(debezium)|(JdbcSink)|(Elasticsearch|Opensearch)|(camel)")
_USER = "connection.username|connection.user|connection.username|camel.*.username|elasticsearch.username"
_AUTH = "connection.password|connection.password|connection.password|camel.*.password|elasticsearch.password"
_LOGIN = f"{_USER} {_AUTH}"
_URL = "connection.url|connection.url|connection.url|camel.*url|elasticsearch.hosts"
_TABLE = "collection.name.format|table.name.format|topics|camel.sink.url|index|table"
_CREATE, _EVOLVE = "schema.evolution|auto.create||", "schema.evolution|auto.evolve||"
_KEY, _KEY_FIELDS = "primary.key.mode|pk.mode|key.ignore||write", "primary.key.fields|pk.fields|||key.column"
_INSERT = "insert.mode|insert.mode|write.method|camel.sink.url|delivery:operation"
_BATCH = "batch.size|batch.size|batch.size|camel.aggregation.size|batch.records"
_POOL = "connection.pool.max_size|||camel.*.maxTotal tasks.max"
_RETRY = "connection.restart.on.errors|max.retries|max.retries||retry.for.ms"
_POLL, _FETCH = "consumer.override.max.poll.records", "consumer.override.max.partition.fetch.bytes"
_VALUE, _CHANGE = "value.converter", "transforms"
# Startup parameters that have another name in a URL.
_IN_URL = {"search_path": "currentSchema"}

# Pattern, keys, what to do; and words for {0}, what was said, if that is not clear. The first that fits is shown.
_TABLE_OF_CAUSES: tuple[tuple[str, ...], ...] = (
    (r"^java\.lang\.OutOfMemoryError", f"{_POLL} {_FETCH}",
     "give the workers more heap (SINKBENCH_CONNECT_HEAP), or have tasks hold less: these keys, the connector's batch"
     " or aggregate", "out of memory, {0}"),
    (r"unsupported startup parameter(?: in options)?: (\w+)", f"{_URL}:{{1}}",
     "take it out, or add it to ignore_startup_parameters", "PgBouncer refuses the startup parameter {1}"),
    (r"prepared statement \"[^\"]*\" (?:does not|already) exist", f"{_URL}:prepareThreshold",
     "through PgBouncer add prepareThreshold=0 to the URL, or set max_prepared_statements (1.21 or later)"),
    (r"no more connections allowed|query_wait_timeout", "tasks.max",
     "use fewer tasks, or raise PgBouncer's max_client_conn (the first) or default_pool_size (the second)"),
    (r"password authentication failed|no password was provided|password is an empty string|SASL authentication failed"
     r"|no such user|HTTP/\S+ 401|role \"[^\"]*\" does not exist|missing authentication credentials"
     r"|unable to authenticate", _LOGIN,
     "correct the login, or create this user"),
    (r"database \"[^\"]*\" does not exist|no such database", _URL, "name a database that exists, or create it"),
    (r"no pg_hba\.conf entry", f"{_URL} {_USER}", "allow it in pg_hba.conf, or (no encryption) set sslmode=require"),
    (r"SSL root certificate|does not support SSL|SSL required|TLS connection required", f"{_URL}:ssl",
     "set sslmode to what the server has: disable; require, which checks no certificate; or name its authority's by"
     " sslrootcert"),
    (r"PKIX path|valid certification path|could not be verified by hostname|No name matching|CertificateException",
     f"{_URL} ||elastic.https.ssl.truststore.location|",
     "name the authority that signed the server's certificate, and the server as its certificate does"),
    (r"UnknownHostException: ([^\s:]+)", _URL, "correct it: the workers look it up", "the workers know no host {1}"),
    (r"Connection to \S+ refused|Connection refused|(?i:connect(?:ion)? timed out|no route to host)", _URL,
     "start that service, correct host and port, or let the workers through to it"),
    (r"too many clients already|remaining connection slots|too many connections for", _POOL,
     "lower it, go through PgBouncer, or raise max_connections"),
    (r"permission denied for|must be owner of", _USER,
     "GRANT it INSERT and SELECT (and CREATE, where the connector makes tables), or name another user"),
    (r"Could not find table|Cannot create table .* because schema evolution|auto-creation is disabled"
     r"|(?<! of )relation \"[^\"]*\" does not exist", f"{_TABLE} {_CREATE}",
     "create the table, correct its name, or let the connector create it"),
    (r"Cannot alter table|Cannot ALTER|auto-evolution is disabled|Failed to find column"
     r"|column \"[^\"]*\" of relation \"[^\"]*\" does not exist", _EVOLVE,
     "add the column, drop the field by a transform, or let the connector add it"),
    (r"is of type \w+ but expression is of type", f"{_URL}:stringtype",
     "add stringtype=unspecified to the URL, or give the column the type of the records"),
    (r"invalid input syntax|field overflow|int\w* out of range|out of range for type|value too long for type", _CHANGE,
     "change the column's type, or the field by a transform"),
    (r"unsupported Unicode escape|invalid byte sequence for encoding", _CHANGE,
     "PostgreSQL stores no zero character and no half of one: take it out by a transform, or use json for jsonb"),
    (r"violates not-null constraint", f"{_KEY_FIELDS} {_CHANGE}", "send that field, or give the column a default"),
    (r"duplicate key value violates", _INSERT, "use upsert: after a restart records are sent once more"),
    (r"matching the ON CONFLICT specification", _KEY_FIELDS, "give the table a primary key of these fields"),
    (r"cannot have null schema|requires records with a non-null key|record key schema|no key fields defined"
     r"|used as document id and can not be null", f"{_KEY} key.converter",
     "send records with a key, to which the converter gives a schema, or choose another mode"),
    (r"requires records with a non-null Struct|Only (?:Struct|Map) objects supported|No fields found using",
     f"{_VALUE} {_CHANGE}",
     "have the converter give a Struct (JSON with schemas.enable, Avro), or wrap the value by HoistField"),
    (r"cannot be cast to class org\.apache\.kafka\.connect\.data\.Struct|\"data\" is null",
     f"{_VALUE} {_KEY} {_CHANGE}",
     "have the converters give a Struct with a schema (or wrap key or value by HoistField)"),
    (r"canceling statement due to (?:statement|lock) timeout", _BATCH,
     "write less at once, raise that timeout, or end what holds the lock (pg_stat_activity)"),
    (r"deadlock detected", f"tasks.max {_INSERT}", "have one task write a row: send its changes with one key"),
    (r"in a read-only transaction", f"{_URL}:targetServerType",
     "it leads to a standby: name the primary, or add targetServerType=primary"),
    (r"JsonConverter with schemas\.enable requires", f"{_VALUE}.schemas.enable",
     "set it to false for plain JSON, or send schema and payload"),
    (r"Unknown magic byte|Error retrieving .* schema|JsonPars|Unrecognized token|Converting byte\[\] to Kafka"
     r"|NotXContent|not_x_content", _VALUE,
     "the records are not what it reads: name the converter that they were written for, or StringConverter"),
    (r"RecordTooLargeException", "producer.override.max.request.size errors.deadletterqueue.topic.name",
     "raise it, and max.message.bytes of the topic"),
    (r"Replication factor: \d+ larger than|target replication factor of \d+ cannot be reached",
     "errors.deadletterqueue.topic.replication.factor",
     "set it to the number of brokers, or less"),
    (r"Not authorized to access|TopicAuthorization|GroupAuthorization", "topics consumer.override.group.id",
     "let the workers' user read these topics as this group, and write to a dead letter queue"),
    (r"CommitFailedException|max\.poll\.interval\.ms", f"{_POLL} consumer.override.max.poll.interval.ms",
     "a poll took longer to write than the interval: lower the first, or raise the second"),
    (r"Invalid value .* for configuration ([\w.]+)", "*{1}", "correct it"),
    (r"ClassNotFoundException|NoClassDefFound|NoSuchMethodError|AbstractMethodError|Failed to find any class",
     "connector.class", "the plugin is missing, lacks a jar, or is of a version that does not fit this Connect"),
    (r"disk usage exceeded|read-only-allow-delete|cluster_block_exception|No space left on device", "",
     "free disk space at the sink; Elasticsearch then wants index.blocks.read_only_allow_delete: null"),
    (r"strict_dynamic_mapping|mapping set to strict|mapper_parsing_exception|document_parsing_exception|immense term"
     r"|failed to parse field|cannot be changed from type|Limit of total fields",
     f"||behavior.on.malformed.documents| {_CHANGE}", "correct the index's mapping, or the field by a transform"),
    (r"HTTP/\S+ 413|Request Entity Too Large|entity content is too long", f"{_BATCH} {_POLL}",
     "send less at once, or raise http.max_content_length"),
    (r"HTTP/\S+ 429|Too Many Requests|es_rejected_execution|circuit_breaking_exception|Data too large",
     f"{_BATCH} ||max.in.flight.requests| tasks.max", "write less at once: the cluster has more than it can take"),
    (r"is unauthorized for|HTTP/\S+ 403|security_exception", _USER,
     "give this user the right to write to the index, and to create it"),
    (r"index_not_found|no such index", "topics|topics|topics|camel.sink.url|index:indexName",
     "create the index, or allow it in action.auto_create_index"),
    # A connection that ended may be what follows from any of these.
    (r"terminating connection|database system is|I/O error occurred while sending|Connection (?:reset|closed)"
     r"|connection has been closed|Database connection failed|Broken pipe", _RETRY,
     "the server ended the connection: its log says why; start the tasks again"),
)  # fmt: skip
CAUSES = [
    (re.compile(pattern), keys, fix, words[0] if words else "{0}") for pattern, keys, fix, *words in _TABLE_OF_CAUSES
]

_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]+: (?=.)")


def texts_of(trace: str) -> list[str]:
    """The exceptions of a Java stack trace, the innermost first, each as `class: message`, without a batch's rows."""
    lines = [line.removeprefix("Caused by: ") for line in trace.splitlines() if line[:1].strip()]
    return [line.rpartition(" was aborted: ")[2] for line in reversed(lines)]


def explained(said: Iterable[str], config: Mapping[str, str], *, of_key: bool = False) -> str | None:
    """What was said, with the keys of the connector file and what to do; None if the table does not know it. `of_key`:
    it was said of the records' keys."""
    texts = list(said)
    for pattern, keys, fix, words in CAUSES:
        for text in texts:
            if (found := pattern.search(text)) is None:
                continue
            parts = [_message(text), *(each or "" for each in found.groups())]
            named = dict.fromkeys(_key(each, parts, config, of_key) for each in keys.split())
            where = ", ".join(filter(None, named))
            return f"{words.format(*parts)}{f' ({where})' if where else ''}: {fix}"
    return None


def _key(spec: str, parts: list[str], config: Mapping[str, str], of_key: bool) -> str:
    """The key that a spec means in this connector file, with the part of its value; "" if it has none."""
    columns, _, part = spec.format(*parts).partition(":")
    names, kind = columns.split("|"), config.get("connector.class", "")
    family = _FAMILIES.search(kind)
    if len(names) == 1:
        (name,) = names
    elif kind.startswith(REFERENCE):
        name = next((each for each in reversed(names) if each in config), "")
    elif family is None or family.lastindex is None:
        name = next((each for each in names if each in config), "")
    else:
        name = names[family.lastindex - 1]
    if "*" in name:
        bare = name[1:] if name.startswith("*") else ""
        name = next((key for key in sorted(config) if fnmatchcase(key, name)), bare)
    if of_key and name.startswith(_VALUE):
        name = f"key{name.removeprefix('value')}"
    part = _IN_URL.get(part, part)
    return f"{name}: {part}" if part and part in str(config.get(name, "")) else name


def failure(status: ConnectorStatus, config: Mapping[str, str], *besides: Callable[[], Iterable[str]]) -> str | None:
    """Why a connector or its tasks FAILED, with the keys of its file that it concerns; None if nothing FAILED. What was
    said `besides`, as in logs, the newest first, is asked for only if the traces do not tell."""
    traces = {trace: texts_of(trace) for trace in status.traces}
    for trace, texts in traces.items():
        if (found := explained(texts, config, of_key="convertKey(" in trace)) is not None:
            return found
    told = [text for trace, texts in traces.items() if _NO_CONNECTION not in trace for text in texts or ["no trace"]]
    for ask in besides if traces else ():
        said = list(ask())
        if (found := explained(said, config)) is not None:
            return found
        told += [text for text in said if "SQLException" in text]
    return _message(next((text for text in told if ": " in text), told[0] if told else HIDDEN)) if traces else None


def _message(text: str) -> str:
    return quoted(_CLASS.sub("", text).removesuffix("Call getNextException to see other errors in the batch."), LONGEST)


_RECORD = re.compile(
    r"(\d{4}-\d\d-\d\d [\d:]{8}\.\d{3})(?: UTC \[\d+\](?: PostgreSQL JDBC Driver| \[unknown\])?)? +([A-Z]+):? +(.*)"
)
# Connect's log context, as `[connector|task-0] `.
_CONTEXT = re.compile(r"\[([^|\]]+)\|[^\]]*\] ")
# The client in PgBouncer's line, and the logger at the end of a worker's.
_AROUND = re.compile(r"^C-0x\w+: \S+ (?:pooler error: )?| \([\w$.]+\)$")


def warnings_in(log: str, connector: str, since: str, *, alone: bool) -> Iterator[str]:
    """What a log of a worker, PgBouncer or PostgreSQL warns of, of this connector, and of none if it is
    `alone`, from `since` on (as 2026-11-26 15:10:23.098, UTC): each before the exceptions behind it."""
    ours = False
    for line in log.splitlines():
        if (found := _RECORD.match(line)) is not None:
            context = _CONTEXT.match(found[3])
            ours = found[1] >= since and found[2] in ("WARN", "WARNING", "ERROR", "FATAL")
            ours &= alone if context is None else context[1] == connector
            line = _AROUND.sub("", _CONTEXT.sub("", found[3], count=1) if context else found[3])
        if ours:
            yield from texts_of(line)
