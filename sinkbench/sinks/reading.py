"""A sink's readings and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sinkbench.analysis.durability import Promise


@dataclass(frozen=True)
class SinkReading:
    """One reading of a sink during a trial; None is unknown. `backends` are connections to the database without
    sinkbench's. `signs` are further columns of the samples, for the sink's rules: counters end in `_total`, and one
    that was not read is absent.
    """

    stored: int
    backends: int | None
    signs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PoolReading:
    """A pooler's connections to clients and to the database, and `signs` as of a sink; None without a pooler."""

    clients: int | None = None
    servers: int | None = None
    signs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkBloat:
    """What changes leave in a sink; None is unknown. `dead_rows` are dead rows or deleted documents of the target now,
    `deadlocks` and `rollbacks` count in the whole sink and only grow, and `bytes` is as `Sink.disk_bytes`.
    """

    dead_rows: int | None
    deadlocks: int | None
    rollbacks: int | None
    bytes: int | None


@dataclass(frozen=True)
class SinkOthers:
    """Clients and records of others in a sink; None is what it does not show. `connections` are those open now, without
    sinkbench's own and a pooler's; `written` counts the records that each index or table has taken so far, by name.
    """

    connections: int | None
    written: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkPooling:
    """A pooler's settings; None is unknown. `size` is per pool, `prepared_statements` per database connection."""

    mode: str | None
    size: int | None
    prepared_statements: int | None


@dataclass(frozen=True)
class SinkSettings:
    """A sink's settings by their own names; None is unknown. `durability` concerns acknowledged records, and `promise`
    is what it amounts to; `tuning` is what else the speed depends on.
    """

    durability: Mapping[str, str | None]
    tuning: Mapping[str, str | None]
    promise: Promise | None = None
