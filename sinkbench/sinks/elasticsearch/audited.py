"""What the audit reads of a trial's index, and the index's size on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from elasticsearch.helpers import ScanError, scan

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.errors import StackError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.elasticsearch.client import NOT_SHOWN, buckets_of, contents, value_at
from sinkbench.sinks.reading import SinkBloat
from sinkbench.stack import Endpoint

STORED = "_shards.failed,indices.*.shards.*.routing.primary,indices.*.shards.*.segments.*.size_in_bytes"
# The most that a search returns at once, unless an index sets another limit.
DOCUMENTS_AT_ONCE = 10_000


def sequences(client: Elasticsearch, index: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
    """`bench.seq` of every document of `run`, in chunks. Raises StackError if a shard fails."""
    for buckets in buckets_of(client, index, run, ("bench.seq",), f"all shards of {index} for the audit"):
        keys = np.array([bucket["key"]["bench.seq"] for bucket in buckets], dtype=np.int64)
        yield np.repeat(keys, [bucket["doc_count"] for bucket in buckets])


def disk_bytes(client: Elasticsearch, index: str) -> int | None:
    """Bytes of an index's primary shards; None if the cluster does not show them."""
    try:
        # Before a flush, the newest documents are in memory and in the translog.
        client.indices.flush(index=index, wait_if_ongoing=True)
        # The size in `_stats` is up to ten seconds old, and 0 for a younger index.
        return stored_bytes(client.indices.segments(index=index, filter_path=STORED).body)
    except ApiError as error:
        if error.status_code not in NOT_SHOWN:
            raise
        return None


def stored_bytes(answer: Any) -> int | None:
    """Bytes of an index's primary shards in an answer of `_segments`; None if one failed, or none has a size."""
    indices = answer.get("indices", {}).values()
    copies = [copy for index in indices for shard in index["shards"].values() for copy in shard]
    sizes = [
        int(segment["size_in_bytes"])
        for copy in copies
        if copy.get("routing", {}).get("primary")
        for segment in copy.get("segments", {}).values()
    ]
    return None if not sizes or value_at(answer, "_shards.failed") else sum(sizes)


@maps_exceptions(ApiError, TransportError)
class Documents:
    """The documents of an index, which may keep them without their `bench`, or in another shape."""

    def __init__(self, client: Elasticsearch, endpoint: Endpoint) -> None:
        self._client = client
        self._endpoint = endpoint

    def some(self, target: str, run: str, seqs: Sequence[int]) -> dict[int, Any]:
        wanted = {"bool": {"filter": [{"term": {"bench.run": run}}, {"terms": {"bench.seq": list(seqs)}}]}}
        # Some may be stored twice.
        found = self._client.search(
            index=target, query=wanted, size=2 * len(seqs), source=True, docvalue_fields=[{"field": "bench.seq"}]
        )["hits"]["hits"]
        return {int(hit["fields"]["bench.seq"][0]): hit["_source"] for hit in found if "_source" in hit}

    def all(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        yield from contents(self._endpoint, target, run, one_in, at_once)


@maps_exceptions(ApiError, TransportError)
class Changes:
    """An index whose document ids are keys."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        # Aggregations by documents' ids are disabled by default.
        query = {"query": {"term": {"bench.run": run}}, "docvalue_fields": ["bench.seq"], "_source": False}
        try:
            hits = scan(self._client, query=query, index=target, size=DOCUMENTS_AT_ONCE)
            while chunk := list(islice(hits, DOCUMENTS_AT_ONCE)):
                seqs = [hit["fields"]["bench.seq"][0] for hit in chunk]
                yield [str(hit["_id"]) for hit in chunk], np.array(seqs, dtype=np.int64)
        except ScanError as error:
            raise StackError(f"Elasticsearch could not read all shards of {target} for the audit: {error}") from None

    def bloat(self, target: str) -> SinkBloat:
        # First, since it flushes: documents in memory are in no segment yet, where deletions are counted.
        size = disk_bytes(self._client, target)
        stats: Any = self._client.indices.stats(index=target, metric="docs")
        # Elasticsearch has no transactions.
        return SinkBloat(int(stats["_all"]["primaries"]["docs"]["deleted"]), None, None, size)
