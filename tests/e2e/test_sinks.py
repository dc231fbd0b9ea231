"""The sinks against the real services: what is stored is what is counted."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator

import httpx
import numpy as np
import psycopg
import pytest

from sinkbench.audit import SeqAudit
from sinkbench.cli import ENDING_SIGNALS, Interrupted, _interrupt
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Sink, open_sink
from sinkbench.stack.local import LocalStack

TARGET = "tides_test_sinks"


@pytest.fixture
def target(sink: Sink) -> Iterator[str]:
    sink.create(TARGET)
    yield TARGET
    sink.drop(TARGET)


def document(seq: int, run: str = "r1") -> str:
    return json.dumps({"data": [{"t": "2026-01-31 17:06", "v": "1.234"}], "bench": {"run": run, "seq": seq}})


def store(stack: LocalStack, sink: Sink, target: str, documents: list[str]) -> None:
    """Writes documents to the sink by a plain client."""
    if sink.name == "postgres":
        with psycopg.connect(stack.endpoints.postgres, application_name="someone else") as connection:
            for text in documents:
                connection.execute(f"INSERT INTO {target} (payload) VALUES (%s::jsonb)", [text])  # noqa: S608
        return
    lines = "".join(f'{{"index":{{}}}}\n{text}\n' for text in documents)
    answer = httpx.post(
        f"{stack.endpoints.elasticsearch}/{stack.endpoints.elasticsearch_index}/_bulk",
        content=lines,
        headers={"content-type": "application/x-ndjson"},
    )
    assert not answer.json()["errors"]


def test_a_new_target_is_empty(sink: Sink, target: str) -> None:
    assert sink.read(target).stored == 0
    sink.settle(target)
    assert sink.count(target) == 0
    assert list(sink.sequences(target, "r1")) in ([], [pytest.approx(np.array([]))])


def test_the_audit_finds_every_loss_and_every_duplicate(stack: LocalStack, sink: Sink, target: str) -> None:
    there = [seq for seq in range(1000) if seq not in (17, 18, 500)] + [3, 3, 999]
    store(stack, sink, target, [document(seq) for seq in there])
    sink.settle(target)
    audit = SeqAudit(1000)
    for seqs in sink.sequences(target, "r1"):
        audit.add(seqs)
    result = audit.result()
    assert (result.lost, result.duplicates, result.stored) == (3, 3, 1000)
    assert audit.lost_ranges() == "17-18, 500"
    assert sink.read(target).stored == 1000


def test_rows_of_another_run_are_not_among_its_sequences(stack: LocalStack, sink: Sink, target: str) -> None:
    store(stack, sink, target, [document(0), document(1, run="r2"), '{"bench": {"run": "r1"}}'])
    sink.settle(target)
    assert np.concatenate(list(sink.sequences(target, "r1"))).tolist() == [0]
    assert sink.count(target) == 3


def test_the_controllers_own_connections_are_not_counted(stack: LocalStack, sink: Sink, target: str) -> None:
    second = open_sink(sink.name, stack.endpoints, CHECKOUT)
    try:
        before = second.read(target).backends
        sink.read(target)
        assert second.read(target).backends == before
    finally:
        second.close()


def test_somebody_elses_connection_is_counted(stack: LocalStack, sink: Sink, target: str) -> None:
    before = sink.read(target).backends
    if sink.name == "postgres":
        with psycopg.connect(stack.endpoints.postgres):
            assert sink.read(target).backends == before + 1
    else:
        with httpx.Client() as client:
            client.get(f"{stack.endpoints.elasticsearch}/_cluster/health")
            assert sink.read(target).backends == before + 1


def test_what_was_dropped_is_gone_and_dropping_it_again_is_fine(sink: Sink, target: str) -> None:
    assert sink.leftovers("tides_test_") == [target]
    sink.drop(target)
    sink.drop(target)
    assert sink.leftovers("tides_test_") == []


def test_the_postgres_table_has_json_the_time_of_insertion_and_an_identity(stack: LocalStack) -> None:
    postgres = open_sink("postgres", stack.endpoints, CHECKOUT)
    postgres.create(TARGET)
    try:
        store(stack, postgres, TARGET, [document(0), document(1)])
        with psycopg.connect(stack.endpoints.postgres) as connection:
            found = connection.execute(
                f"SELECT id, now() - stored < interval '1 minute', payload->'bench'->>'seq' FROM {TARGET} ORDER BY id"  # noqa: S608
            ).fetchall()
        assert found == [(1, True, "0"), (2, True, "1")]
    finally:
        postgres.drop(TARGET)
        postgres.close()


def test_an_interrupted_query_leaves_the_connection_fit_to_clean_up_with(stack: LocalStack) -> None:
    before = signal.signal(signal.SIGUSR1, _interrupt)
    endings = {each: signal.getsignal(each) for each in ENDING_SIGNALS}
    timer = threading.Timer(1, os.kill, [os.getpid(), signal.SIGUSR1])
    try:
        with psycopg.connect(stack.endpoints.postgres, autocommit=True) as connection:
            timer.start()
            with pytest.raises(Interrupted):
                connection.execute("SELECT pg_sleep(20)")
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)
        for each, handler in endings.items():
            signal.signal(each, handler)
