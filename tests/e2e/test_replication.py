"""What must hold between nodes, on real services: a trial in which it does not is invalid, and durability is told."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from sinkbench.errors import ReasonCode
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import index_with, reasons_but_size, taken
from tests.e2e.otherservices import standby
from tests.support.trials import config_of
from tests.support.waiting import until

BULK, JDBC = "elasticsearch/camel-bulk", "postgres/jdbc"


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
@pytest.mark.rare
def test_an_index_that_asks_for_a_copy_on_one_node_stays_yellow_and_its_trial_is_invalid(
    stack: LocalStack, tmp_path: Path
) -> None:
    record = taken(stack, tmp_path, BULK, index_with(tmp_path, number_of_replicas=1).name)
    (reason,) = record.reasons
    assert reason.code == ReasonCode.INDEX_NOT_GREEN
    assert "the index is yellow: copy of shard 0" in reason.text
    assert "2 copies of each are asked for and there is 1 data node; set number_of_replicas to 0" in reason.text
    assert (record.audit, record.not_audited) == (None, "the connector was not started")


@pytest.mark.parametrize(
    ("pipeline", "added", "text"),
    [(JDBC, {}, "1 node, disk"), (BULK, {"index.translog.durability": "async"}, "1 node, memory (5 s)")],
)
def test_a_trial_on_one_node_holds_and_tells_its_durability(
    stack: LocalStack, tmp_path: Path, pipeline: str, added: dict[str, object], text: str
) -> None:
    record = taken(stack, tmp_path, pipeline, index_with(tmp_path, **added).name if added else "")
    assert reasons_but_size(record) == []
    assert not any(note.startswith("not checked") for note in record.notes)
    assert (record.durability.text, record.durability.kafka) == (text, "acks all, 1 of 1 in sync")


def test_a_connector_whose_url_sets_how_its_commits_are_stored_tells_that_durability(
    stack: LocalStack, tmp_path: Path
) -> None:
    config = config_of(JDBC)
    overrides = {"connection.url": f"{config['connection.url']}&options=-c%20synchronous_commit=off"}
    record = taken(stack, tmp_path, json.dumps({"pipeline": JDBC, "overrides": overrides}))
    assert reasons_but_size(record) == []
    assert record.durability.text == "1 node, memory (0.6 s)"
    assert record.durability.settings["synchronous_commit"] == "off"


@pytest.mark.long
def test_a_standby_that_is_waited_for_and_is_not_there_makes_the_trial_invalid_and_hangs_nothing(
    stack: LocalStack, tmp_path: Path
) -> None:
    with waits_for(stack, "nobody"):
        record = taken(stack, tmp_path, JDBC)
    (reason,) = reasons_but_size(record)
    assert reason.code == ReasonCode.STANDBY_NOT_IN_SYNC
    assert "(synchronous_standby_names nobody) are in sync and streaming: none is connected" in reason.text


@pytest.mark.long
def test_a_standby_that_is_in_sync_holds_and_has_every_record(stack: LocalStack, tmp_path: Path) -> None:
    with standby(stack), waits_for(stack, "*") as hand:
        until(lambda: hand.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchall(), 20)
        record = taken(stack, tmp_path, JDBC)
    assert reasons_but_size(record) == []
    assert (record.durability.text, record.durability.nodes) == ("2 nodes, disk", 2)
