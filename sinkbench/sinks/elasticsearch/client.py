"""Connections to Elasticsearch, and requests that several modules share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elasticsearch import ApiError, Elasticsearch
from sinkbench.errors import StackError
from sinkbench.services.http import USER_AGENT, tls
from sinkbench.stack import Endpoint

# Status codes of a cluster that does not show its nodes or shards, or not to this user.
NOT_SHOWN = (400, 403, 404, 405, 410)
TIMEOUT_SECONDS = 60.0
NUMBERS = "indices.*.shards.*.seq_no.max_seq_no,indices.*.shards.*.routing.primary"
# Buckets per page of a composite aggregation; 65,536 is the most.
PAGE = 50_000


def connect(endpoint: Endpoint, **more: Any) -> Elasticsearch:
    """A client with one connection per node, which avoids dead nodes. Raises ServiceError if the CA cannot be used."""
    access = endpoint.access
    options: dict[str, Any] = {"ssl_context": tls(access)} if endpoint.address.startswith("https:") else {}
    return Elasticsearch(
        [node.address for node in endpoint.nodes.values()] or endpoint.address,
        request_timeout=TIMEOUT_SECONDS,
        connections_per_node=1,
        headers={"user-agent": USER_AGENT},
        basic_auth=None if access.user is None else (access.user, access.password or ""),
        api_key=access.api_key,
        **options,
        **more,
    )


@contextmanager
def if_shown() -> Iterator[None]:
    """Ends the block where the cluster does not show what is asked for."""
    try:
        yield
    except ApiError as error:
        if error.status_code not in NOT_SHOWN:
            raise


def highest_numbers(client: Elasticsearch, index: str) -> list[tuple[int, int]]:
    """Each shard of an index, with the highest `_seq_no` that its primary has stored; -1 if it is empty."""
    stats: Any = client.indices.stats(index=index, metric="docs", level="shards", filter_path=NUMBERS)
    return [
        (int(number), copy["seq_no"]["max_seq_no"])
        for found in stats.get("indices", {}).values()
        for number, copies in found["shards"].items()
        for copy in copies
        if copy["routing"]["primary"]
    ]


def value_at(found: Any, path: str) -> Any:
    """The value of nested objects at `a.b.c`; None if there is none."""
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def buckets_of(
    client: Elasticsearch, index: str, run: str, fields: tuple[str, ...], what: str, **where: Any
) -> Iterator[list[Any]]:
    """Pages of buckets of documents of `run` with equal `fields`. Raises StackError if a shard of `what` fails."""
    after: dict[str, Any] = {}
    while True:
        composite = {"size": PAGE, "sources": [{name: {"terms": {"field": name}}} for name in fields], **after}
        aggregation = {"documents": {"composite": composite}}
        query = {"term": {"bench.run": run}}
        answer: Any = client.search(index=index, size=0, query=query, aggs=aggregation, **where)
        if answer["_shards"]["failed"] or answer["timed_out"]:
            raise StackError(f"Elasticsearch could not read {what}")
        found = answer["aggregations"]["documents"]
        if found["buckets"]:
            yield found["buckets"]
        if "after_key" not in found or not found["buckets"]:
            return
        after = {"after": found["after_key"]}
