"""Elasticsearch's state before a race: data nodes, disks, and the index that connectors write to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError
from loadgen.reading import parse_json, read_text
from sinkbench.errors import TargetError
from sinkbench.services.access import curl
from sinkbench.services.failures import in_one_line, map_exceptions
from sinkbench.sinks.elasticsearch.asked import flat_settings
from sinkbench.sinks.elasticsearch.client import connect
from sinkbench.sinks.state import Checkup, DataNode, SearchCluster, SinkState, Target
from sinkbench.stack import Endpoint, Endpoints

TIMEOUT_SECONDS = 10.0
DISK = "cluster.routing.allocation.disk."
STAGES = {"low": "watermark.low", "high": "watermark.high", "flood": "watermark.flood_stage"}
STATS = "nodes.*.name,nodes.*.fs.total"

Tree = Mapping[str, Any]


def look(endpoints: Endpoints) -> SinkState:
    """The cluster, and the index behind the alias. Raises ServiceError if it does not answer."""
    endpoint = endpoints.sinks["elasticsearch"]
    alias = endpoint.options["index"]
    unseen: dict[str, str] = {}
    cluster = target = None
    with map_exceptions(ApiError, TransportError), closing(connect(endpoint)) as opened:
        client = opened.options(request_timeout=TIMEOUT_SECONDS)
        try:
            cluster = _cluster(client, endpoint)
        except ApiError as error:
            # A user who may not see the nodes may still see the index.
            unseen["cluster"] = in_one_line(error)
        try:
            target = _behind(client, alias)
        except ApiError as error:
            unseen["target"] = in_one_line(error)
    return SinkState(cluster=cluster, target=target, unseen=unseen)


def _cluster(client: Elasticsearch, endpoint: Endpoint) -> SearchCluster:
    stats: Any = client.nodes.stats(node_id="data:true", metric="fs", filter_path=STATS)
    settings: Any = client.cluster.get_settings(include_defaults=True, flat_settings=True)
    nodes = tuple(node_of(each) for each in stats.get("nodes", {}).values())
    cluster = SearchCluster(endpoint.address, nodes, watermarks_of(settings), curl=curl(endpoint.access))
    with suppress(ApiError):
        health: Any = client.cluster.health()
        cluster = replace(
            cluster,
            status=str(health["status"]),
            unassigned=int(health["unassigned_shards"]),
            moving=int(health["relocating_shards"]) + int(health["initializing_shards"]),
        )
    return cluster


def _behind(client: Elasticsearch, alias: str) -> Target | None:
    found: Any = client.indices.get_settings(
        index=alias, flat_settings=True, include_defaults=True, ignore_unavailable=True, allow_no_indices=True
    )
    if len(found) != 1:
        return None
    ((name, index),) = found.items()
    return index_of(alias, name, index)


def node_of(stats: Tree) -> DataNode:
    disk = stats.get("fs", {}).get("total", {})
    return DataNode(
        name=str(stats.get("name", "")),
        disk_bytes=disk.get("total_in_bytes"),
        free_bytes=disk.get("available_in_bytes"),
    )


def watermarks_of(settings: Tree) -> dict[str, str]:
    """Disk watermarks in an answer of `_cluster/settings` with flat settings and defaults."""
    told = {**settings.get("defaults", {}), **settings.get("persistent", {}), **settings.get("transient", {})}
    if str(told.get(f"{DISK}threshold_enabled", "true")).lower() == "false":
        return {}
    return {stage: str(told[DISK + name]) for stage, name in STAGES.items() if DISK + name in told}


def index_of(shown: str, name: str | None, index: Tree) -> Target:
    """An index by its own flat `settings`, and the `defaults` of others."""
    told: Tree = {**index.get("defaults", {}), **index.get("settings", {})}

    def number(setting: str) -> int:
        return int(told.get(f"index.number_of_{setting}", 1))

    unsafe = []
    if str(told.get("index.translog.durability", "request")).lower() == "async":
        interval = told.get("index.translog.sync_interval", "5s")
        unsafe.append(f"index.translog.durability is async, so that the disk is behind by up to {interval}")
    return Target(
        name=shown,
        index=name,
        shards=number("shards"),
        replicas=number("replicas"),
        unsafe=tuple(unsafe),
    )


def target_of(file: Path) -> Target:
    """The index that a file creates, the body of `PUT /INDEX`. Raises TargetError if it cannot be used."""
    try:
        body = parse_json(read_text(file, TargetError))
        return index_of(file.name, None, {"settings": flat_settings(body.get("settings", {}))})
    except FileNotFoundError:
        raise TargetError(f"{file}: there is no such file; restore it") from None
    except (ValueError, AttributeError, TypeError) as error:
        raise TargetError(f"{file}: cannot be used as an index: {error}") from None


CHECKUP = Checkup(look, target_of, "elasticsearch/index.json")
