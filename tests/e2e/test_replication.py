"""What must hold between nodes, on real services: a trial in which it does not is invalid, and durability is told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from sinkbench.errors import ReasonCode
from sinkbench.plan.plan import PlanDrain
from sinkbench.race.sizes import is_too_short
from sinkbench.results import Reason, TrialRecord
from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import one_trial
from tests.e2e.standby import standby

RECORDS = 5_000
LOAD = "trials: 1\nload: {partitions: 6}\ndrain: {compiling_percent: 100}\n"
BULK, JDBC = "elasticsearch/camel-bulk", "postgres/jdbc"


def taken(stack: LocalStack, folder: Path, pipeline: str, target: str = "") -> TrialRecord:
    entry = f"{{pipeline: {pipeline}, target: {target}}}" if target else pipeline
    record, _ = one_trial(stack, folder, f"pipelines: [{entry}]\n{LOAD}", RECORDS)
    return record


def reasons(record: TrialRecord) -> list[Reason]:
    """Why it does not count, but that so few records are gone before there is a rate, or the tasks were looked at."""
    if is_too_short(record, PlanDrain().window_seconds):
        return []
    return [each for each in record.reasons if each.code != ReasonCode.TOO_SHORT]


def index(folder: Path, **settings: object) -> str:
    """The index of the checkout with these settings besides."""
    body = json.loads((CHECKOUT / "elasticsearch" / "index.json").read_text())
    (folder / "mine.json").write_text(json.dumps({**body, "settings": {**body["settings"], **settings}}))
    return "mine.json"


@contextmanager
def waits_for(stack: LocalStack, names: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """The stack's PostgreSQL waits for these standbys at each commit."""
    with psycopg.connect(stack.endpoints.sinks["postgres"].address, autocommit=True) as hand:
        hand.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'".encode())
        hand.execute("SELECT pg_reload_conf()")
        try:
            yield hand
        finally:
            hand.execute("ALTER SYSTEM RESET synchronous_standby_names")
            hand.execute("SELECT pg_reload_conf()")


@pytest.mark.long
def test_an_index_that_asks_for_a_copy_on_one_node_stays_yellow_and_its_trial_is_invalid(
    stack: LocalStack, tmp_path: Path
) -> None:
    record = taken(stack, tmp_path, BULK, index(tmp_path, number_of_replicas=1))
    (reason,) = record.reasons
    assert reason.code == ReasonCode.INDEX_NOT_GREEN
    assert "the index is yellow: copy of shard 0" in reason.text
    assert "2 copies of each are asked for and there is 1 data node; set number_of_replicas to 0" in reason.text
    assert (record.audit, record.not_audited) == (None, "the connector was not started")


@pytest.mark.parametrize(
    ("pipeline", "added", "text"),
    [
        (JDBC, {}, "1 node, disk"),
        (BULK, {}, "1 node, disk"),
        (BULK, {"index.translog.durability": "async"}, "1 node, memory (5 s)"),
    ],
)
def test_a_trial_on_one_node_holds_and_tells_its_durability(
    stack: LocalStack, tmp_path: Path, pipeline: str, added: dict[str, object], text: str
) -> None:
    record = taken(stack, tmp_path, pipeline, index(tmp_path, **added) if added else "")
    assert reasons(record) == []
    assert not any(note.startswith("not checked") for note in record.notes)
    assert record.durability is not None
    assert (record.durability.text, record.durability.kafka) == (text, "acks all, 1 of 1 in sync")


def test_a_connector_whose_url_sets_how_its_commits_are_stored_tells_that_durability(
    stack: LocalStack, tmp_path: Path
) -> None:
    config = json.loads((CHECKOUT / "connectors" / f"{JDBC}.json").read_text())["config"]
    overrides = {"connection.url": f"{config['connection.url']}&options=-c%20synchronous_commit=off"}
    entry = json.dumps({"pipeline": JDBC, "overrides": overrides})
    record, _ = one_trial(stack, tmp_path, f"pipelines: [{entry}]\n{LOAD}", RECORDS)
    assert reasons(record) == []
    assert record.durability is not None
    assert record.durability.text == "1 node, memory (0.6 s)"
    assert record.durability.settings["synchronous_commit"] == "off"


def test_a_standby_that_is_waited_for_and_is_not_there_makes_the_trial_invalid_and_hangs_nothing(
    stack: LocalStack, tmp_path: Path
) -> None:
    with waits_for(stack, "nobody"):
        record = taken(stack, tmp_path, JDBC)
    (reason,) = reasons(record)
    assert reason.code == ReasonCode.STANDBY_NOT_IN_SYNC
    assert "(synchronous_standby_names nobody) are in sync and streaming: none is connected" in reason.text


def test_a_standby_that_is_in_sync_holds_and_has_every_record(stack: LocalStack, tmp_path: Path) -> None:
    with standby(stack), waits_for(stack, "*") as hand:
        deadline = time.monotonic() + 20
        while not hand.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchall():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        record = taken(stack, tmp_path, JDBC)
    assert reasons(record) == []
    assert record.durability is not None
    assert (record.durability.text, record.durability.nodes) == ("2 nodes, disk", 2)
