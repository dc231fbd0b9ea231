"""The state of an index's shards: on which nodes their copies are, and whether they are moving."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.analysis.replication import ReplicationState, ShardCopy, index_replication
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.elasticsearch.client import NOT_SHOWN

COLUMNS = "shard,prirep,state,node,unassigned.reason"
ALLOCATION = "index.routing.allocation."
# Roles of nodes that may store an index without a tier of its own.
ROLES = {"data", "data_content"}
TIER = f"{ALLOCATION}include._tier_preference"


@maps_exceptions(ApiError, TransportError)
class Replication:
    """Checks an index's shards: two requests, and a third where there are several nodes."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def check(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        try:
            rows: Any = self._client.cat.shards(index=target, h=COLUMNS, format="json")
            copies = copies_of(rows)
        except ApiError as error:
            if error.status_code not in NOT_SHOWN:
                raise
            why = "this user may not see them (it needs the right to monitor the index)"
            return ReplicationState(unchecked=(f"whether the shards of the index are all there and spread: {why}",))
        return index_replication(copies, _nodes(self._client, target))


def _nodes(client: Elasticsearch, index: str) -> set[str] | None:
    """The nodes that may store a shard of the index; None if unknown, or if its own settings exclude some."""
    try:
        wanted = "nodes.*.name,nodes.*.roles"
        found: Any = client.nodes.info(node_id="data:true", metric="os", filter_path=wanted)
        nodes = nodes_of(found)
        if len(nodes) < 2:
            return nodes or None
        told: Any = client.indices.get_settings(index=index, name=f"{ALLOCATION}*", flat_settings=True)
    except ApiError as error:
        if error.status_code not in NOT_SHOWN:
            raise
        return None
    return None if is_kept_from_some(told.get(index, {}).get("settings", {})) else nodes


def copies_of(rows: Iterable[Mapping[str, Any]]) -> list[ShardCopy]:
    """The copies of shards in an answer of `_cat/shards`."""
    return [
        ShardCopy(
            shard=int(row["shard"]),
            primary=row["prirep"] == "p",
            state=str(row["state"]),
            # The node of a moving shard is `a -> 10.0.0.2 id b`.
            node=str(row["node"]).partition(" ")[0] if row.get("node") else None,
            why=str(row.get("unassigned.reason") or ""),
        )
        for row in rows
    ]


def nodes_of(answer: Mapping[str, Any]) -> set[str]:
    """Names of the nodes that may store an index without a tier, in an answer of `_nodes`."""
    nodes = answer.get("nodes", {}).values()
    return {str(node["name"]) for node in nodes if "roles" not in node or ROLES & set(node["roles"])}


def is_kept_from_some(settings: Mapping[str, Any]) -> bool:
    """Whether an index's own flat settings restrict its shards to some nodes or to a tier."""
    return any(
        name.startswith((f"{ALLOCATION}require.", f"{ALLOCATION}include.", f"{ALLOCATION}exclude."))
        and (name, value) != (TIER, "data_content")
        for name, value in settings.items()
    )
