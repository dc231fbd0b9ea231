"""Queries in Elasticsearch."""

from __future__ import annotations

from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.analysis.query import Answer, Condition, Query, members
from sinkbench.errors import StackError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.capabilities import ASK_SECONDS

PAGE = 1_000


@maps_exceptions(ApiError, TransportError)
class Queries:
    """Queries an index. What is not indexed is not found, so a correct answer came from an index."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client.options(request_timeout=ASK_SECONDS)

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        """Raises StackError if a shard did not answer."""
        if query.groups is None:
            answer = _search(self._client, target, body_of(query))
            found = answer["hits"]["total"]["value"]
            return Answer(int(found), [(int(hit["sort"][-1]),) for hit in answer["hits"]["hits"]], by_index=True)
        rows: list[tuple[str | float | None, ...]] = []
        body = body_of(query)
        while True:
            groups = _search(self._client, target, body)["aggregations"]["groups"]
            rows += [_row(each) for each in groups["buckets"]]
            if "after_key" not in groups:
                break
            body["aggs"]["groups"]["composite"]["after"] = groups["after_key"]
        total = sum(int(row[2] or 0) for row in rows)
        return Answer(total, sorted(rows, key=lambda row: (row[0], row[1])), by_index=True)


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
        figures = {name: {name: measure} for name in ("min", "max", "avg")}
        return {**body, "aggs": {"groups": {"composite": {"size": PAGE, "sources": sources}, "aggs": figures}}}
    return body


def _search(client: Elasticsearch, index: str, body: dict[str, Any]) -> Any:
    answer: Any = client.search(index=index, body=body)
    if answer["_shards"]["failed"] or answer["timed_out"]:
        raise StackError(f"not all shards of {index} answered a query")
    return answer


def _row(bucket: Any) -> tuple[str | float | None, ...]:
    figures = (bucket[name]["value"] for name in ("min", "max", "avg"))
    return (str(bucket["key"]["key"]), str(bucket["key"]["hour"]), int(bucket["doc_count"]), *figures)


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
