"""What one look at a sink tells, and how it is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sinkbench.analysis.durability import Promise

__all__ = ["SinkBloat", "SinkOthers", "SinkPooling", "SinkReading", "SinkSettings"]


@dataclass(frozen=True)
class SinkReading:
    """One look at a sink while a trial runs; None is what this sink does not have, or does not let us see.

    Attributes:
        stored: records stored so far.
        backends: connections open at the database itself, but for sinkbench's own.
        pool_clients: connections that clients hold to the pooler before it.
        pool_servers: connections that the pooler holds to the database.
        signs: further readings, each a column of the samples, for what the sink's own rules look at; what
            only ever grows ends in `_total`. One that was not read this time is absent.
    """

    stored: int
    backends: int | None
    pool_clients: int | None = None
    pool_servers: int | None = None
    signs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkBloat:
    """What changes leave in a sink; None is what it does not tell.

    Attributes:
        dead_rows: rows that are dead, or documents that are deleted, in the index or table now.
        deadlocks, rollbacks: of the whole sink so far; they only grow.
        bytes: of the index or table, as `Sink.disk_bytes`.
    """

    dead_rows: int | None
    deadlocks: int | None
    rollbacks: int | None
    bytes: int | None


@dataclass(frozen=True)
class SinkOthers:
    """What is in a sink that is none of sinkbench's own doing; None is what it does not let us see.

    Attributes:
        connections: that are open now, but for sinkbench's own and those that a pooler keeps.
        written: records that each index or table has taken so far, by its name.
    """

    connections: int | None
    written: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkPooling:
    """How the pooler before a sink is set; None is what it does not tell.

    Attributes:
        mode: when it takes a connection back from a client, by its own word.
        size: how many connections to the database a pool may hold.
        prepared_statements: how many statements it keeps prepared for its clients on each connection.
    """

    mode: str | None
    size: int | None
    prepared_statements: int | None


@dataclass(frozen=True)
class SinkSettings:
    """How a sink is set, by its own names; None for what it does not tell us.

    Attributes:
        durability: what it promises of a record that it says is stored.
        tuning: what else its speed depends on.
        promise: what `durability` comes to; None if it is not known.
    """

    durability: Mapping[str, str | None]
    tuning: Mapping[str, str | None]
    promise: Promise | None = None
