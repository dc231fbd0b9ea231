"""The bytes that an index takes, out of what Elasticsearch answers of its segments."""

from __future__ import annotations

from typing import Any

from sinkbench.sinks.elasticsearch.audited import stored_bytes


def shard(*sizes: int, primary: bool = True) -> dict[str, Any]:
    segments = {f"_{number}": {"size_in_bytes": size} for number, size in enumerate(sizes)}
    return {"routing": {"primary": primary}, "segments": segments}


def answered(*shards: list[dict[str, Any]], failed: int = 0) -> dict[str, Any]:
    return {"_shards": {"failed": failed}, "indices": {"mine": {"shards": dict(enumerate(shards))}}}


def test_the_primary_shards_count_and_not_their_copies() -> None:
    assert stored_bytes(answered([shard(100, 20), shard(100, 20, primary=False)], [shard(3)])) == 123


def test_what_is_not_told_is_no_size() -> None:
    assert stored_bytes(answered([shard(100)], failed=1)) is None
    assert stored_bytes(answered([shard()])) is None
    # Nothing is left of an answer whose parts are all filtered out.
    assert stored_bytes({}) is None
