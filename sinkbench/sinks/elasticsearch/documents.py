"""What the audit and queries read of a trial's index, and the index's size on disk."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from itertools import islice
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from elasticsearch.helpers import ScanError, scan
from elasticsearch.serializer import JsonSerializer

from elasticsearch import ApiError, Elasticsearch, TransportError
from loadgen.checksum import parse
from sinkbench.analysis.query import Answer, Condition, Query, members
from sinkbench.errors import StackError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.elasticsearch.client import connect, if_shown, value_at
from sinkbench.sinks.elasticsearch.times import SeqNoWatch
from sinkbench.sinks.kind import ASK_SECONDS
from sinkbench.sinks.values import ArrivalWatch, SinkBloat
from sinkbench.stack import Endpoint, Endpoints
from sinkbench.suggest import did_you_mean

STORED = "_shards.failed,indices.*.shards.*.routing.primary,indices.*.shards.*.segments.*.size_in_bytes"
# The most that a search returns at once, unless an index sets another limit.
DOCUMENTS_AT_ONCE = 10_000
# The most slices of a scroll, unless an index sets another limit.
MOST_SLICES = 1_024
# Groups of a query that are returned at once.
GROUPS_AT_ONCE = 1_000
FIGURES = ("min", "max", "avg")


def stored_bytes(answer: Any) -> int | None:
    """Bytes of an index's primary shards in an answer of `_segments`; None if one failed, or none has a size."""
    indices = answer.get("indices", {}).values()
    copies = [copy for index in indices for shard in index["shards"].values() for copy in shard]
    primaries = [copy for copy in copies if copy.get("routing", {}).get("primary")]
    sizes = [int(each["size_in_bytes"]) for copy in primaries for each in copy.get("segments", {}).values()]
    return None if not sizes or value_at(answer, "_shards.failed") else sum(sizes)


