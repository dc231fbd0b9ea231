"""Elasticsearch as a sink: an index a trial, behind the alias that the connector files write to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elasticsearch import ApiError, Elasticsearch, NotFoundError, TransportError
from sinkbench.errors import StackError
from sinkbench.sinks.reading import SinkReading

__all__ = ["ElasticsearchSink"]

USER_AGENT = "sinkbench"
TIMEOUT_SECONDS = 60.0
PROGRESS = "indices.*.shards.*.seq_no.max_seq_no,indices.*.shards.*.routing.primary"
# An aggregation has 65,536 buckets at most.
PAGE = 50_000
# Requests that store records: one document, or many.
WRITE_ROUTES = ("_doc", "_create", "_bulk")


class ElasticsearchSink:
    """One Elasticsearch cluster."""

    name = "elasticsearch"

    def __init__(self, url: str, alias: str, index_file: Path) -> None:
        """
        Args:
            url: address of a node.
            alias: the name that connectors write to.
            index_file: settings and mappings of an index, the body of `PUT /INDEX`.
        """
        self._alias = alias
        self._index_file = index_file
        self._client = Elasticsearch(
            url, request_timeout=TIMEOUT_SECONDS, connections_per_node=1, headers={"user-agent": USER_AGENT}
        )

    def create(self, target: str) -> None:
        try:
            body = json.loads(self._index_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StackError(f"{self._index_file}: cannot be used as an index: {error}") from None
        try:
            self._client.indices.create(index=target, body=body, wait_for_active_shards="all")
            self._point_alias(target)
        except (ApiError, TransportError) as error:
            raise StackError(f"Elasticsearch did not make the index {target} of {self._index_file}: {error}") from None

    def _point_alias(self, target: str) -> None:
        """Makes the connectors' name stand for `target` alone."""
        # One step: at no moment do two indices, or none, stand behind the alias.
        self._client.indices.update_aliases(
            actions=[
                {"remove": {"index": "*", "alias": self._alias, "must_exist": False}},
                {"add": {"index": target, "alias": self._alias, "is_write_index": True}},
            ]
        )

    def offer_by_hand(self) -> None:
        target = f"{self._alias}-by-hand"
        if self._client.indices.exists(index=target):
            self._point_alias(target)
        else:
            self.create(target)

    def drop(self, target: str) -> None:
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
        nodes: Any = self._client.nodes.stats(
            metric="http", filter_path="nodes.*.http.clients.agent,nodes.*.http.clients.closed_time_millis"
        )
        open_clients = sum(
            client.get("agent") != USER_AGENT and "closed_time_millis" not in client
            for node in nodes.get("nodes", {}).values()
            for client in node["http"].get("clients", [])
        )
        return SinkReading(stored=stored, backends=open_clients)

    def settle(self, target: str) -> None:
        self._client.indices.refresh(index=target)

    def writes(self, target: str) -> int | None:
        nodes: Any = self._client.nodes.stats(metric="http", filter_path="nodes.*.http.routes.*.requests.count")
        return sum(
            int(route["requests"]["count"])
            for node in nodes.get("nodes", {}).values()
            for path, route in node["http"].get("routes", {}).items()
            if any(part in WRITE_ROUTES for part in path.split("/"))
        )

    def connection_limit(self) -> int | None:
        return None

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
        try:
            return sorted(self._client.indices.get(index=f"{prefix}*"))
        except NotFoundError:
            return []

    def close(self) -> None:
        self._client.close()
