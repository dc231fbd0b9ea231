"""What limits a trial, on the real stack: each cause brought about on purpose, and runs in which it stays silent."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from sinkbench.analysis.pooler import POOL_WAITING
from sinkbench.analysis.samples import rejected_writes
from sinkbench.errors import ReasonCode
from sinkbench.sinks.elasticsearch.nodes import REJECTED
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import NAMES, one_trial
from tests.e2e.races import Quick
from tests.support.latest import summary_of, trials_of
from tests.support.observers import When
from tests.support.trials import quick_plan
from tests.support.undisturbed import undisturbed
from tests.support.waiting import until


def plan(pipeline: str, keys: int = 10_000) -> str:
    return f"{quick_plan(pipeline, window=5)}load: {{keys: {keys}}}\n"


def trial_of(stack: LocalStack, folder: Path, text: str, records: int) -> dict[str, Any]:
    """A trial of that plan's only cell, as it is stored."""
    record, _ = one_trial(stack, folder, text, records)
    return record.model_dump(mode="json")


def causes_of(trial: dict[str, Any]) -> list[str]:
    """The cause of a trial, and after it what else was found.

    Without the CPU: whoever else works on the machine while the tests run may use it up at any time.
    """
    found = trial["bottleneck"]
    causes = [found["cause"], *(each.split(":")[0] for each in found["also"])]
    return [cause for cause in causes if cause != "machine CPU"] or causes


BROUGHT_ABOUT = {"lock waits", "pool waits", "idle tasks", "uneven records", "uneven placement", "connections used up"}
BROUGHT_ABOUT |= {"generator too slow", "merges"}
# Room for writes of less than so many bytes is left; each of a connector's needs more.
SMALL_WRITE = 64 << 10


def test_nothing_is_found_that_is_not_there_and_all_counts_agree(quick: Quick) -> None:
    folder = quick.folder
    pipelines = ("postgres/jdbc", "elasticsearch/camel-index", "elasticsearch/camel-bulk")
    trials = {trial["pipeline"]: trial for trial in trials_of(folder)}
    jdbc, index, bulk = (trials[pipeline] for pipeline in pipelines)
    # Of the fourth, PgBouncer's pool may well be waited for.
    for trial in (jdbc, index, bulk):
        assert f"{trial['pipeline']}: limited by" in quick.shown or "is not identified" in quick.shown
        assert BROUGHT_ABOUT.isdisjoint(causes_of(trial)), trial
        # For some seconds a busy machine may let nobody run.
        notes = [note for note in trial["notes"] if not note.startswith("no new record was seen in the sink for ")]
        assert notes == trial["invalid"] == [], trial
        # Sent, acknowledged, in the topic, consumed, put and stored.
        assert set(trial["reconciliation"].values()) == {trial["records"]}, trial
    assert "a request a record" not in causes_of(jdbc) + causes_of(bulk)
    for cell in summary_of(folder)["cells"]:
        assert cell["bottleneck"] == trials[cell["pipeline"]]["bottleneck"]
    columns = (folder / "results" / "latest" / jdbc["samples"]).read_text().splitlines()[0].split(",")
    assert {"tasks_put_share", "pg_wait_lock", "pool_waiting", "machine_cpu_seconds_total"} <= set(columns)
    columns = (folder / "results" / "latest" / bulk["samples"]).read_text().splitlines()[0].split(",")
    assert {"tasks_put_share", "es_write_queue", "es_refresh_seconds_total", "es_pressure_bytes"} <= set(columns)


# A put of 500 records that are written one by one would take seconds on a cold stack: the shares need several of them.
ONE_BY_ONE = """
pipelines: [{pipeline: elasticsearch/camel-index, overrides: {consumer.override.max.poll.records: "50"}}]
trials: 1
"""


