"""What the sinks' answers mean to the doctor, the bytes of an index, and what they say of copies and standbys."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sinkbench.analysis.replication import ShardCopy, Standby, promise_in_words
from sinkbench.errors import TargetError
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.elasticsearch import nodes as elasticsearch
from sinkbench.sinks.elasticsearch.client import connect
from sinkbench.sinks.elasticsearch.documents import stored_bytes
from sinkbench.sinks.elasticsearch.index import settings_of
from sinkbench.sinks.elasticsearch.nodes import copies_of, nodes_of
from sinkbench.sinks.postgres import clients as postgres
from sinkbench.sinks.postgres.session import standbys_of
from sinkbench.stack import Endpoint
from tests.support.present import present


def test_connections_of_jdbc_are_distinguished_from_those_of_a_pooler_and_our_own() -> None:
    names = [*["PostgreSQL JDBC Driver"] * 3, "sinkbench", "psql"]
    sessions = [{"name": name, "port": port} for name, port in zip(names, (1, 2, 3, 4, -1), strict=True)]
    asked = {"most": 100, "reserved": 3, "sees": True, "backends": 12}
    found = postgres.database_of(asked, sessions, pooled={3, 7})
    assert (found.used, found.by_jdbc) == (4, 2)
    hidden = postgres.database_of({**asked, "sees": False}, [], pooled=())
    assert (hidden.used, hidden.by_jdbc) == (12, None)


@pytest.mark.parametrize(
    ("name", "text", "unsafe"),
    [
        ("a.sql", "create unlogged\n table tides (payload jsonb)", 1),
        ("a.sql", (CHECKOUT / "postgres" / "schema.sql").read_text(), 0),
        ("a.json", json.dumps({"settings": {"index": {"translog": {"durability": "ASYNC"}}}}), 1),
        ("a.json", json.dumps({"settings": {"index.number_of_replicas": "0"}}), 0),
        ("a.json", "[1]", None),
    ],
)
def test_what_a_crash_would_lose_is_known_by_the_target_file(
    tmp_path: Path, name: str, text: str, unsafe: int | None
) -> None:
    look = postgres.target_of if name.endswith(".sql") else elasticsearch.target_of
    with pytest.raises(TargetError, match="no such file"):
        look(tmp_path / name)
    (tmp_path / name).write_text(text)
    if unsafe is None:
        with pytest.raises(TargetError, match="cannot be used as an index"):
            look(tmp_path / name)
    else:
        assert len(look(tmp_path / name)) == unsafe


def test_watermarks_that_are_switched_off_are_none() -> None:
    prefix = "cluster.routing.allocation.disk."
    defaults = {f"{prefix}watermark.{name}": value for name, value in (("low", "85%"), ("flood_stage", "95%"))}
    assert elasticsearch.watermarks_of({"defaults": defaults}) == {"low": "85%", "flood": "95%"}
    changed = {"defaults": defaults, "persistent": {f"{prefix}watermark.low": "5gb"}}
    assert elasticsearch.watermarks_of(changed) == {"low": "5gb", "flood": "95%"}
    off = {"defaults": {**defaults, f"{prefix}threshold_enabled": "false"}}
    assert elasticsearch.watermarks_of(off) == {}


def shard(*sizes: int, primary: bool = True) -> dict[str, Any]:
    segments = {f"_{number}": {"size_in_bytes": size} for number, size in enumerate(sizes)}
    return {"routing": {"primary": primary}, "segments": segments}


def test_the_bytes_of_primary_shards_count_and_not_those_of_their_copies() -> None:
    def answered(*shards: list[dict[str, Any]], failed: int = 0) -> dict[str, Any]:
        return {"_shards": {"failed": failed}, "indices": {"mine": {"shards": dict(enumerate(shards))}}}

    assert stored_bytes(answered([shard(100, 20), shard(100, 20, primary=False)], [shard(3)])) == 123
    assert stored_bytes(answered([shard(100)], failed=1)) is None
    assert stored_bytes(answered([shard()])) is None
    # Nothing is left of an answer whose parts are all filtered out.
    assert stored_bytes({}) is None


def test_each_of_several_nodes_can_be_asked_for_one_may_be_gone() -> None:
    first, second = "http://127.0.0.1:19200", "http://127.0.0.1:19201"
    nodes = {"elasticsearch": Endpoint(first), "elasticsearch-2": Endpoint(second)}
    for endpoint, expected in ((Endpoint(first), {first}), (Endpoint(first, nodes=nodes), {first, second})):
        with closing(connect(endpoint)) as client:
            assert {node.base_url for node in client.transport.node_pool.all()} == expected


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


def test_the_settings_of_an_index_come_from_itself_or_are_defaults_and_come_to_a_promise() -> None:
    defaults = {"translog.durability": "REQUEST", "translog.sync_interval": "5s", "refresh_interval": "1s", "x": "1"}
    told = {"defaults": {f"index.{name}": value for name, value in defaults.items()}}
    own = {"index.number_of_shards": "3", "index.number_of_replicas": "0"}
    found = settings_of({**told, "settings": own})
    translog = {"index.translog.durability": "request", "index.translog.sync_interval": "5s"}
    assert found.durability == {**translog, "index.number_of_replicas": "0"}
    assert found.tuning == {"index.number_of_shards": "3", "index.refresh_interval": "1s"}
    hasty = settings_of({**told, "settings": {**own, "index.translog.durability": "async"}})
    promises = [promise_in_words(present(each.promise)) for each in (found, hasty)]
    assert promises == ["1 node, disk", "1 node, memory (5 s)"]
    assert (set(settings_of({}).durability.values()), settings_of({}).promise) == ({None}, None)