@maps_exceptions(ApiError, TransportError)
class Stored:
    """The documents of an index, and queries of them. It may keep them without their `bench`, or in another shape."""

    def __init__(self, client: Elasticsearch, endpoint: Endpoint) -> None:
        self._client = client
        self._endpoint = endpoint

    def some(self, target: str, run: str, seqs: Sequence[int]) -> dict[int, Any]:
        wanted = {"bool": {"filter": [{"term": {"bench.run": run}}, {"terms": {"bench.seq": list(seqs)}}]}}
        # Some may be stored twice.
        with connect(self._endpoint, serializer=_Exact()) as client:
            found = client.search(
                index=target, query=wanted, size=2 * len(seqs), source=True, docvalue_fields=[{"field": "bench.seq"}]
            )["hits"]["hits"]
        return {int(hit["fields"]["bench.seq"][0]): hit["_source"] for hit in found if "_source" in hit}

    def all(self, target: str, run: str, one_in: int, at_once: int) -> Iterator[list[Any]]:
        query: dict[str, Any] = {"query": {"term": {"bench.run": run}}}
        if one_in > 1:
            # A hash of the number selects the slice.
            query["slice"] = {"field": "bench.seq", "id": 0, "max": min(one_in, MOST_SLICES)}
        with connect(self._endpoint, serializer=_Exact()) as client:
            for hits in _scanned(client, target, query, at_once):
                yield [hit["_source"] for hit in hits if "_source" in hit]

    def versions(self, target: str, run: str) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
        # Aggregations by documents' ids are disabled by default.
        query = {"query": {"term": {"bench.run": run}}, "docvalue_fields": ["bench.seq"], "_source": False}
        for hits in _scanned(self._client, target, query, DOCUMENTS_AT_ONCE):
            seqs = [hit["fields"]["bench.seq"][0] for hit in hits]
            yield [str(hit["_id"]) for hit in hits], np.array(seqs, dtype=np.int64)

    def disk_bytes(self, target: str) -> int | None:
        """Bytes of an index's primary shards; None if the cluster does not show them."""
        with if_shown():
            # Before a flush, the newest documents are in memory and in the translog.
            self._client.indices.flush(index=target, wait_if_ongoing=True)
            # The size in `_stats` is up to ten seconds old, and 0 for a younger index.
            return stored_bytes(self._client.indices.segments(index=target, filter_path=STORED).body)
        return None

    def bloat(self, target: str) -> SinkBloat:
        # First, since it flushes: documents in memory are in no segment yet, where deletions are counted.
        size = self.disk_bytes(target)
        stats: Any = self._client.indices.stats(index=target, metric="docs")
        # Elasticsearch has no transactions.
        return SinkBloat(int(stats["_all"]["primaries"]["docs"]["deleted"]), None, None, size)

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        """Raises StackError if a shard was silent. What is found is indexed: a right answer is from an index."""
        client = self._client.options(request_timeout=ASK_SECONDS)
        if query.groups is None:
            answer = _search(client, target, body_of(query))
            found = answer["hits"]["total"]["value"]
            return Answer(int(found), [(int(hit["sort"][-1]),) for hit in answer["hits"]["hits"]], by_index=True)
        rows: list[tuple[str | float | None, ...]] = []
        body = body_of(query)
        while True:
            groups = _search(client, target, body)["aggregations"]["groups"]
            for each in groups["buckets"]:
                figures = (each[name]["value"] for name in FIGURES)
                rows.append((str(each["key"]["key"]), str(each["key"]["hour"]), int(each["doc_count"]), *figures))
            if "after_key" not in groups:
                break
            body["aggs"]["groups"]["composite"]["after"] = groups["after_key"]
        total = sum(int(row[2] or 0) for row in rows)
        return Answer(total, sorted(rows, key=lambda row: (row[0], row[1])), by_index=True)

    def watch(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        settings: Any = self._client.indices.get_settings(index=target, flat_settings=True)
        shards = int(settings[target]["settings"]["index.number_of_shards"])
        return closing(SeqNoWatch(connect(self._endpoint), target, shards, interval_seconds))

    def rate(self, target: str, records: int) -> float | None:
        # Elasticsearch keeps no times itself.
        return None


@maps_exceptions(ApiError, TransportError)
class ExistingIndex:
    """An index, a data stream or an alias."""

    def __init__(self, endpoints: Endpoints, target: str) -> None:
        self.columns: Mapping[str, str] = {}
        self._client, self._target = connect(endpoints.sinks["elasticsearch"], serializer=_Exact()), target
        if not self._client.indices.exists(index=target):
            names: list[str] = []
            with if_shown():
                found = self._client.indices.get_alias(index="*").body
                names = [*found, *(alias for each in found.values() for alias in each["aliases"])]
            raise StackError(f"elasticsearch:{target}: there is no such index{did_you_mean(target, names)}")
        self.close = self._client.close

    def rows(self, columns: Sequence[str], at_once: int) -> Iterator[list[dict[str, Any]]]:
        """Raises StackError if the index does not keep documents."""
        with if_shown():
            # A search does not find what was written since the last refresh.
            self._client.indices.refresh(index=self._target)
        for hits in _scanned(self._client, self._target, {"query": {"match_all": {}}}, at_once):
            if any("_source" not in hit for hit in hits):
                raise StackError(f"elasticsearch:{self._target}: keeps no _source, so there is nothing to compare")
            yield [{**hit["_source"], "_id": hit["_id"]} for hit in hits]


class _Exact(JsonSerializer):
    """Parses numbers as a record's checksum needs them."""

    def json_loads(self, data: bytes) -> Any:
        return parse(data)


def _scanned(client: Elasticsearch, index: str, query: dict[str, Any], at_once: int) -> Iterator[list[Any]]:
    """All hits, in chunks. Raises StackError if a shard could not be read."""
    try:
        # A reader that stops early must end the scroll before its client closes.
        found = cast("Generator[dict[str, Any]]", scan(client, query=query, index=index, size=at_once))
        with closing(found) as hits:
            while chunk := list(islice(hits, at_once)):
                yield chunk
    except ScanError as error:
        raise StackError(f"Elasticsearch could not read all shards of {index} for the audit: {error}") from None


def body_of(query: Query) -> dict[str, Any]:
    conditions = [_condition(each) for each in query.where]
    conditions += [{"term": {field: value}} for field, value in members(query.member or {})]
    body: dict[str, Any] = {"query": {"bool": {"filter": conditions}}, "track_total_hits": True, "size": 0}
    if query.newest is not None:
        newest: list[dict[str, str]] = [{_field(query.newest.by): "desc"}, {"bench.seq": "desc"}]
        return {**body, "size": query.newest.most, "sort": newest, "_source": False}
    if query.groups is not None:
        key, measure = {"field": _field(query.groups.by)}, {"field": _field(query.groups.measure)}
        hour = {"field": _field(query.groups.hour), "calendar_interval": "hour", "format": "yyyy-MM-dd HH"}
        sources = [{"key": {"terms": key}}, {"hour": {"date_histogram": hour}}]
        figures = {name: {name: measure} for name in FIGURES}
        groups = {"composite": {"size": GROUPS_AT_ONCE, "sources": sources}, "aggs": figures}
        return {**body, "aggs": {"groups": groups}}
    return body


def _search(client: Elasticsearch, index: str, body: dict[str, Any]) -> Any:
    answer: Any = client.search(index=index, body=body)
    if answer["_shards"]["failed"] or answer["timed_out"]:
        raise StackError(f"not all shards of {index} answered a query")
    return answer


def _condition(asked: Condition) -> dict[str, Any]:
    field = _field(asked.field)
    if asked.near is not None:
        place = {"lat": asked.near.lat, "lon": asked.near.lon}
        return {"geo_distance": {"distance": f"{asked.near.km!r}km", field: place}}
    if asked.words is not None:
        return {"match": {field: {"query": asked.words, "operator": "and"}}}
    if asked.equals is not None:
        return {"term": {field: asked.equals}}
    bounds = {"gte": asked.start, "lt": asked.before}
    return {"range": {field: {sign: value for sign, value in bounds.items() if value is not None}}}


def _field(path: str) -> str:
    """The field of a member, without positions in lists, which Elasticsearch does not know."""
    return ".".join(part for part in path.split(".") if not part.isdigit())
