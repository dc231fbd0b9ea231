"""Elasticsearch as a sink: an index a trial, behind the alias that the connector files write to."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elasticsearch import ApiError, Elasticsearch, NotFoundError, TransportError
from sinkbench.errors import StackError
from sinkbench.sinks.arrivals import ArrivalWatch
from sinkbench.sinks.reading import SinkReading, SinkSettings
from sinkbench.sinks.seqnos import SeqNoWatch
from sinkbench.stack import Access
from sinkbench.stack.access import tls

__all__ = ["ElasticsearchSink", "settings_of"]

USER_AGENT = "sinkbench"
# What an index promises of a document that it has acknowledged, and what else its speed depends on.
DURABILITY = ("index.translog.durability", "index.translog.sync_interval", "index.number_of_replicas")
TUNING = ("index.number_of_shards", "index.refresh_interval")
TIMEOUT_SECONDS = 60.0
PROGRESS = "indices.*.shards.*.seq_no.max_seq_no,indices.*.shards.*.routing.primary"
# An aggregation has 65,536 buckets at most.
PAGE = 50_000
# Requests that store records: one document, or many.
WRITE_ROUTES = ("_doc", "_create", "_bulk")
# Kept in the mappings of an index that sinkbench has made; what lacks it belongs to somebody else.
MARK = {"made_by": "sinkbench"}
# How hard the nodes work: what `causes` looks at, each by the factor to its unit and where `_nodes/stats` has it, in
# places that are added up. It is asked for once a second, since it costs the nodes more than their progress does.
SIGNS_SECONDS = 1.0
SIGNS: dict[str, tuple[float, tuple[str, ...]]] = {
    "es_write_queue": (1.0, ("thread_pool.write.queue",)),
    "es_write_active": (1.0, ("thread_pool.write.active",)),
    # For want of room in the queue, or of memory for writes that are not finished.
    "es_write_rejected_total": (
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
}
# What a cluster answers whose nodes we may not see, or that shows none of them.
NOT_SHOWN = (400, 403, 404, 405, 410)


class ElasticsearchSink:
    """One Elasticsearch cluster."""

    name = "elasticsearch"

    def __init__(self, url: str, alias: str, index_file: Path, access: Access | None = None) -> None:
        """
        Args:
            url: address of a node.
            alias: the name that connectors write to.
            index_file: settings and mappings of an index, the body of `PUT /INDEX`.
            access: what the cluster wants before it answers.
        """
        access = access or Access()
        self._alias = alias
        self._index_file = index_file
        self._url = url
        self._shows_nodes = True
        self._signs_at = -math.inf
        self._access = access
        self._client = self._connect()

    def _connect(self) -> Elasticsearch:
        access = self._access
        options: dict[str, Any] = {"ssl_context": tls(access)} if self._url.startswith("https:") else {}
        return Elasticsearch(
            self._url,
            request_timeout=TIMEOUT_SECONDS,
            connections_per_node=1,
            headers={"user-agent": USER_AGENT},
            basic_auth=None if access.user is None else (access.user, access.password or ""),
            api_key=access.api_key,
            **options,
        )

    def create(self, target: str) -> None:
        try:
            body = json.loads(self._index_file.read_text(encoding="utf-8"))
            mappings = body.setdefault("mappings", {})
            mappings["_meta"] = {**mappings.get("_meta", {}), **MARK}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise StackError(f"{self._index_file}: cannot be used as an index: {error}") from None
        try:
            before = self._behind_alias()
            self._client.indices.create(index=target, body=body, wait_for_active_shards="all")
            self._point_alias(target, before)
        except (ApiError, TransportError) as error:
            raise StackError(f"Elasticsearch did not make the index {target} of {self._index_file}: {error}") from None

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

    def drop(self, target: str) -> None:
        for index, mappings in self._mappings(target).items():
            # A name that stands for another index is an alias that somebody has made.
            if index != target or not _is_marked(mappings):
                raise StackError(f"Elasticsearch: sinkbench has not made the index {target}, and does not delete it")
            self._client.indices.delete(index=target, ignore_unavailable=True)

    def read(self, target: str) -> SinkReading:
        stats: Any = self._client.indices.stats(index=target, metric="docs", level="shards", filter_path=PROGRESS)
        # Every indexing operation takes the next sequence number of its shard, counted from 0.
        stored = sum(
            copy["seq_no"]["max_seq_no"] + 1
            for index in stats.get("indices", {}).values()
            for copies in index["shards"].values()
            for copy in copies
            if copy["routing"]["primary"]
        )
        nodes = self._nodes("nodes.*.http.clients.agent,nodes.*.http.clients.closed_time_millis")
        if nodes is None:
            return SinkReading(stored=stored, backends=None)
        open_clients = sum(
            client.get("agent") != USER_AGENT and "closed_time_millis" not in client
            for node in nodes.get("nodes", {}).values()
            for client in node["http"].get("clients", [])
        )
        return SinkReading(stored=stored, backends=open_clients, signs=self._signs())

    def _signs(self) -> dict[str, float]:
        """How hard all nodes together work; empty if they were asked less than a second ago."""
        if time.monotonic() - self._signs_at < SIGNS_SECONDS:
            return {}
        self._signs_at = time.monotonic()
        wanted = ",".join(f"nodes.*.{path}" for _, paths in SIGNS.values() for path in paths)
        stats = self._nodes(wanted, "indices,thread_pool,indexing_pressure") or {}
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

    @contextmanager
    def arrivals(self, target: str, interval_seconds: float) -> Iterator[ArrivalWatch]:
        settings: Any = self._client.indices.get_settings(index=target, flat_settings=True)
        shards = int(settings[target]["settings"]["index.number_of_shards"])
        watch = SeqNoWatch(self._connect(), target, shards, interval_seconds)
        with closing(watch):
            yield watch

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

    def connection_limit(self) -> int | None:
        return None

    def settings(self, target: str) -> SinkSettings:
        answer: Any = {}
        with suppress(ApiError, TransportError):
            answer = self._client.indices.get_settings(index=target, flat_settings=True, include_defaults=True)
        return settings_of(answer.get(target, {}))

    def count(self, target: str) -> int:
        return int(self._client.count(index=target)["count"])

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        after: dict[str, Any] = {}
        while True:
            answer: Any = self._client.search(
                index=target,
                size=0,
                query={"term": {"bench.run": run}},
                aggs={
                    "seq": {
                        "composite": {
                            "size": PAGE,
                            "sources": [{"seq": {"terms": {"field": "bench.seq"}}}],
                            **after,
                        }
                    }
                },
            )
            if answer["_shards"]["failed"] or answer["timed_out"]:
                raise StackError(f"Elasticsearch could not read all shards of {target} for the audit")
            found = answer["aggregations"]["seq"]
            buckets = found["buckets"]
            if not buckets:
                return
            keys = np.fromiter((bucket["key"]["seq"] for bucket in buckets), dtype=np.int64, count=len(buckets))
            counts = np.fromiter((bucket["doc_count"] for bucket in buckets), dtype=np.int64, count=len(buckets))
            yield np.repeat(keys, counts)
            if "after_key" not in found:
                return
            after = {"after": found["after_key"]}

    def leftovers(self, prefix: str) -> list[str]:
        return sorted(index for index, mappings in self._mappings(f"{prefix}*").items() if _is_marked(mappings))

    def close(self) -> None:
        self._client.close()


def settings_of(index: Mapping[str, Mapping[str, Any]]) -> SinkSettings:
    """How an index is set, by what Elasticsearch answers of it: its own settings, flat, and the defaults of others."""
    told = {**index.get("defaults", {}), **index.get("settings", {})}
    # A default comes as REQUEST, what somebody has set as request.
    found = {name: None if told.get(name) is None else str(told[name]).lower() for name in (*DURABILITY, *TUNING)}
    return SinkSettings(*({name: found[name] for name in names} for names in (DURABILITY, TUNING)))


def _at(found: Any, path: str) -> Any:
    """What nested objects hold at `a.b.c`; None if one of these lacks."""
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _is_marked(mappings: dict[str, Any]) -> bool:
    found: dict[str, Any] = mappings.get("_meta", {})
    return all(found.get(key) == value for key, value in MARK.items())
