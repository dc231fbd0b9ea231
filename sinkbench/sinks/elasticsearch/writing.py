"""What sinkbench writes to an index itself: as a plain client, and before a trial; and how it makes writes fail."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import cycle
from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.analysis.settable import Given
from sinkbench.errors import StackError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.elasticsearch.client import connect
from sinkbench.sinks.kind import SmallDiskMaker
from sinkbench.sinks.values import Destination, Refused

ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
DOCUMENTS_AT_ONCE = 2_000
MERGES_SECONDS = 120.0
# A write block still permits reading and deleting the index.
WRITE_BLOCK = "index.blocks.write"
FLOOD_BLOCK = "index.blocks.read_only_allow_delete"
HEADERS = {"content-type": "application/x-ndjson", "accept": "application/json"}


@maps_exceptions(ApiError, TransportError)
class Bulk:
    """Elasticsearch's Bulk API; request bodies are made in advance."""

    def __init__(self, to: Destination) -> None:
        # A retry would hide that the sink did not take the batch.
        self._client = connect(to.endpoint, max_retries=0)
        self.close = self._client.close
        # By the alias, as connectors write; a deleted index is then not created again.
        alias = to.endpoint.options["index"]
        self._path = f"/{alias}/_bulk?require_alias=true&filter_path=errors,items.*.error.reason"

    def batch(self, records: Sequence[bytes]) -> bytes:
        # A bulk request has a document per line. JSON strings have no line breaks, so these are all between values.
        return b"".join(b'{"index":{}}\n' + record.translate(ONE_LINE) + b"\n" for record in records)

    def write(self, batch: bytes) -> None:
        answer = self._client.perform_request("POST", self._path, headers=HEADERS, body=batch).body
        if answer["errors"]:
            reasons = [item["index"]["error"]["reason"] for item in answer["items"]]
            raise Refused(f"{len(reasons):,} records of a bulk request were rejected: {reasons[0]}")


@maps_exceptions(ApiError, TransportError)
class Writes:
    """Inserts documents before a trial, by the same bulk requests again and again; refuses writes in a trial; and has
    what a plan sets for the next index, which is removed with it."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client
        self.given: Mapping[str, str] = {}

    def refusal(self, given: Given) -> str | None:
        return None

    def apply(self, given: Given) -> None:
        self.given = given.get("elasticsearch", {})

    def revert(self) -> list[str]:
        self.given = {}
        return []

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
        while time.monotonic() < deadline:
            stats: Any = self._client.indices.stats(index=target, metric="merge")
            if not stats["_all"]["primaries"]["merges"]["current"]:
                return
            time.sleep(0.5)

    def refuse(self, target: str, why: str) -> None:
        self._client.indices.put_settings(index=target, settings={WRITE_BLOCK: True})

    def accept(self, target: str) -> None:
        self._client.indices.put_settings(index=target, settings={WRITE_BLOCK: None})

    def disk(self, target: str, small_disk: SmallDiskMaker) -> "AbstractContextManager[_Guard]":
        return nullcontext(_Guard(self._client, target))


@maps_exceptions(ApiError, TransportError)
class _Guard:
    """The block that Elasticsearch sets on every index of a node whose disk is past the flood stage; writes get HTTP
    429. Here it is set on the one index. Elasticsearch checks every 30 seconds, and removes it where it finds room."""

    def __init__(self, client: Elasticsearch, target: str) -> None:
        self._client = client
        self._target = target

    def fill(self) -> None:
        self._client.indices.put_settings(index=self._target, settings={FLOOD_BLOCK: True})

    def free(self) -> None:
        self._client.indices.put_settings(index=self._target, settings={FLOOD_BLOCK: None})
