"""Inserts documents before a trial: the same bulk requests, sent repeatedly."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.errors import StackError
from sinkbench.services.failures import maps_exceptions

DOCUMENTS_AT_ONCE = 2_000
HEADERS = {"content-type": "application/x-ndjson", "accept": "application/json"}
MERGES_SECONDS = 120.0


@maps_exceptions(ApiError, TransportError)
class Filling:
    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        """Raises StackError if a document is rejected."""
        lines = [b'{"index":{}}\n' + document + b"\n" for document in documents]
        bulks = [lines[first : first + DOCUMENTS_AT_ONCE] for first in range(0, len(lines), DOCUMENTS_AT_ONCE)]
        path = f"/{target}/_bulk?filter_path=errors,items.*.error.reason"
        done = 0
        for bulk in cycle(bulks):
            few = bulk[: rows - done]
            answer: Any = self._client.perform_request("POST", path, headers=HEADERS, body=b"".join(few)).body
            if answer["errors"]:
                raise StackError(f"Elasticsearch: {target} does not take the rows before: {str(answer['items'])[:200]}")
            done += len(few)
            yield done
            if done >= rows:
                break
        self._client.indices.flush(index=target, wait_if_ongoing=True)
        # Otherwise the trial would pay for merges that are left.
        deadline = time.monotonic() + MERGES_SECONDS
        while _merges(self._client, target) and time.monotonic() < deadline:
            time.sleep(0.5)


def _merges(client: Elasticsearch, index: str) -> int:
    stats: Any = client.indices.stats(index=index, metric="merge")
    return int(stats["_all"]["primaries"]["merges"]["current"])
