"""What one look at a sink tells."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SinkReading"]


@dataclass(frozen=True)
class SinkReading:
    """One look at a sink while a trial runs; None is what this sink does not have, or does not let us see.

    Attributes:
        stored: records stored so far.
        backends: connections open at the database itself, but for sinkbench's own.
        pool_clients: connections that clients hold to the pooler before it.
        pool_servers: connections that the pooler holds to the database.
    """

    stored: int
    backends: int | None
    pool_clients: int | None = None
    pool_servers: int | None = None
