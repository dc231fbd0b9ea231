"""What the sinks' answers say of copies: shards on their nodes, and servers that follow."""

from sinkbench.analysis.replication import ShardCopy, Standby, promise_in_words
from sinkbench.sinks.elasticsearch.index import settings_of
from sinkbench.sinks.elasticsearch.nodes import copies_of, nodes_of
from sinkbench.sinks.postgres.session import standbys_of
from tests.support.present import present


def test_copies_are_read_with_their_nodes_and_what_has_none_with_the_reason() -> None:
    rows = [
        {"shard": "0", "prirep": "p", "state": "STARTED", "node": "es-1", "unassigned.reason": None},
        {"shard": "0", "prirep": "r", "state": "UNASSIGNED", "node": None, "unassigned.reason": "NODE_LEFT"},
        {"shard": "1", "prirep": "p", "state": "RELOCATING", "node": "es-1 -> 127.0.0.1 Xyz es-2"},
    ]
    assert copies_of(rows) == [
        ShardCopy(0, True, "STARTED", "es-1"),
        ShardCopy(0, False, "UNASSIGNED", None, "NODE_LEFT"),
        ShardCopy(1, True, "RELOCATING", "es-1"),
    ]


def test_only_nodes_that_may_hold_the_index_are_counted() -> None:
    nodes = {
        "x": {"name": "all", "roles": ["data", "master"]},
        "y": {"name": "content", "roles": ["data_content"]},
        "z": {"name": "frozen", "roles": ["data_frozen"]},
        "old": {"name": "old"},
    }
    allocation = "index.routing.allocation"
    usual = {f"{allocation}.include._tier_preference": "data_content", f"{allocation}.total_shards_per_node": "2"}
    assert (nodes_of({"nodes": nodes}, usual), nodes_of({}, {})) == ({"all", "content", "old"}, None)
    # An index that chooses its nodes is not judged by all of them.
    assert nodes_of({"nodes": nodes}, {f"{allocation}.include._tier_preference": "data_hot,data_content"}) is None
    assert nodes_of({"nodes": nodes}, {f"{allocation}.exclude._name": "es-3"}) is None


def test_a_server_that_no_other_follows_has_no_standby() -> None:
    none = {"follows": False, "names": "", "pid": None, "name": None, "state": None, "sync_state": None}
    assert standbys_of([none]) == []
    hidden = {**none, "pid": 7}
    seen = {**hidden, "name": "postgres-2", "state": "streaming", "sync_state": "sync"}
    assert standbys_of([hidden, seen]) == [Standby(None, None, None), Standby("postgres-2", "streaming", "sync")]
    assert standbys_of([seen], {7}) == [Standby("postgres-2", "streaming", "sync", applies=False)]


def test_the_settings_of_an_index_come_to_a_promise() -> None:
    defaults = {"index.translog.durability": "REQUEST", "index.translog.sync_interval": "5s"}
    own = {"index.number_of_replicas": "0", "index.number_of_shards": "3"}
    for settings, said in (({}, "1 node, disk"), ({"index.translog.durability": "async"}, "1 node, memory (5 s)")):
        promise = settings_of({"settings": {**own, **settings}, "defaults": defaults}).promise
        assert promise_in_words(present(promise)) == said
    assert settings_of({}).promise is None
