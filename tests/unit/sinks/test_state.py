"""What the sinks' answers mean to the doctor, and the bytes of an index."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sinkbench.errors import TargetError
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.elasticsearch import nodes as elasticsearch
from sinkbench.sinks.elasticsearch.client import connect
from sinkbench.sinks.elasticsearch.documents import stored_bytes
from sinkbench.sinks.postgres import clients as postgres
from sinkbench.stack import Endpoint

ASKED = {"most": 100, "reserved": 3, "sees": True, "backends": 12}


def test_connections_of_jdbc_are_distinguished_from_those_of_a_pooler_and_our_own() -> None:
    names = [*["PostgreSQL JDBC Driver"] * 3, "sinkbench", "psql"]
    sessions = [{"name": name, "port": port} for name, port in zip(names, (1, 2, 3, 4, -1), strict=True)]
    found = postgres.database_of(ASKED, sessions, pooled={3, 7})
    assert (found.used, found.by_jdbc) == (4, 2)
    hidden = postgres.database_of({**ASKED, "sees": False}, [], pooled=())
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
