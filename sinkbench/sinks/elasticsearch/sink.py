"""One Elasticsearch cluster, as trials use it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from elasticsearch.helpers import ScanError, scan

from elasticsearch import ApiError, BadRequestError, NotFoundError, TransportError
from loadgen.reading import parse_json, read_text
from sinkbench.analysis.durability import index_promise
from sinkbench.analysis.memory import HEAP
from sinkbench.analysis.query import Answer, Query
from sinkbench.analysis.replication import ReplicationState
from sinkbench.analysis.samples import OTHER_CONNECTIONS
from sinkbench.analysis.settable import Given
from sinkbench.errors import ReasonCode, StackError, TargetError
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.http import USER_AGENT
from sinkbench.sinks.arrivals import ArrivalWatch
from sinkbench.sinks.elasticsearch import replication
from sinkbench.sinks.elasticsearch.asked import Comparison, compare, fields_of, flat_settings, seconds_of, spread
from sinkbench.sinks.elasticsearch.asking import ask
from sinkbench.sinks.elasticsearch.client import buckets_of, connect, contents, highest_numbers
from sinkbench.sinks.elasticsearch.filling import fill
from sinkbench.sinks.elasticsearch.guard import Guard
from sinkbench.sinks.elasticsearch.seqnos import SeqNoWatch
from sinkbench.sinks.kind import ASK_SECONDS, FullDisk
from sinkbench.sinks.reading import SinkBloat, SinkOthers, SinkPooling, SinkReading, SinkSettings
from sinkbench.stack import Endpoint, Endpoints
from sinkbench.stack.smalldisk import SmallDisk

__all__ = ["REJECTED", "ElasticsearchSink", "open_elasticsearch", "settings_of", "stored_bytes"]

# What an index promises of a document that it has acknowledged, and what else its speed depends on.
TRANSLOG = "index.translog.durability"
SYNC_INTERVAL = "index.translog.sync_interval"
DURABILITY = (TRANSLOG, SYNC_INTERVAL, "index.number_of_replicas")
TUNING = ("index.number_of_shards", "index.refresh_interval")
# Requests that store records: one document, or many.
WRITE_ROUTES = ("_doc", "_create", "_bulk")
# Kept in the mappings of an index that sinkbench has made; what lacks it belongs to somebody else.
MARK = {"made_by": "sinkbench"}
REJECTED = "es_write_rejected_total"
HEAP_BYTES = f"elasticsearch{HEAP}"
# How hard the nodes work: what the rules look at, each by the factor to its unit and where `_nodes/stats` has it, in
# places that are added up. It is asked for once a second, since it costs the nodes more than their progress does.
SIGNS_SECONDS = 1.0
SIGNS: dict[str, tuple[float, tuple[str, ...]]] = {
    "es_write_queue": (1.0, ("thread_pool.write.queue",)),
    "es_write_active": (1.0, ("thread_pool.write.active",)),
    # For want of room in the queue, or of memory for writes that are not finished.
    REJECTED: (
        1.0,
        (
            "thread_pool.write.rejected",
            "indexing_pressure.memory.total.coordinating_rejections",
            "indexing_pressure.memory.total.primary_rejections",
        ),
    ),
    "es_indexing_throttled_seconds_total": (1e-3, ("indices.indexing.throttle_time_in_millis",)),
    "es_merges": (1.0, ("indices.merges.current",)),
    "es_merge_seconds_total": (1e-3, ("indices.merges.total_time_in_millis",)),
    "es_merge_throttled_seconds_total": (1e-3, ("indices.merges.total_throttled_time_in_millis",)),
    "es_refresh_seconds_total": (1e-3, ("indices.refresh.total_time_in_millis",)),
    "es_pressure_bytes": (1.0, ("indexing_pressure.memory.current.all_in_bytes",)),
    "es_pressure_limit_bytes": (1.0, ("indexing_pressure.memory.limit_in_bytes",)),
    HEAP_BYTES: (1.0, ("jvm.mem.heap_used_in_bytes",)),
}
STORED = "_shards.failed,indices.*.shards.*.routing.primary,indices.*.shards.*.segments.*.size_in_bytes"
WRITE_BLOCK = "index.blocks.write"
# How often an index is made until its primary shards are spread.
MOST_PLACEMENTS = 4
ALREADY_THERE = "resource_already_exists_exception"
# As many as a search may give at once, unless an index says otherwise.
DOCUMENTS_AT_ONCE = 10_000
# What a cluster answers whose nodes we may not see, or that shows none of them.
NOT_SHOWN = (400, 403, 404, 405, 410)


@maps_exceptions(ApiError, TransportError)
class ElasticsearchSink:
    """One Elasticsearch cluster."""

    name = "elasticsearch"

    def __init__(self, endpoint: Endpoint, index_file: Path) -> None:
        """
        Args:
            endpoint: where it is; its option `index` is the name that connectors write to, and `shards` and `replicas`
                are, if they are there, those of an index without a file of its own.
            index_file: settings and mappings of an index, the body of `PUT /INDEX`.
        """
        self._endpoint = endpoint
        self._alias = endpoint.options["index"]
        self._index_file = index_file
        self._shows_nodes = True
        self._signs_at = self._clients_at = -math.inf
        self._seen: set[tuple[str, int]] | None = None
        self._others: set[tuple[str, int]] = set()
        self._client = connect(endpoint)
        self._added: dict[str, tuple[str, list[str]]] = {}
        self._given: Mapping[str, str] = {}

    def refuses_settings(self, given: Given) -> str | None:
        # Whether an index can be made so is seen when one is.
        return None

    def apply(self, given: Given) -> None:
        self._given = given.get(self.name, {})

    def revert(self) -> list[str]:
        # An index keeps its settings, and goes with its trial.
        self._given = {}
        return []

    def create(self, target: str, file: Path | None = None) -> None:
        options = self._endpoint.options if file is None else {}
        file = file or self._index_file
        try:
            asked = spread(parse_json(read_text(file, TargetError)), options)
            # What the plan says for this cell comes last.
            if self._given:
                asked = {**asked, "settings": {**flat_settings(asked.get("settings", {})), **self._given}}
            mappings = asked.get("mappings", {})
            meta = {**mappings.get("_meta", {}), **MARK}
            body = {**asked, "mappings": {**mappings, "_meta": meta}}
        except (FileNotFoundError, ValueError, AttributeError, TypeError) as error:
            raise TargetError(f"{file}: cannot be used as an index: {error}") from None
        cannot = f"Elasticsearch did not make the index {target} of {file}"
        try:
            before = self._behind_alias()
            self._create_spread(target, body)
            became = self._became(asked, target)
            if became.lacking:
                self._client.indices.delete(index=target)
                raise TargetError(f"{cannot}: {'; '.join(became.lacking)}")
            self._added[target] = file.name, became.added
            self._point_alias(target, before)
        except (ApiError, TransportError) as error:
            refused = isinstance(error, BadRequestError) and error.error != ALREADY_THERE
            raise (TargetError if refused else StackError)(f"{cannot}: {error}") from None

    def _create_spread(self, target: str, body: dict[str, Any]) -> None:
        """Makes the index; again if its primary shards are not spread over the nodes, as may be beside another index
        that just went. What stays uneven is found where it must hold."""
        for left in reversed(range(MOST_PLACEMENTS)):
            self._client.indices.create(index=target, body=body, wait_for_active_shards="all")
            if not left or [each.code for each in self.replication(target).broken] != [ReasonCode.SHARDS_UNEVEN]:
                return
            self._client.indices.delete(index=target)

    def _became(self, asked: dict[str, Any], target: str) -> Comparison:
        """What became of the index that was asked for, as far as the cluster shows it."""
        try:
            found: Any = self._client.indices.get(index=target, flat_settings=True, include_defaults=True)
            became = compare(asked, found[target])
            if not became.lacking:
                return became
            # What is asked for as it is by default is shown only by this.
            shown: Any = self._client.indices.get_field_mapping(fields="*", index=target, include_defaults=True)
            return compare(asked, found[target], fields_of(shown[target]["mappings"]))
        except ApiError as error:
            if error.status_code not in NOT_SHOWN:
                raise
            return Comparison([], [])

    def notes(self, target: str) -> list[str]:
        file, added = self._added.get(target, ("", []))
        notes = [f"Elasticsearch added to what {file} asks for: {', '.join(added)}"] if added else []
        if self.settings(target).durability[TRANSLOG] == "async":
            notes.append(f"what Elasticsearch has stored may be gone after a crash: {TRANSLOG} is async")
        return notes

    def _mappings(self, pattern: str) -> dict[str, dict[str, Any]]:
        """The mappings of each index that a name, an alias or a pattern stands for, by the index's own name."""
        try:
            found = self._client.indices.get_mapping(index=pattern)
        except NotFoundError:
            return {}
        return {str(index): described["mappings"] for index, described in found.items()}

    def _behind_alias(self) -> list[str]:
        """The indices that the connectors' name stands for now, all of them ours.

        Raises:
            StackError: it is the name of an index, or an alias of one, that sinkbench has not made.
        """
        behind = self._mappings(self._alias)
        for index, mappings in behind.items():
            if index == self._alias or not _is_marked(mappings):
                what = "is an index" if index == self._alias else f"is an alias of {index}, an index"
                raise StackError(
                    f"Elasticsearch: {self._alias} {what} that sinkbench has not made, and leaves alone; "
                    "set elasticsearch.index in the stack file to another name"
                )
        return list(behind)

    def _point_alias(self, target: str, before: list[str]) -> None:
        """Makes the connectors' name, which stood for `before`, stand for `target` alone."""
        # One step: at no moment do two indices, or none, stand behind the alias.
        self._client.indices.update_aliases(
            actions=[
                *({"remove": {"index": index, "alias": self._alias, "must_exist": False}} for index in before),
                {"add": {"index": target, "alias": self._alias, "is_write_index": True}},
            ]
        )

    def offer_by_hand(self) -> None:
        target = f"{self._alias}-by-hand"
        if self._client.indices.exists(index=target):
            # One that an older sinkbench has made bears no mark; a stack where things are done by hand is our own.
            self._client.indices.put_mapping(index=target, meta=MARK)
            self._point_alias(target, self._behind_alias())
        else:
            self.create(target)

    def columns(self, target: str) -> frozenset[str] | None:
        return None

    def drop(self, target: str) -> None:
        for index, mappings in self._mappings(target).items():
            # A name that stands for another index is an alias that somebody has made.
            if index != target or not _is_marked(mappings):
                raise StackError(f"Elasticsearch: sinkbench has not made the index {target}, and does not delete it")
            self._client.indices.delete(index=target, ignore_unavailable=True)

    def read(self, target: str) -> SinkReading:
        # Every indexing operation takes the next sequence number of its shard, counted from 0.
        stored = sum(highest + 1 for _, highest in highest_numbers(self._client, target))
        if time.monotonic() - self._clients_at >= SIGNS_SECONDS:
            self._clients_at, self._seen = time.monotonic(), self._clients()
        clients = self._seen
        if clients is None:
            return SinkReading(stored=stored, backends=None)
        others = {OTHER_CONNECTIONS: float(len(clients & self._others))}
        return SinkReading(stored=stored, backends=len(clients), signs={**others, **self._signs()})

    def _clients(self) -> set[tuple[str, int]] | None:
        """The connections of others that are open, by node and number; None if they are not shown."""
        nodes = self._nodes(
            "nodes.*.http.clients.id,nodes.*.http.clients.agent,nodes.*.http.clients.closed_time_millis"
        )
        if nodes is None:
            return None
        return {
            (str(name), int(client["id"]))
            for name, node in nodes.get("nodes", {}).items()
            for client in node["http"].get("clients", [])
            if client.get("agent") != USER_AGENT and "closed_time_millis" not in client
        }

    def exclude_existing(self) -> None:
        self._others = self._clients() or set()
        self._clients_at = -math.inf

    def others(self) -> SinkOthers:
        wanted = "indices.*.primaries.indexing.index_total"
        indices = {}
        with suppress(ApiError):
            indices = self._client.indices.stats(metric="indexing", filter_path=wanted).body.get("indices", {})
        # Names with a dot before them are Elasticsearch's own.
        counts = {name: _at(found, "primaries.indexing.index_total") for name, found in indices.items()}
        written = {name: int(count) for name, count in counts.items() if not name.startswith(".") and count is not None}
        clients = self._clients()
        # Whoever reads next wants to know who is left.
        self._clients_at = -math.inf
        return SinkOthers(None if clients is None else len(clients), written)

    def _signs(self) -> dict[str, float]:
        """How hard all nodes together work; empty if they were asked less than a second ago."""
        if time.monotonic() - self._signs_at < SIGNS_SECONDS:
            return {}
        self._signs_at = time.monotonic()
        wanted = ",".join(f"nodes.*.{path}" for _, paths in SIGNS.values() for path in paths)
        stats = self._nodes(wanted, "indices,thread_pool,indexing_pressure,jvm") or {}
        found: dict[str, float] = {}
        for node in stats.get("nodes", {}).values():
            for name, (factor, paths) in SIGNS.items():
                for path in paths:
                    if (value := _at(node, path)) is not None:
                        found[name] = round(found.get(name, 0.0) + value * factor, 4)
        return found

    def _nodes(self, wanted: str, metric: str = "http") -> Any:
        """What the nodes count of their HTTP interface, or of another metric; None if they do not show it to us."""
        if not self._shows_nodes:
            return None
        try:
            return self._client.nodes.stats(metric=metric, filter_path=wanted)
        except ApiError as error:
            if error.status_code not in NOT_SHOWN:
                raise
            self._shows_nodes = False
            return None

    def arrivals(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        settings: Any = self._client.indices.get_settings(index=target, flat_settings=True)
        shards = int(settings[target]["settings"]["index.number_of_shards"])
        return closing(SeqNoWatch(connect(self._endpoint), target, shards, interval_seconds))

    def diverted(self, target: str) -> str | None:
        behind = list(self._mappings(self._alias))
        if behind == [target]:
            return None
        now = f"is {' and '.join(behind)} by now" if behind else "was taken away"
        return f"what the connectors call {self._alias} {now}: another race uses this Elasticsearch; wait for its end"

    def stamped_rate(self, target: str, records: int) -> float | None:
        return None

    def settle(self, target: str) -> None:
        self._client.indices.refresh(index=target)

    def writes(self, target: str) -> int | None:
        nodes = self._nodes("nodes.*.http.routes.*.requests.count")
        if nodes is None:
            return None
        return sum(
            int(route["requests"]["count"])
            for node in nodes.get("nodes", {}).values()
            for path, route in node["http"].get("routes", {}).items()
            if any(part in WRITE_ROUTES for part in path.split("/"))
        )

    def pooling(self) -> SinkPooling | None:
        return None

    def connection_limit(self) -> int | None:
        return None

    def settings_of(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        # They are the index's.
        return self.settings(target)

    def settings(self, target: str) -> SinkSettings:
        answer: Any = {}
        with suppress(ApiError, TransportError):
            answer = self._client.indices.get_settings(index=target, flat_settings=True, include_defaults=True)
        return settings_of(answer.get(target, {}))

    def replication(self, target: str) -> ReplicationState:
        return replication.look(self._client, target)

    def replication_of(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        # Its copies are the index's.
        return self.replication(target)

    def count(self, target: str) -> int:
        return int(self._client.count(index=target)["count"])

    def disk_bytes(self, target: str) -> int | None:
        try:
            # Without it the newest documents are in memory, and in the log that a flush empties.
            self._client.indices.flush(index=target, wait_if_ongoing=True)
            # The size that `_stats` tells is up to ten seconds old, and 0 of a younger index.
            return stored_bytes(self._client.indices.segments(index=target, filter_path=STORED).body)
        except ApiError as error:
            # A figure that the cluster does not give away is no reason against the trial.
            if error.status_code not in NOT_SHOWN:
                raise
            return None

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        what = f"all shards of {target} for the audit"
        for buckets in buckets_of(self._client, target, run, ("bench.seq",), what):
            keys = np.array([bucket["key"]["bench.seq"] for bucket in buckets], dtype=np.int64)
            yield np.repeat(keys, [bucket["doc_count"] for bucket in buckets])

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        # An aggregation by the documents' own ids is switched off by default.
        query = {"query": {"term": {"bench.run": run}}, "docvalue_fields": ["bench.seq"], "_source": False}
        try:
            hits = scan(self._client, query=query, index=target, size=DOCUMENTS_AT_ONCE)
            while chunk := list(islice(hits, DOCUMENTS_AT_ONCE)):
                seqs = [hit["fields"]["bench.seq"][0] for hit in chunk]
                yield [str(hit["_id"]) for hit in chunk], np.array(seqs, dtype=np.int64)
        except ScanError as error:
            raise StackError(f"Elasticsearch could not read all shards of {target} for the audit: {error}") from None

    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        # A generator, so that what the client raises while it runs is mapped.
        yield from fill(self._client, target, rows, documents)

    def bloat(self, target: str) -> SinkBloat:
        # What is in memory is no segment yet, of which documents could be deleted.
        size = self.disk_bytes(target)
        stats: Any = self._client.indices.stats(index=target, metric="docs")
        # Elasticsearch has no transactions.
        return SinkBloat(int(stats["_all"]["primaries"]["docs"]["deleted"]), None, None, size)

    def documents(self, target: str, run: str, seqs: Sequence[int]) -> dict[int, Any]:
        wanted = {"bool": {"filter": [{"term": {"bench.run": run}}, {"terms": {"bench.seq": list(seqs)}}]}}
        # Some may be there twice.
        found = self._client.search(
            index=target, query=wanted, size=2 * len(seqs), source=True, docvalue_fields=[{"field": "bench.seq"}]
        )["hits"]["hits"]
        # An index may keep documents without their `bench`, or in another shape.
        return {int(hit["fields"]["bench.seq"][0]): hit["_source"] for hit in found if "_source" in hit}

    def contents(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        yield from contents(self._endpoint, target, run, one_in, at_once)

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        return ask(self._client.options(request_timeout=ASK_SECONDS), target, query)

    def refuse(self, target: str, why: str) -> None:
        # A block of writes leaves the index to be read and deleted.
        self._client.indices.put_settings(index=target, settings={WRITE_BLOCK: True})

    def accept(self, target: str) -> None:
        self._client.indices.put_settings(index=target, settings={WRITE_BLOCK: None})

    def disk_to_fill(
        self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]
    ) -> AbstractContextManager[FullDisk]:
        return nullcontext(Guard(self._client, target))

    def leftovers(self, prefix: str) -> list[str]:
        return sorted(index for index, mappings in self._mappings(f"{prefix}*").items() if _is_marked(mappings))

    def close(self) -> None:
        self._client.close()


def open_elasticsearch(endpoints: Endpoints, checkout: Path) -> ElasticsearchSink:
    """The sink of a stack that has it."""
    return ElasticsearchSink(endpoints.sinks["elasticsearch"], checkout / "elasticsearch" / "index.json")


def settings_of(index: Mapping[str, Mapping[str, Any]]) -> SinkSettings:
    """How an index is set, by what Elasticsearch answers of it: its own settings, flat, and the defaults of others."""
    told = {**index.get("defaults", {}), **index.get("settings", {})}
    # A default comes as REQUEST, what somebody has set as request.
    found = {name: None if told.get(name) is None else str(told[name]).lower() for name in (*DURABILITY, *TUNING)}
    durability, tuning = ({name: found[name] for name in names} for names in (DURABILITY, TUNING))
    return SinkSettings(durability, tuning, index_promise(durability, seconds_of(found[SYNC_INTERVAL])))


def stored_bytes(answer: Any) -> int | None:
    """Bytes of an index's primary shards, by what `_segments` answers; None if one did not answer, or none tells."""
    indices = answer.get("indices", {}).values()
    copies = [copy for index in indices for shard in index["shards"].values() for copy in shard]
    sizes = [
        int(segment["size_in_bytes"])
        for copy in copies
        if copy.get("routing", {}).get("primary")
        for segment in copy.get("segments", {}).values()
    ]
    return None if not sizes or _at(answer, "_shards.failed") else sum(sizes)


def _at(found: Any, path: str) -> Any:
    """What nested objects hold at `a.b.c`; None if one of these lacks."""
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _is_marked(mappings: dict[str, Any]) -> bool:
    return bool(mappings.get("_meta", {}).items() >= MARK.items())
