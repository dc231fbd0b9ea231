"""What is on how many nodes when a record counts as stored: the words say what the settings promise, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.replication import (
    Promise,
    ReplicationState,
    acks_in_words,
    as_replicated,
    database_promise,
    index_promise,
    promise_in_words,
)
from tests.support.present import present

SAFE = {
    **{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"},
    **{"synchronous_standby_names": "none", "wal_writer_delay": "200ms"},
}
STANDBY = {**SAFE, "synchronous_standby_names": "FIRST 1 (postgres-2)"}


def of_database(settings: dict[str, str], *, unlogged: bool = False) -> str:
    return promise_in_words(present(database_promise(settings, unlogged=unlogged)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (SAFE, "1 node, disk"),
        ({**SAFE, "synchronous_commit": "remote_apply"}, "1 node, disk"),
        ({**SAFE, "synchronous_commit": "off"}, "1 node, memory (0.6 s)"),
        ({**SAFE, "synchronous_commit": "off", "wal_writer_delay": "10s"}, "1 node, memory (30 s)"),
        (STANDBY, "2 nodes, disk"),
        ({**STANDBY, "synchronous_standby_names": "ANY 2 (a, b, c)"}, "3 nodes, disk"),
        ({**STANDBY, "synchronous_commit": "remote_apply"}, "2 nodes, disk (applied)"),
        ({**STANDBY, "synchronous_commit": "remote_write"}, "2 nodes, 1 on disk (remote_write)"),
        ({**STANDBY, "synchronous_commit": "local"}, "1 node, disk"),
        # A commit that waits for nothing does not wait for a standby, either.
        ({**STANDBY, "synchronous_commit": "off"}, "1 node, memory (0.6 s)"),
        ({**STANDBY, "fsync": "off"}, "nothing sure (fsync off)"),
        ({**SAFE, "full_page_writes": "off"}, "nothing sure (full_page_writes off)"),
    ],
)
def test_a_commit_promises_what_its_settings_say(settings: dict[str, str], words: str) -> None:
    assert of_database(settings) == words


def test_a_table_that_is_not_logged_promises_nothing() -> None:
    assert of_database(STANDBY, unlogged=True) == "nothing sure (UNLOGGED)"
    assert of_database({**SAFE, "fsync": "off"}, unlogged=True) == "nothing sure (UNLOGGED, fsync off)"


@pytest.mark.parametrize("lacking", ["fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names"])
def test_of_a_server_that_keeps_a_setting_back_nothing_is_claimed(lacking: str) -> None:
    assert database_promise({**SAFE, lacking: None}) is None


def of_index(replicas: str, durability: str = "request", sync: float | None = 5.0) -> Promise:
    return present(index_promise({"index.translog.durability": durability, "index.number_of_replicas": replicas}, sync))


def test_an_index_promises_all_copies_that_are_in_sync() -> None:
    one = [promise_in_words(each) for each in (of_index("0"), of_index("0", "async"), of_index("0", "async", None))]
    assert one == ["1 node, disk", "1 node, memory (5 s)", "1 node, memory"]
    copied = (as_replicated(of_index("1", how), ReplicationState(copies=2, asked=2)) for how in ("request", "async"))
    assert [promise_in_words(each) for each in copied] == ["2 nodes, disk", "2 nodes, memory (5 s)"]
    assert index_promise({"index.translog.durability": None, "index.number_of_replicas": "1"}, 5.0) is None


def test_copies_that_were_not_read_are_not_promised() -> None:
    for held in (None, ReplicationState(unchecked=("not shown",))):
        promise = as_replicated(of_index("2"), held)
        assert (promise_in_words(promise), promise.nodes, promise.on_disk) == ("1 to 3 nodes, disk", None, None)
    # What asks for its copies by itself is sure of them.
    database = present(database_promise(STANDBY))
    assert as_replicated(database, ReplicationState(unchecked=("not shown",))) == database


@given(st.integers(0, 5), st.integers(1, 6), st.sampled_from(["request", "async"]))
def test_no_more_is_promised_than_is_there(replicas: int, there: int, durability: str) -> None:
    promise = as_replicated(of_index(f"{replicas}", durability), ReplicationState(copies=there, asked=1 + replicas))
    assert present(promise.nodes) <= min(1 + replicas, max(there, 1))
    assert promise.on_disk == (promise.nodes if durability == "request" else 0)


def test_an_acknowledgement_of_kafka_names_the_copies_that_were_seen() -> None:
    assert acks_in_words("all", ReplicationState(copies=3, asked=3)) == "acks all, 3 of 3 in sync"
    assert acks_in_words("all", ReplicationState(unchecked=("not shown",))) == "acks all"
    assert acks_in_words("1", ReplicationState(copies=3, asked=3)) == "acks 1"
