"""The sinks against the real services: what is stored is what is counted."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest

from sinkbench.analysis.audit import SeqAudit
from sinkbench.analysis.samples import OTHER_CONNECTIONS, OTHER_POOL_CLIENTS
from sinkbench.cli.main import ENDING_SIGNALS, _interrupt
from sinkbench.errors import Interrupted, StackError, TargetError
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Refused, Sink, open_sink
from sinkbench.sinks.elasticsearch.sink import ElasticsearchSink
from sinkbench.sinks.postgres.sink import PostgresSink
from sinkbench.stack.local import LocalStack
from tests.e2e.hands import store, with_target
from tests.e2e.onetrial import checkout_with, index_with, one_trial
from tests.e2e.races import left_behind
from tests.support.waiting import until

TARGET = "tides_test_sinks"
ID = "id bigint GENERATED ALWAYS AS IDENTITY"
PLAIN = f"CREATE TABLE tides ({ID} PRIMARY KEY, payload jsonb NOT NULL);"
COUNTED = f"""
{PLAIN}
CREATE TABLE counts (records bigint NOT NULL);
INSERT INTO counts VALUES (0);
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE counts SET records = records + (SELECT count(*) FROM fresh);
    RETURN NULL;
END $$;
CREATE TRIGGER counted AFTER INSERT ON tides REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION counted();
"""  # noqa: S608 - of our own
TYPED = f"""
CREATE DOMAIN reading AS jsonb CHECK (VALUE ? 'bench');
CREATE TYPE kind AS ENUM ('tide', 'wind');
CREATE TABLE tides ({ID}, payload reading NOT NULL, kind kind NOT NULL DEFAULT 'tide');
CREATE INDEX ON tides (kind);
"""
PARTITIONED = f"""
CREATE TABLE tides ({ID}, stored timestamptz NOT NULL DEFAULT clock_timestamp(), payload jsonb NOT NULL,
    PRIMARY KEY (id)) PARTITION BY HASH (id);
CREATE TABLE even PARTITION OF tides FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE odd PARTITION OF tides FOR VALUES WITH (MODULUS 2, REMAINDER 1);
"""
# Names and numbers of all that is not PostgreSQL's own.
EVERYTHING = """
    SELECT 'relation', oid, relname FROM pg_class WHERE oid >= 16384 AND relkind <> 't'
    UNION SELECT 'routine', oid, proname FROM pg_proc WHERE oid >= 16384
    UNION SELECT 'type', oid, typname FROM pg_type WHERE oid >= 16384
    UNION SELECT 'schema', oid, nspname FROM pg_namespace WHERE oid >= 16384 AND nspname !~ '^pg_'
