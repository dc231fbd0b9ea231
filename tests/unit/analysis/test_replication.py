"""What must hold of standbys, shards and partitions; the words say what settings promise of copies, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.replication import (
    Promise,
    ReplicationState,
    ShardCopy,
    Standby,
    acks_in_words,
    as_replicated,
    database_promise,
    database_replication,
    index_promise,
    index_replication,
    promise_in_words,
    topic_replication,
    waited_for,
)
from sinkbench.errors import ReasonCode as Code
from tests.support.present import present

GOOD = Standby("postgres-2", "streaming", "sync")
HIDDEN = Standby(None, None, None)


def codes(held: ReplicationState) -> list[Code]:
    return [each.code for each in held.broken]


@pytest.mark.parametrize(
    ("names", "count"),
    [
        *(("  ", 0), ("*", 1), ("a, b", 1), ('"2nd"', 1)),
        *(("2 (a, b)", 2), ("FIRST 2 (a, b, c)", 2), ("any 1 (a, b)", 1)),
    ],
)
def test_a_commit_waits_for_as_many_standbys_as_the_setting_says(names: str, count: int) -> None:
    assert waited_for(names) == count


def test_without_synchronous_standbys_nothing_must_hold_of_those_that_are_there() -> None:
    for standbys in ([], [Standby("a", "catchup", "async")], [HIDDEN]):
        assert database_replication(False, "", standbys) == ReplicationState(copies=1, asked=1, alone=True)


def test_a_standby_that_is_in_sync_and_streams_holds() -> None:
    assert database_replication(False, "*", [GOOD]) == ReplicationState(copies=2, asked=2)
    quorum = [Standby(name, "streaming", "quorum") for name in "abc"]
    assert database_replication(False, "ANY 2 (a, b, c)", quorum) == ReplicationState(copies=3, asked=3)
    # The second of two is the next in line.
    assert not database_replication(False, "FIRST 1 (a, b)", [GOOD, Standby("b", "streaming", "potential")]).broken
    assert not database_replication(False, "a", [GOOD, Standby("archive", "catchup", "async")]).broken


@pytest.mark.parametrize(
    ("names", "standbys", "told"),
    [
        ("*", [], "0 of 1 standby that PostgreSQL waits for (synchronous_standby_names *) are in sync and streaming"),
        ("a", [Standby("a", "catchup", "potential")], "a is potential and catchup"),
        ("a", [Standby("b", "streaming", "async")], "b is async and streaming"),
        ("2 (a, b)", [GOOD], "1 of 2 standbys that PostgreSQL waits for"),
        ("a", [Standby("a", "streaming", "sync", applies=False)], "a is sync and streaming, and applies nothing"),
    ],
)
def test_a_standby_that_is_missing_or_behind_is_named(names: str, standbys: list[Standby], told: str) -> None:
    found = database_replication(False, names, standbys)
    assert codes(found) == [Code.STANDBY_NOT_IN_SYNC]
    assert told in found.broken[0].text
    assert found.broken[0].figures["standbys"] == len(standbys)


def test_a_standby_that_is_written_to_is_no_primary() -> None:
    assert codes(database_replication(True, "", [])) == [Code.WRITES_TO_STANDBY]


def test_standbys_that_are_not_shown_are_not_checked() -> None:
    found = database_replication(False, "*", [HIDDEN])
    assert (found.broken, found.copies, found.alone) == ((), None, False)
    assert "GRANT pg_read_all_stats" in found.unchecked[0]


def placed(*nodes: str, state: str = "STARTED") -> list[ShardCopy]:
    """Primaries on these nodes."""
    return [ShardCopy(number, True, state, node) for number, node in enumerate(nodes)]


def test_an_index_on_one_node_without_copies_holds_and_cannot_change() -> None:
    assert index_replication(placed("a", "a", "a"), {"a"}) == ReplicationState(copies=1, asked=1, alone=True)


def test_an_index_whose_copies_have_no_node_is_yellow_and_says_what_to_do() -> None:
    missing = [ShardCopy(number, False, "UNASSIGNED", None, "INDEX_CREATED") for number in range(3)]
    found = index_replication([*placed("a", "a", "a"), *missing], {"a"})
    assert codes(found) == [Code.INDEX_NOT_GREEN]
    assert found.broken[0].text == (
        "the index is yellow: copy of shard 0 (INDEX_CREATED), copy of shard 1 (INDEX_CREATED), copy of shard 2"
        " (INDEX_CREATED) on no node, since 2 copies of each are asked for and there is 1 data node; set"
        " number_of_replicas to 0, or add a data node"
    )
    assert (found.copies, found.asked) == (1, 2)
    lost = index_replication([*placed("a", "b"), ShardCopy(0, False, "UNASSIGNED", None, "NODE_LEFT")], {"a", "b"})
    assert "(NODE_LEFT) on no node; GET _cluster/allocation/explain" in lost.broken[0].text


def test_an_index_whose_primary_has_no_node_is_red() -> None:
    found = index_replication([ShardCopy(0, True, "UNASSIGNED", None, "NODE_LEFT")], {"a"})
    assert "the index is red: primary of shard 0 (NODE_LEFT)" in found.broken[0].text
    assert found.copies == 0


@pytest.mark.parametrize("state", ["INITIALIZING", "RELOCATING"])
def test_shards_that_move_are_named(state: str) -> None:
    found = index_replication([*placed("a"), ShardCopy(0, False, state, "b")], {"a", "b"})
    assert codes(found) == [Code.SHARDS_MOVING]
    assert f"copy of shard 0 (b) {state.lower()}" in found.broken[0].text


def test_primaries_on_fewer_nodes_than_they_could_be_on_are_named_with_their_nodes() -> None:
    found = index_replication(placed("a", "a", "b"), {"a", "b", "c"})
    assert codes(found) == [Code.SHARDS_UNEVEN]
    assert "the 3 primary shards of the index lie on 2 of 3 data nodes (a 2, b 1)" in found.broken[0].text
    assert not index_replication(placed("a", "a", "b"), {"a", "b"}).broken


def test_where_nodes_are_not_shown_their_share_is_not_checked() -> None:
    found = index_replication(placed("a", "a"), None)
    assert (found.broken, found.alone) == ((), False)
    assert found.unchecked[0].startswith("whether the shards of the index are spread")


@given(st.integers(1, 48), st.integers(1, 5), st.data())
def test_a_topic_that_is_dealt_out_in_turn_holds_until_a_copy_is_missing(
    count: int, brokers: int, data: st.DataObject
) -> None:
    copies = data.draw(st.integers(1, brokers))
    partitions = {
        number: (number % brokers, those := tuple((number + n) % brokers for n in range(copies)), those)
        for number in range(count)
    }
    found = topic_replication(range(brokers), partitions)
    assert (found.broken, found.copies, found.asked) == ((), copies, copies)
    assert found.alone == (brokers == 1)
    gone = data.draw(st.sampled_from(sorted(partitions)))
    leader, those, _ = partitions[gone]
    found = topic_replication(range(brokers), {**partitions, gone: (leader, those, those[1:])})
    assert codes(found) == [Code.PARTITIONS_NOT_IN_SYNC]
    assert f"1 of {count} partitions" in found.broken[0].text
    assert f"partition {gone} (without broker {those[0]})" in found.broken[0].text


def test_a_partition_without_a_leader_is_not_in_sync() -> None:
    found = topic_replication({1}, {0: (-1, (1,), (1,)), 1: (1, (1,), (1,))})
    assert "partition 0 (no leader)" in found.broken[0].text


def test_leaders_on_few_of_the_brokers_are_uneven() -> None:
    found = topic_replication({1, 2, 3}, {number: (1 + number % 2, (1, 2), (1, 2)) for number in range(6)})
    assert codes(found) == [Code.LEADERS_UNEVEN]
    assert "broker 1 leads 3, broker 2 leads 3, broker 3 leads 0" in found.broken[0].text
    assert found.broken[0].figures == {"most": 3, "least": 0}


SAFE = {
    **{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"},
    **{"synchronous_standby_names": "none", "wal_writer_delay": "200ms"},
}
STANDBY = {**SAFE, "synchronous_standby_names": "FIRST 1 (postgres-2)"}


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
    assert promise_in_words(present(database_promise(settings))) == words


def test_a_table_that_is_not_logged_promises_nothing() -> None:
    found = [database_promise(each, unlogged=True) for each in (STANDBY, {**SAFE, "fsync": "off"})]
    assert [present(each).unsure for each in found] == ["UNLOGGED", "UNLOGGED, fsync off"]


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
