"""Elasticsearch's guard before its disk is full, called on purpose: for the fault `fill`."""

from __future__ import annotations

from elasticsearch import ApiError, Elasticsearch, TransportError
from sinkbench.services.failures import maps_exceptions

__all__ = ["Guard"]

BLOCK = "index.blocks.read_only_allow_delete"


@maps_exceptions(ApiError, TransportError)
class Guard:
    """The block that Elasticsearch puts on every index of a node whose disk is fuller than its flood stage.

    Writes get HTTP 429. It lies on the index alone, and goes with it. Elasticsearch looks every 30 seconds, and takes
    it back where it finds room.
    """

    def __init__(self, client: Elasticsearch, target: str) -> None:
        """`target` is the index."""
        self._client = client
        self._target = target

    def fill(self) -> None:
        """Puts the block on the index."""
        self._client.indices.put_settings(index=self._target, settings={BLOCK: True})

    def free(self) -> None:
        """Takes it away."""
        self._client.indices.put_settings(index=self._target, settings={BLOCK: None})