@pytest.mark.long
def test_one_request_a_record_is_named(stack: LocalStack, tmp_path: Path) -> None:
    trial = undisturbed(lambda folder: trial_of(stack, folder, ONE_BY_ONE, 4_000), tmp_path)
    assert causes_of(trial)[0] == "a request a record", trial
    assert " ms each" in str(trial["bottleneck"])


@pytest.mark.long
def test_tasks_for_which_there_are_no_keys_are_idle(stack: LocalStack, tmp_path: Path) -> None:
    trial = trial_of(stack, tmp_path, plan("postgres/jdbc", keys=1), 100_000)
    assert causes_of(trial)[0] == "idle tasks", trial
    assert "2 of 3 tasks never had records; 1 of 24 partitions" in str(trial["bottleneck"])
    assert set(trial["reconciliation"].values()) == {trial["records"]}, trial


@contextmanager
def held_pool(stack: LocalStack, connections: int) -> Iterator[None]:
    """So many of PgBouncer's connections to PostgreSQL kept busy by transactions that stay open."""
    where = stack.endpoints.sinks["pgbouncer"].address.replace("dbname=pgbouncer", "dbname=sinkbench")
    with ExitStack() as open_ones:
        for _ in range(connections):
            held = psycopg.connect(where, prepare_threshold=None)
            open_ones.callback(held.close)
            held.execute("SELECT 1")
        yield


@pytest.mark.long
@pytest.mark.rare
def test_a_pool_whose_connections_are_held_by_others_is_waited_for(stack: LocalStack, tmp_path: Path) -> None:
    with held_pool(stack, 9):
        trial = trial_of(stack, tmp_path, plan("postgres/jdbc-pgbouncer"), 100_000)
    assert causes_of(trial)[0] == "pool waits", trial
    # The clients that hold it are none of the connector's; whose the pool's own connections are nobody can tell.
    assert 3 <= trial["connections"]["clients_peak"] <= 24
    assert trial["connections"]["server_peak"] is None


@pytest.mark.long
@pytest.mark.rare
def test_a_lock_that_another_session_holds_on_the_table_is_waited_for(stack: LocalStack, tmp_path: Path) -> None:
    other = psycopg.connect(stack.endpoints.sinks["postgres"].address)

    def lock() -> None:
        other.execute(f"LOCK TABLE {NAMES.target} IN EXCLUSIVE MODE".encode())
        threading.Timer(8, other.close).start()

    observer = When(lambda sample: (sample.stored or 0) > 20_000, lock)
    record, _ = one_trial(stack, tmp_path, plan("postgres/jdbc"), 60_000, observer=observer)
    trial = record.model_dump(mode="json")
    assert causes_of(trial)[0] == "lock waits", trial
    assert any(note.startswith("no new record was seen in the sink for ") for note in trial["notes"]), trial


SMALL_BATCHES = """
pipelines: [{{pipeline: {}, overrides: {{consumer.override.max.poll.records: "20"}}}}]
trials: 1
"""


