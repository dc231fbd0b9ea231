"""Makes Elasticsearch refuse records, for the faults `refuse` and `fill`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.services.failures import maps_exceptions
from sinkbench.stack.smalldisk import SmallDisk

# A write block still permits reading and deleting the index.
WRITE_BLOCK = "index.blocks.write"
FLOOD_BLOCK = "index.blocks.read_only_allow_delete"


@maps_exceptions(ApiError, TransportError)
class Refusing:
    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def refuse(self, target: str, why: str) -> None:
        self._client.indices.put_settings(index=target, settings={WRITE_BLOCK: True})

    def accept(self, target: str) -> None:
        self._client.indices.put_settings(index=target, settings={WRITE_BLOCK: None})


class DiskToFill:
    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def disk(
        self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]
    ) -> AbstractContextManager[_Guard]:
        return nullcontext(_Guard(self._client, target))


@maps_exceptions(ApiError, TransportError)
class _Guard:
    """The block that Elasticsearch sets on every index of a node whose disk is past the flood stage; writes get HTTP
    429. Here it is set on the one index. Elasticsearch checks every 30 seconds, and removes it where it finds room.
    """

    def __init__(self, client: Elasticsearch, target: str) -> None:
        self._client = client
        self._target = target

    def fill(self) -> None:
        self._client.indices.put_settings(index=self._target, settings={FLOOD_BLOCK: True})

    def free(self) -> None:
        self._client.indices.put_settings(index=self._target, settings={FLOOD_BLOCK: None})