"""


@pytest.fixture
def target(sink: Sink) -> Iterator[str]:
    sink.create(TARGET)
    yield TARGET
    sink.drop(TARGET)


def document(seq: int, run: str = "r1") -> bytes:
    return json.dumps({"data": [{"t": "2026-01-31 17:06", "v": "1.234"}], "bench": {"run": run, "seq": seq}}).encode()


def test_the_audit_finds_every_loss_and_every_duplicate(stack: LocalStack, sink: Sink, target: str) -> None:
    assert (sink.read(target).stored, list(map(list, sink.sequences(target, "r1")))) in ((0, []), (0, [[]]))
    there = [seq for seq in range(1000) if seq not in (17, 18, 500)] + [3, 3, 999]
    store(stack, sink.name, target, [document(seq) for seq in there])
    sink.settle(target)
    audit = SeqAudit(1000)
    for seqs in sink.sequences(target, "r1"):
        audit.add(seqs)
    result = audit.result()
    assert (result.lost, result.duplicates, result.stored) == (3, 3, 1000)
    assert audit.lost_ranges() == "17-18, 500"
    assert sink.read(target).stored == 1000


def test_rows_of_another_run_are_not_among_its_sequences(stack: LocalStack, sink: Sink, target: str) -> None:
    store(stack, sink.name, target, [document(0), document(1, run="r2"), b'{"bench": {"run": "r1"}}'])
    sink.settle(target)
    assert np.concatenate(list(sink.sequences(target, "r1"))).tolist() == [0]
    assert sink.count(target) == 3


def test_the_controllers_own_connections_are_not_counted(stack: LocalStack, sink: Sink, target: str) -> None:
    with closing(open_sink(sink.name, stack.endpoints, CHECKOUT)) as second:
        before = second.read(target).backends
        sink.read(target)
        assert second.read(target).backends == before


def test_connections_that_were_open_before_are_told_from_those_that_come(
    stack: LocalStack, sink: Sink, target: str
) -> None:
    def others() -> tuple[int, float]:
        seen = sink.read(target)
        return (seen.backends or 0) - before, seen.signs[OTHER_CONNECTIONS] - before

    before = sink.read(target).backends or 0
    address = stack.endpoints.sinks[sink.name].address
    with ExitStack() as opened:

        def join() -> None:
            if isinstance(sink, PostgresSink):
                opened.enter_context(psycopg.connect(address))
            else:
                opened.enter_context(httpx.Client()).get(f"{address}/_cluster/health")

        join()
        assert sink.capabilities.others.seen().connections == before + 1
        sink.capabilities.others.exclude_existing()
        join()
        # Who is connected to Elasticsearch is asked once a second.
        until(lambda: others() == (2, 1), 10)


def test_connections_that_are_closing_are_nobodys(stack: LocalStack) -> None:
    pooled = stack.endpoints.sinks["pgbouncer"].address.replace("dbname=pgbouncer", "dbname=sinkbench")
    with with_target(open_sink("postgres", stack.endpoints, CHECKOUT), TARGET) as postgres:
        held = psycopg.connect(pooled, prepare_threshold=None)
        threading.Timer(1.0, held.close).start()
        postgres.capabilities.others.exclude_existing()
        assert OTHER_POOL_CLIENTS not in postgres.read(TARGET).signs


def test_what_others_write_is_counted_by_its_place(stack: LocalStack, sink: Sink, target: str) -> None:
    store(stack, sink.name, target, [document(seq) for seq in range(7)])
    # PostgreSQL tells of its tables a second later.
    until(lambda: sink.capabilities.others.seen().written.get(target) == 7, 10)


def test_what_was_dropped_is_gone_and_dropping_it_again_is_fine(sink: Sink, target: str) -> None:
    assert sink.leftovers("tides_test_") == [target]
    sink.drop(target)
    sink.drop(target)
    assert sink.leftovers("tides_test_") == []


def test_the_postgres_table_has_json_the_time_of_insertion_and_an_identity(
    stack: LocalStack, database: psycopg.Connection, made: "Made"
) -> None:
    usual = (CHECKOUT / "postgres" / "schema.sql").read_text()
    store(stack, made(usual).name, TARGET, [document(0), document(1)])
    columns = "id, now() - stored < interval '1 minute', payload->'bench'->>'seq'"
    found = database.execute(f"SELECT {columns} FROM {TARGET} ORDER BY id".encode()).fetchall()  # noqa: S608
    assert found == [(1, True, "0"), (2, True, "1")]


Made = Callable[[str], PostgresSink]


@pytest.fixture
def made(stack: LocalStack, database: psycopg.Connection, tmp_path: Path) -> Iterator[Made]:
    """Makes the target of a schema file with that text; afterwards the database is what it was."""
    before = set(database.execute(EVERYTHING).fetchall())
    file = tmp_path / "schema.sql"
    sink = PostgresSink(stack.endpoints.sinks["postgres"].address, None, file)

    def make(text: str) -> PostgresSink:
        file.write_text(text)
        sink.create(TARGET)
        return sink

    yield make
    sink.drop(TARGET)
    sink.close()
    assert set(database.execute(EVERYTHING).fetchall()) == before


def test_a_trigger_in_the_schema_file_works_with_its_function(
    stack: LocalStack, database: psycopg.Connection, made: Made
) -> None:
    store(stack, made(COUNTED).name, TARGET, [document(seq) for seq in range(7)])
    assert database.execute(f"SELECT records FROM {TARGET}.counts").fetchall() == [(7,)]  # noqa: S608


def test_columns_of_a_domain_and_an_enum_are_there(stack: LocalStack, database: psycopg.Connection, made: Made) -> None:
    sink = made(TYPED)
    store(stack, sink.name, TARGET, [document(0)])
    found = database.execute(f"SELECT kind::text, payload->'bench'->>'seq' FROM {TARGET}").fetchall()  # noqa: S608
    assert found == [("tide", "0")]
    assert np.concatenate(list(sink.sequences(TARGET, "r1"))).tolist() == [0]
    with pytest.raises(Refused, match="violates check constraint"):
        store(stack, sink.name, TARGET, [b"{}"])


def test_a_partitioned_table_keeps_its_partitions_and_is_counted_and_measured_with_them(
    stack: LocalStack, database: psycopg.Connection, made: Made
) -> None:
    sink = made(PARTITIONED)
    store(stack, sink.name, TARGET, [document(seq) for seq in range(500)])
    shares = [
        database.execute(f"SELECT count(*) FROM {TARGET}.{part}").fetchall()[0][0]  # noqa: S608
        for part in ("even", "odd")
    ]
    assert sum(shares) == 500
    assert min(shares) > 0
    assert sink.read(TARGET).stored == sink.count(TARGET) == 500
    assert sorted(np.concatenate(list(sink.sequences(TARGET, "r1"))).tolist()) == list(range(500))
    assert (sink.capabilities.times.rate(TARGET, 500) or 0) > 0
    # A page of 8 KiB holds some 70 of these.
    assert (sink.disk_bytes(TARGET) or 0) > 2 * 3 * 8192
    assert sink.leftovers("tides_test_") == [TARGET]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{PLAIN} CREATE FUNCTION public.far() RETURNS int RETURN 1;", r"makes function public.far\(\) outside"),
        (f"{PLAIN} CREATE SCHEMA far; CREATE TYPE far.x AS ENUM ();", "makes schema far, type far.x outside"),
        (f"{PLAIN} CREATE ROLE far;", "makes role far outside"),
        ("CREATE TABLE public.tides_far (n int);", "makes table public.tides_far outside"),
        (f"DROP TABLE IF EXISTS tides; {PLAIN}", "removes table public.tides, which it has not made"),
        (f"BEGIN; {PLAIN} COMMIT;", "leave BEGIN and COMMIT out"),
        (f"CREATE TABLE tides ({ID}, record jsonb)", 'needs a column "payload"'),
        (f"CREATE TABLE tides ({ID}, payload text)", '"payload" must be of jsonb or json'),
        ("CREATE TABLE tides (payload jsonb)", "needs an identity column"),
        ("CREATE VIEW tides AS SELECT 1 AS payload", "its tides is no table"),
        (f"CREATE TABLE tide ({ID}, payload jsonb)", "makes no table tides"),
        ("CREATE TABEL tides", 'syntax error at or near "TABEL"'),
    ],
)
def test_a_schema_file_that_would_lose_or_leave_something_is_refused(made: Made, text: str, said: str) -> None:
    with pytest.raises(TargetError, match=f"did not make the table {TARGET} of .*schema.sql: .*{said}") as refused:
        made(text)
    assert "\n" not in str(refused.value)


def test_what_a_schema_file_sets_ends_with_it(made: Made) -> None:
    sink = made(f"SET search_path TO {TARGET}; SET datestyle TO German; {PLAIN} CREATE TEMP TABLE passing (n int);")
    assert sink.read(TARGET).stored == 0
    sink.drop(TARGET)
    sink.create(TARGET)


def test_what_a_killed_run_has_left_is_found_with_its_schema_and_nothing_of_others_is_dropped(
    database: psycopg.Connection, made: Made
) -> None:
    sink = made(COUNTED)
    database.execute(f"DROP TABLE {TARGET}")
    database.execute("CREATE SCHEMA tides_test_theirs")
    try:
        assert sink.leftovers("tides_test_") == [TARGET]
        with pytest.raises(StackError, match="has not made the schema tides_test_theirs"):
            sink.drop("tides_test_theirs")
        database.execute(f"CREATE VIEW public.theirs AS SELECT * FROM {TARGET}.counts")  # noqa: S608
        with pytest.raises(StackError, match=r"view public\.theirs needs what sinkbench has made"):
            sink.drop(TARGET)
        database.execute("DROP VIEW public.theirs")
        sink.drop(TARGET)
        assert sink.leftovers("tides_test_") == []
    finally:
        database.execute("DROP VIEW IF EXISTS public.theirs; DROP SCHEMA tides_test_theirs")


def test_a_connector_fills_a_partitioned_table_with_a_trigger_and_a_domain(stack: LocalStack, tmp_path: Path) -> None:
    typed = PARTITIONED.replace("payload jsonb", "payload reading")
    counted = COUNTED.replace(PLAIN, f"CREATE DOMAIN reading AS jsonb CHECK (VALUE ? 'bench');{typed}")
    # The workers may be cold.
    plan = "pipelines: [postgres/jdbc-pgbouncer]\ndrain: {stall_seconds: 120}\n"
    record, _ = one_trial(stack, tmp_path, plan, 20_000, checkout=checkout_with(tmp_path, counted))
    assert record.audit is not None, record
    assert (record.audit.stored, record.audit.lost, record.audit.duplicates) == (20_000, 0, 0)
    assert (record.audit.compared, record.audit.checked, record.audit.altered) == (20_000, 20_000, 0)
    assert left_behind(stack) == []


def test_documents_are_given_as_they_are_stored(stack: LocalStack, sink: Sink, target: str) -> None:
    store(
        stack, sink.name, target, [document(seq) for seq in range(5)] + [document(1, run="another"), b'{"bench": {}}']
    )
    sink.settle(target)
    found = sink.capabilities.documents.some(target, "r1", [1, 3, 99])
    assert found == {seq: json.loads(document(seq)) for seq in (1, 3)}


def test_what_a_crash_would_empty_is_said_to_be_so(stack: LocalStack, sink: Sink, tmp_path: Path) -> None:
    usual = [sink.create(TARGET).notes]
    sink.drop(TARGET)
    if isinstance(sink, PostgresSink):
        file, said = tmp_path / "schema.sql", "PostgreSQL has stored may be gone after a crash: the table is UNLOGGED"
        file.write_text(PLAIN.replace("CREATE TABLE", "CREATE UNLOGGED TABLE"))
    else:
        file = index_with(tmp_path, translog={"durability": "async"})
        said = "Elasticsearch has stored may be gone after a crash: index.translog.durability is async"
    try:
        assert [*usual, sink.create(TARGET, file).notes] == [(), (f"what {said}",)]
    finally:
        sink.drop(TARGET)


def test_an_index_that_became_another_than_was_asked_for_is_refused(stack: LocalStack, tmp_path: Path) -> None:
    file = tmp_path / "index.json"
    with closing(ElasticsearchSink(stack.endpoints.sinks["elasticsearch"], file)) as sink:
        # There is one node, and so no place for a copy.
        file.write_text('{"settings": {"number_of_replicas": 2, "auto_expand_replicas": "0-1"}}')
        with pytest.raises(TargetError, match=r"index.json: index\.number_of_replicas 2 was asked for, and is 0"):
            sink.create(TARGET)
        file.write_text('{"mappings": {"dynamc": true}}')
        with pytest.raises(TargetError, match="dynamc"):
            sink.create(TARGET)
        assert sink.leftovers(TARGET) == []


def test_what_an_index_template_of_the_cluster_has_added_is_a_note(stack: LocalStack, tmp_path: Path) -> None:
    template = f"{stack.endpoints.sinks['elasticsearch'].address}/_index_template/theirs"
    adds = {"settings": {"refresh_interval": "30s"}, "mappings": {"properties": {"extra": {"type": "date"}}}}
    body = {"index_patterns": ["tides_5eeded_*"], "priority": 900, "template": adds}
    plan = "pipelines: [elasticsearch/camel-bulk]\ndrain: {stall_seconds: 120}\n"
    httpx.put(template, json=body).raise_for_status()
    try:
        noted, _ = one_trial(stack, tmp_path, plan, 2_000)
    finally:
        httpx.delete(template).raise_for_status()
    added = "Elasticsearch added to what index.json asks for: index.refresh_interval 30s, the field extra"
    assert [note for note in noted.notes if "added" in note] == [added]


def test_an_interrupted_query_leaves_the_connection_fit_to_clean_up_with(stack: LocalStack) -> None:
    before = signal.signal(signal.SIGUSR1, _interrupt)
    endings = {each: signal.getsignal(each) for each in ENDING_SIGNALS}
    timer = threading.Timer(1, os.kill, [os.getpid(), signal.SIGUSR1])
    try:
        with psycopg.connect(stack.endpoints.sinks["postgres"].address, autocommit=True) as connection:
            timer.start()
            with pytest.raises(Interrupted):
                connection.execute("SELECT pg_sleep(20)")
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)
        for each, handler in endings.items():
            signal.signal(each, handler)


@pytest.mark.parametrize(
    ("pipeline", "target", "lacks"),
    [("postgres/jdbc", "row", "payload"), ("postgres/jdbc-idempotent", "btree", "__connect_offset")],
)
def test_a_table_without_a_column_that_the_connector_fills_is_refused(
    stack: LocalStack, tmp_path: Path, pipeline: str, target: str, lacks: str
) -> None:
    plan = f"pipelines: [{{pipeline: {pipeline}, target: postgres/targets/{target}.sql}}]\n"
    said = f"{pipeline}: the table of postgres/targets/{target}.sql has no column {lacks}, which {pipeline} fills"
    with pytest.raises(TargetError, match=said):
        one_trial(stack, tmp_path, plan, 2_000)
    assert left_behind(stack) == []
