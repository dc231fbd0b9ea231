"""Elasticsearch's state before a race: data nodes and disks, and what its indices promise."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError
from loadgen.reading import parse_json, read_text
from sinkbench.errors import TargetError
from sinkbench.services.failures import in_one_line, map_exceptions
from sinkbench.sinks.elasticsearch.client import connect
from sinkbench.sinks.elasticsearch.index import SYNC_INTERVAL, TRANSLOG, flat_settings
from sinkbench.sinks.values import Checkup, DataNode, SearchCluster, SinkState
from sinkbench.stack import Endpoints

TIMEOUT_SECONDS = 10.0
DISK = "cluster.routing.allocation.disk."
STAGES = {"low": "watermark.low", "high": "watermark.high", "flood": "watermark.flood_stage"}
STATS = "nodes.*.name,nodes.*.fs.total"

Tree = Mapping[str, Any]


def look(endpoints: Endpoints) -> SinkState:
    """The cluster, and the index behind the alias. Raises ServiceError if it does not answer."""
    endpoint = endpoints.sinks["elasticsearch"]
    unseen: dict[str, str] = {}
    cluster, target = None, tuple[str, ...]()
    with map_exceptions(ApiError, TransportError), closing(connect(endpoint)) as opened:
        client = opened.options(request_timeout=TIMEOUT_SECONDS)
        try:
            cluster = _cluster(client)
        except ApiError as error:
            # A user who may not see the nodes may still see the index.
            unseen["cluster"] = in_one_line(error)
        try:
            found: Any = client.indices.get_settings(
                index=endpoint.options["index"], flat_settings=True, ignore_unavailable=True, allow_no_indices=True
            )
            target = tuple(line for index in found.values() for line in unsafe_of(index["settings"]))
        except ApiError as error:
            unseen["target"] = in_one_line(error)
    return SinkState(cluster=cluster, target=target, unseen=unseen)


def _cluster(client: Elasticsearch) -> SearchCluster:
    stats: Any = client.nodes.stats(node_id="data:true", metric="fs", filter_path=STATS)
    settings: Any = client.cluster.get_settings(include_defaults=True, flat_settings=True)
    nodes = []
    for each in stats.get("nodes", {}).values():
        disk = each.get("fs", {}).get("total", {})
        nodes.append(DataNode(str(each.get("name", "")), disk.get("total_in_bytes"), disk.get("available_in_bytes")))
    return SearchCluster(tuple(nodes), watermarks_of(settings))


def watermarks_of(settings: Tree) -> dict[str, str]:
    """Disk watermarks in an answer of `_cluster/settings` with flat settings and defaults."""
    told = {**settings.get("defaults", {}), **settings.get("persistent", {}), **settings.get("transient", {})}
    if str(told.get(f"{DISK}threshold_enabled", "true")).lower() == "false":
        return {}
    return {stage: str(told[DISK + name]) for stage, name in STAGES.items() if DISK + name in told}


def unsafe_of(settings: Tree) -> tuple[str, ...]:
    """Why an index with these flat settings loses acknowledged records in a crash."""
    if str(settings.get(TRANSLOG, "request")).lower() != "async":
        return ()
    return (f"{TRANSLOG} is async, so that the disk is behind by up to {settings.get(SYNC_INTERVAL, '5s')}",)


def target_of(file: Path) -> tuple[str, ...]:
    """The same of the index that a file creates, the body of `PUT /INDEX`. Raises TargetError if it cannot be used."""
    try:
        return unsafe_of(flat_settings(parse_json(read_text(file, TargetError)).get("settings", {})))
    except FileNotFoundError:
        raise TargetError(f"{file}: there is no such file; restore it") from None
    except (ValueError, AttributeError, TypeError) as error:
        raise TargetError(f"{file}: cannot be used as an index: {error}") from None


CHECKUP = Checkup(look, target_of, "elasticsearch/index.json")
