"""Elasticsearch that takes no records, on purpose: for the faults `refuse` and `fill`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.services.failures import maps_exceptions
from sinkbench.stack.smalldisk import SmallDisk

__all__ = ["DiskToFill", "Refusing"]

# A block of writes leaves the index to be read and deleted.
WRITE_BLOCK = "index.blocks.write"
FLOOD_BLOCK = "index.blocks.read_only_allow_delete"


@maps_exceptions(ApiError, TransportError)
class Refusing:
    """Blocks writes to an index."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def refuse(self, target: str, why: str) -> None:
        self._client.indices.put_settings(index=target, settings={WRITE_BLOCK: True})

    def accept(self, target: str) -> None:
        self._client.indices.put_settings(index=target, settings={WRITE_BLOCK: None})


class DiskToFill:
    """The guard before a node's disk is full."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client

    def disk(
        self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]
    ) -> AbstractContextManager[_Guard]:
        return nullcontext(_Guard(self._client, target))


@maps_exceptions(ApiError, TransportError)
class _Guard:
    """The block that Elasticsearch puts on every index of a node whose disk is fuller than its flood stage.

    Writes get HTTP 429. It lies on the index alone, and goes with it. Elasticsearch looks every 30 seconds, and takes
    it back where it finds room.
    """

    def __init__(self, client: Elasticsearch, target: str) -> None:
        self._client = client
        self._target = target

    def fill(self) -> None:
        self._client.indices.put_settings(index=self._target, settings={FLOOD_BLOCK: True})

    def free(self) -> None:
        self._client.indices.put_settings(index=self._target, settings={FLOOD_BLOCK: None})