@pytest.mark.long
@pytest.mark.rare
@pytest.mark.parametrize(
    ("service", "pipeline", "cause", "silent"),
    [
        # Kafka, Connect and PgBouncer were not silent: nobody asked them meanwhile.
        ("postgres", "postgres/jdbc", "sink", ""),
        ("pgbouncer", "postgres/jdbc-pgbouncer", "pgbouncer", "PgBouncer"),
        ("kafka", "postgres/jdbc", "kafka", "Kafka"),
    ],
)
def test_a_trial_in_which_a_service_was_frozen_has_no_rate_and_names_the_service(
    stack: LocalStack, tmp_path: Path, service: str, pipeline: str, cause: str, silent: str
) -> None:
    def freeze() -> None:
        threading.Timer(10, stack.faults.do, ["thaw", service]).start()
        stack.faults.do("freeze", service)

    observer = When(lambda sample: (sample.stored or 0) > 50_000, freeze)
    record, samples = one_trial(stack, tmp_path, SMALL_BATCHES.format(pipeline), 150_000, observer=observer)
    (reason,) = record.reasons
    assert reason.code == ReasonCode.STALLED
    assert reason.text.endswith(
        f"{silent} answered no probe meanwhile" if silent else "no new record was seen in the sink"
    )
    stalled = next(note for note in record.notes if note.startswith("no new record was seen in the sink for "))
    assert (silent in stalled) if silent else ("no probe" not in stalled), record
    # Tasks go on for a while with what they have fetched.
    assert record.stalled_seconds >= 5, record
    assert any(stalled in each for each in [record.bottleneck.evidence, *record.bottleneck.also]), record
    assert record.bottleneck.component == cause or record.bottleneck.cause != "a stall", record
    if service == "pgbouncer":
        gap = [each for each in samples if "pgbouncer" in each.silent]
        assert {(each.pool_clients, each.signs.get(POOL_WAITING)) for each in gap} == {(None, None)}
        assert (record.pool.most_waiting, record.pool.longest_wait_ms) == (None, None)
    assert (record.audit.stored, record.audit.lost) == (150_000, 0)


@contextmanager
def memory_for_writes_used_up(url: str) -> Iterator[None]:
    """Writes that wait for a shard which no node may have, until Elasticsearch has hardly memory left for others."""
    waiting = "waiting-for-a-shard"
    settings = {"number_of_replicas": 0, "routing.allocation.require._name": "nobody"}
    with httpx.Client(base_url=url, timeout=30) as client, ThreadPoolExecutor(100) as writers:

        def room() -> int:
            (node,) = client.get("/_nodes/stats/indexing_pressure").json()["nodes"].values()
            memory = node["indexing_pressure"]["memory"]
            return int(memory["limit_in_bytes"] - memory["current"]["all_in_bytes"])

        def write(size: int) -> None:
            document = json.dumps({"text": "x" * size})
            content, kind = f'{{"create": {{}}}}\n{document}\n', {"Content-Type": "application/x-ndjson"}
            httpx.post(f"{url}/{waiting}/_bulk?timeout=5m", content=content, headers=kind, timeout=300)

        made = client.put(f"/{waiting}?wait_for_active_shards=0", json={"settings": {"index": settings}})
        made.raise_for_status()
        try:
            while (left := room()) > SMALL_WRITE:
                writers.submit(write, min(left - SMALL_WRITE // 2, 4 << 20))
                until(lambda before=left: room() < before, 20)
            yield
        finally:
            # Whoever waits for it has an answer then.
            client.delete(f"/{waiting}").raise_for_status()


@pytest.mark.long
def test_writes_that_elasticsearch_rejects_are_named_where_the_connector_loses_them(
    stack: LocalStack, tmp_path: Path
) -> None:
    asked = "pipelines: [elasticsearch/camel-bulk]\ndrain: {stall_seconds: 8}\n"
    with memory_for_writes_used_up(stack.endpoints.sinks["elasticsearch"].address):
        record, samples = one_trial(stack, tmp_path, asked, 20_000)
    assert record.audit.lost > 0, record
    rejected = rejected_writes(samples, REJECTED)
    assert rejected > 0
    assert record.invalid[0] == (
        f"elasticsearch rejected {rejected:,} writes meanwhile: what the connector does not send again is lost"
    )


@pytest.fixture
def burned_cpu() -> Iterator[None]:
    """No CPU left for anybody."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    yield
    for burner in burners:
        burner.kill()
        burner.wait()


@pytest.mark.long
def test_a_machine_without_cpu_left_is_what_limits_whatever_else_waits(
    stack: LocalStack, tmp_path: Path, burned_cpu: None
) -> None:
    trial = trial_of(stack, tmp_path, plan("postgres/jdbc"), 80_000)
    assert trial["bottleneck"]["cause"] == "machine CPU", trial
    assert "what is no part of the stack" in trial["bottleneck"]["evidence"]
