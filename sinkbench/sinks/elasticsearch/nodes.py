"""What Elasticsearch's nodes count, the bottlenecks that it shows, copies of shards, and the state before a race."""

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.analysis.replication import ReplicationState, ShardCopy, index_replication
from sinkbench.analysis.samples import HEAP, OTHER_CONNECTIONS
from sinkbench.analysis.words import percent
from sinkbench.bottleneck.evidence import Evidence
from sinkbench.bottleneck.rules import Finding, Rule, may_be_sink
from sinkbench.services.failures import in_one_line, map_exceptions, maps_exceptions
from sinkbench.services.http import USER_AGENT
from sinkbench.sinks.elasticsearch.client import connect, highest_numbers, if_shown, value_at
from sinkbench.sinks.elasticsearch.index import target_of, unsafe_of
from sinkbench.sinks.values import Checkup, DataNode, SearchCluster, SinkOthers, SinkReading, SinkState
from sinkbench.stack import Endpoints

# Routes that store records: one document, or many.
WRITE_ROUTES = ("_doc", "_create", "_bulk")
CLIENTS = "nodes.*.http.clients.id,nodes.*.http.clients.agent,nodes.*.http.clients.closed_time_millis"
REJECTED = "es_write_rejected_total"
HEAP_BYTES = f"elasticsearch{HEAP}"
# Signs of the nodes' load for the rules: the factor to the sign's unit, and paths in `_nodes/stats`, which are summed.
# They are read once a second, since they cost the nodes more than reading progress.
SIGNS_SECONDS = 1.0
PRESSURE = "indexing_pressure.memory"
_REJECTED = ("thread_pool.write.rejected", *(f"{PRESSURE}.total.{of}_rejections" for of in ("coordinating", "primary")))
SIGNS: dict[str, tuple[float, tuple[str, ...]]] = {
    "es_write_queue": (1.0, ("thread_pool.write.queue",)),
    # Rejected for lack of space in the queue, or of memory for unfinished writes.
    REJECTED: (1.0, _REJECTED),
    "es_indexing_throttled_seconds_total": (1e-3, ("indices.indexing.throttle_time_in_millis",)),
    "es_refresh_seconds_total": (1e-3, ("indices.refresh.total_time_in_millis",)),
    "es_pressure_bytes": (1.0, (f"{PRESSURE}.current.all_in_bytes",)),
    "es_pressure_limit_bytes": (1.0, (f"{PRESSURE}.limit_in_bytes",)),
    HEAP_BYTES: (1.0, ("jvm.mem.heap_used_in_bytes",)),
}
REFRESHING = 0.3
THROTTLED = 0.1
PRESSED = 0.8
COLUMNS = "shard,prirep,state,node,unassigned.reason"
NODES = "nodes.*.name,nodes.*.roles"
ALLOCATED = re.compile(r"index\.routing\.allocation\.(require|include|exclude)\.")
# Roles of nodes that may store an index without a tier of its own.
ROLES = {"data", "data_content"}
TIMEOUT_SECONDS = 10.0
DISK = "cluster.routing.allocation.disk."
STAGES = {"low": "watermark.low", "high": "watermark.high", "flood": "watermark.flood_stage"}
STATS = "nodes.*.name,nodes.*.fs.total"


