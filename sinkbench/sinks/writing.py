"""What a plain client of a sink is told, and what it can do: sinkbench measures the limit of the sink with such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sinkbench.errors import ServiceError
from sinkbench.stack import Endpoint

__all__ = ["Destination", "Refused", "Writer"]


class Refused(ServiceError):
    """The sink answered, but did not store every record of a batch; the text is its reason."""


@dataclass(frozen=True)
class Destination:
    """Where a client writes, and how: it goes to another process, pickled, never to a command line.

    Attributes:
        sink: its name.
        way: one of its `SinkKind.writers`.
        target: the index or table.
        endpoint: where the sink is.
    """

    sink: str
    way: str
    target: str
    endpoint: Endpoint


class Writer(Protocol):
    """One connection to a sink, which writes in one way, batches made before the clock starts."""

    def batch(self, records: Sequence[bytes]) -> Any:
        """The records (JSON in UTF-8, which may go over several lines) as `write` sends them.

        Takes time that is not to be measured.
        """

    def write(self, batch: Any) -> None:
        """Stores a batch; every record is durable when this returns.

        Raises:
            Refused: the sink did not store every record.
            ServiceError: it does not answer.
        """

    def close(self) -> None:
        """Closes the connection."""
