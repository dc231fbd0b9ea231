"""A plain client of a sink, by which sinkbench measures the sink's limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sinkbench.errors import ServiceError
from sinkbench.stack import Endpoint


class Refused(ServiceError):
    """The sink answered, but did not store every record of a batch; the text is its reason."""


@dataclass(frozen=True)
class Destination:
    """Where and how a client writes. It goes to another process by pickle, never on a command line: it has secrets."""

    sink: str
    way: str
    target: str
    endpoint: Endpoint


class Writer(Protocol):
    """One connection to a sink, which writes in one way."""

    def batch(self, records: Sequence[bytes]) -> Any:
        """Encodes records (JSON in UTF-8, possibly on several lines) for `write`. This time is not measured."""

    def write(self, batch: Any) -> None:
        """Stores a batch durably. Raises Refused if a record was not stored, and ServiceError without an answer."""

    def close(self) -> None:
        """Closes the connection."""
