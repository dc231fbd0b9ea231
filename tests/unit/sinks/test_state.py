"""What the sinks' answers mean to the doctor."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sinkbench.errors import TargetError
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.elasticsearch import state as elasticsearch
from sinkbench.sinks.elasticsearch.audited import stored_bytes
from sinkbench.sinks.elasticsearch.client import connect
from sinkbench.sinks.postgres import state as postgres
from sinkbench.sinks.postgres.jdbc import read_only
from sinkbench.stack import Endpoint

ASKED = {"most": 100, "reserved": 3, "sees": True, "backends": 12, "waited_for": 0}


def test_connections_of_jdbc_are_distinguished_from_those_of_a_pooler_and_our_own() -> None:
    names = [*["PostgreSQL JDBC Driver"] * 3, "sinkbench", "psql"]
    sessions = [{"name": name, "port": port} for name, port in zip(names, (1, 2, 3, 4, -1), strict=True)]
    found = postgres.database_of(ASKED, sessions, pooled={3, 7})
    assert (found.used, found.by_jdbc) == (4, 2)
    hidden = postgres.database_of({**ASKED, "sees": False}, [], pooled=())
    assert (hidden.used, hidden.by_jdbc) == (12, None)


POOLS = [
    {"database": "bench", "cl_active": "4", "cl_waiting": "2", **dict.fromkeys(postgres.SERVERS, "1")},
    {"database": "pgbouncer", "cl_active": "1", "cl_waiting": "0"},
]
CONFIG = {"pool_mode": "transaction", "default_pool_size": "10", "max_client_conn": "2000"}


@pytest.mark.parametrize(
    ("version", "setting", "prepared"),
    [
        ("PgBouncer 1.18.0", {}, False),
        ("1.24.0", {"max_prepared_statements": "200"}, True),
        ("1.21.0", {"max_prepared_statements": "0"}, False),
    ],
)
def test_a_pooler_is_read_as_it_serves_the_database(version: str, setting: dict[str, str], prepared: bool) -> None:
    config = [{"key": key, "value": value} for key, value in {**CONFIG, **setting}.items()]
    served = [{"name": "bench", "pool_mode": None, "pool_size": 7}]
    found = postgres.pooler_of("a:1", version, {"CONFIG": config, "DATABASES": served, "POOLS": POOLS}, "bench")
    assert (found.mode, found.pool, found.most_clients, found.clients, found.servers) == ("transaction", 7, 2_000, 6, 5)
    assert found.prepared is prepared
    own = postgres.pooler_of("a:1", version, {"CONFIG": config, "DATABASES": [{"name": "other"}], "POOLS": []}, "bench")
    assert (own.mode, own.pool, own.clients) == ("transaction", 10, 0)


def test_a_table_that_is_not_logged_is_known_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("create unlogged\n table tides (payload jsonb)")
    assert postgres.target_of(file).unsafe == ("the table is UNLOGGED",)
    assert postgres.target_of(CHECKOUT / "postgres" / "schema.sql").unsafe == ()
    with pytest.raises(TargetError, match="no such file"):
        postgres.target_of(tmp_path / "b.sql")


@pytest.mark.parametrize("config", [{}, {"connection.url": "jdbc:postgresql://no.such.host.invalid/a"}])
def test_a_connection_that_cannot_be_tried_from_here_tells_nothing(config: dict[str, str]) -> None:
    assert read_only(config) is None


@pytest.mark.parametrize(
    ("settings", "shards", "replicas", "unsafe"),
    [
        ({}, 1, 1, 0),
        ({"index.number_of_replicas": "0"}, 1, 0, 0),
        ({"index": {"translog": {"durability": "ASYNC"}}}, 1, 1, 1),
    ],
)
def test_an_index_file_is_read(tmp_path: Path, settings: object, shards: int, replicas: int, unsafe: int) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"settings": settings}))
    found = elasticsearch.target_of(file)
    assert (found.shards, found.replicas, len(found.unsafe)) == (shards, replicas, unsafe)
    assert found.index is None
    file.write_text("[1]")
    with pytest.raises(TargetError, match="cannot be used as an index"):
        elasticsearch.target_of(file)


def test_watermarks_that_are_switched_off_are_none() -> None:
    prefix = "cluster.routing.allocation.disk."
    defaults = {f"{prefix}watermark.{name}": value for name, value in (("low", "85%"), ("flood_stage", "95%"))}
    assert elasticsearch.watermarks_of({"defaults": defaults}) == {"low": "85%", "flood": "95%"}
    changed = {"defaults": defaults, "persistent": {f"{prefix}watermark.low": "5gb"}}
    assert elasticsearch.watermarks_of(changed) == {"low": "5gb", "flood": "95%"}
    off = {"defaults": {**defaults, f"{prefix}threshold_enabled": "false"}}
    assert elasticsearch.watermarks_of(off) == {}


def test_a_commit_waits_for_some_of_a_quorum() -> None:
    usual = {"follows": False, "names": "ANY 1 (a, b)", "state": "streaming", "sync_state": "quorum"}
    both = [{**usual, "pid": pid, "name": name} for pid, name in enumerate("ab", start=1)]
    found = postgres.database_of({**ASKED, "waited_for": 2}, [], (), both)
    assert (found.waited_for, found.waits_for, len(found.standbys)) == (1, "ANY 1 (a, b)", 2)


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