@maps_exceptions(ApiError, TransportError)
class Nodes:
    """The nodes of one cluster, as `OtherClients`, as `Replication`, and for `Sink.read`."""

    def __init__(self, client: Elasticsearch, diverted: Callable[[str], str | None]) -> None:
        self._client = client
        self.diverted = diverted
        self._are_shown = True
        self._read_at = -math.inf
        self._seen: set[tuple[str, int]] | None = None
        self._others: set[tuple[str, int]] = set()

    def reading(self, target: str) -> SinkReading:
        # Every indexing operation gets the next sequence number of its shard, from 0.
        stored = sum(highest + 1 for _, highest in highest_numbers(self._client, target))
        signs: dict[str, float] = {}
        if time.monotonic() - self._read_at >= SIGNS_SECONDS:
            # Signs that cannot be read make this reading a gap, not those of the next second.
            self._seen, self._read_at = self._clients(), time.monotonic()
            signs = self._signs()
        if self._seen is None:
            return SinkReading(stored=stored, backends=None)
        others = {OTHER_CONNECTIONS: float(len(self._seen & self._others))}
        return SinkReading(stored=stored, backends=len(self._seen), signs={**others, **signs})

    def drop(self, name: str) -> None:
        self._client.indices.delete(index=name, ignore_unavailable=True)

    def exclude_existing(self) -> None:
        self._others = self._clients() or set()
        self._read_at = -math.inf

    def seen(self) -> SinkOthers:
        wanted = "indices.*.primaries.indexing.index_total"
        indices = {}
        with suppress(ApiError):
            indices = self._client.indices.stats(metric="indexing", filter_path=wanted).body.get("indices", {})
        # Names that begin with a dot are Elasticsearch's own.
        counts = {name: value_at(found, "primaries.indexing.index_total") for name, found in indices.items()}
        written = {name: int(count) for name, count in counts.items() if not name.startswith(".") and count is not None}
        clients = self._clients()
        # The next reading must count the remaining clients.
        self._read_at = -math.inf
        return SinkOthers(None if clients is None else len(clients), written)

    def writes(self, target: str) -> int | None:
        """Requests that stored records; None if the nodes do not show it."""
        if (nodes := self._stats("nodes.*.http.routes.*.requests.count")) is None:
            return None
        routes = [each for node in nodes.values() for each in node["http"].get("routes", {}).items()]
        writing = [route for path, route in routes if any(part in WRITE_ROUTES for part in path.split("/"))]
        return sum(int(route["requests"]["count"]) for route in writing)

    def check(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        rows: Any = None
        nodes = None
        with if_shown():
            rows = self._client.cat.shards(index=target, h=COLUMNS, format="json")
            found: Any = self._client.nodes.info(node_id="data:true", metric="os", filter_path=NODES)
            told: Any = self._client.indices.get_settings(index=target, name="index.routing.*", flat_settings=True)
            nodes = nodes_of(found, told.get(target, {}).get("settings", {}))
        if rows is None:
            why = "this user may not see them (it needs the right to monitor the index)"
            return ReplicationState(unchecked=(f"whether the shards of the index are all there and spread: {why}",))
        return index_replication(copies_of(rows), nodes)

    def _clients(self) -> set[tuple[str, int]] | None:
        """Open connections except sinkbench's own, by node and number; None if the nodes do not show them."""
        if (nodes := self._stats(CLIENTS)) is None:
            return None
        return {
            (str(name), int(client["id"]))
            for name, node in nodes.items()
            for client in node["http"].get("clients", [])
            if client.get("agent") != USER_AGENT and "closed_time_millis" not in client
        }

    def _signs(self) -> dict[str, float]:
        """The load of all nodes together."""
        wanted = ",".join(f"nodes.*.{path}" for _, paths in SIGNS.values() for path in paths)
        nodes = self._stats(wanted, "indices,thread_pool,indexing_pressure,jvm") or {}
        found: dict[str, float] = {}
        for node in nodes.values():
            for name, (factor, paths) in SIGNS.items():
                for path in paths:
                    if (value := value_at(node, path)) is not None:
                        found[name] = round(found.get(name, 0.0) + value * factor, 4)
        return found

    def _stats(self, wanted: str, metric: str = "http") -> Any:
        if self._are_shown:
            with if_shown():
                return self._client.nodes.stats(metric=metric, filter_path=wanted).body.get("nodes", {})
        self._are_shown = False
        return None


def write_queue(seen: Evidence) -> Finding | None:
    """Elasticsearch rejects writes, queues more than there are tasks, or uses 80 % of its memory for unfinished writes.
    A rejection alone is enough: the connector must retry, or loses the records."""
    rejected = seen.rises.get("es_write_rejected", 0.0) * seen.seconds
    queue, tasks = seen.levels.get("es_write_queue", 0.0), max(seen.around.tasks, 1)
    held, most = seen.levels.get("es_pressure_bytes"), seen.levels.get("es_pressure_limit_bytes")
    pressed = held / most if held is not None and most else 0.0
    if rejected < 0.5 and queue < tasks and pressed < PRESSED:
        return None
    text = f"{rejected:,.0f} writes rejected, {queue:.1f} queued, {percent(pressed)} of its memory for writes in use"
    return Finding("elasticsearch", "write queue", text, 1.0)


def merges_throttle(seen: Evidence) -> Finding | None:
    """Elasticsearch throttles indexing 10 % of the time, since merges of segments do not keep up."""
    if (share := seen.rises.get("es_indexing_throttled_seconds", 0.0)) < THROTTLED:
        return None
    return Finding("elasticsearch", "merges", f"indexing held back for merges {percent(share)} of the time", share)


def refreshes(seen: Evidence) -> Finding | None:
    """A shard refreshes 30 % of the time or more: `refresh_interval` is too short."""
    if (share := seen.rises.get("es_refresh_seconds", 0.0)) < REFRESHING or not may_be_sink(seen):
        return None
    return Finding("elasticsearch", "refreshes", f"refreshing {percent(share)} of the time", min(share, 1.0))


RULES: tuple[Rule, ...] = (write_queue, merges_throttle, refreshes)


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


def nodes_of(answer: Mapping[str, Any], settings: Mapping[str, Any]) -> set[str] | None:
    """Names of the nodes that may store an index without a tier, in an answer of `_nodes`; None if there are none, or
    if the index's own flat settings restrict its shards to some."""
    if any(ALLOCATED.match(name) and value != "data_content" for name, value in settings.items()):
        return None
    nodes = answer.get("nodes", {}).values()
    return {str(node["name"]) for node in nodes if "roles" not in node or ROLES & set(node["roles"])} or None


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


def watermarks_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Disk watermarks in an answer of `_cluster/settings` with flat settings and defaults."""
    told = {**settings.get("defaults", {}), **settings.get("persistent", {}), **settings.get("transient", {})}
    if str(told.get(f"{DISK}threshold_enabled", "true")).lower() == "false":
        return {}
    return {stage: str(told[DISK + name]) for stage, name in STAGES.items() if DISK + name in told}


CHECKUP = Checkup(look, target_of, "elasticsearch/index.json")
