"""A plain client of Elasticsearch, for its limit."""

from __future__ import annotations

from collections.abc import Sequence

from elasticsearch import ApiError, TransportError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.elasticsearch.client import connect
from sinkbench.sinks.writing import Destination, Refused

ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
HEADERS = {"content-type": "application/x-ndjson", "accept": "application/json"}


@maps_exceptions(ApiError, TransportError)
class Bulk:
    """Elasticsearch's Bulk API; request bodies are made in advance."""

    def __init__(self, to: Destination) -> None:
        # A retry would hide that the sink did not take the batch.
        self._client = connect(to.endpoint, max_retries=0)
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

    def close(self) -> None:
        self._client.close()
