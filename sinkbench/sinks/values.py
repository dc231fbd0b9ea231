"""A sink's readings, settings, arrival times and state, and what writes to it: plain values of any kind of sink."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sinkbench.analysis.replication import Promise
from sinkbench.errors import ServiceError
from sinkbench.stack import Endpoint, Endpoints

Numbers = npt.NDArray[np.float64]


class Created(NamedTuple):
    """A created target: lower-case `columns` or None, and `notes` for readers, the same for targets created alike."""

    columns: frozenset[str] | None = None
    notes: tuple[str, ...] = ()


class Proposal(NamedTuple):
    """A proposed file: the ending of its name, such as ".sql", its text, why members are left out, and more notes."""

    ending: str
    text: str
    left_out: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SinkReading:
    """One reading of a sink during a trial; None is unknown. `backends` are connections to the database without
    sinkbench's. `signs` are further columns of the samples, for the sink's rules, if read; counters end in `_total`."""

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
    `deadlocks` and `rollbacks` count in the whole sink and only grow, and `bytes` is as `Sink.disk_bytes`."""

    dead_rows: int | None
    deadlocks: int | None
    rollbacks: int | None
    bytes: int | None


@dataclass(frozen=True)
class SinkOthers:
    """Clients and records of others in a sink; None is what it does not show. `connections` are those open now, without
    sinkbench's own and a pooler's; `written` counts the records that each index or table has taken so far, by name."""

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
    is what it amounts to; `tuning` is what else the speed depends on."""

    durability: Mapping[str, str | None]
    tuning: Mapping[str, str | None]
    promise: Promise | None = None


@dataclass(frozen=True)
class Arrivals:
    """One value per record, in microseconds since the epoch; NaN is unknown. `resolution_us` is the uncertainty of
    `stored_us` for 95 % of the records. `searchable_us`, when a search would find them, is None if it is the same."""

    due_us: Numbers
    stored_us: Numbers
    resolution_us: float
    searchable_us: Numbers | None = None
    searchable_resolution_us: float | None = None


class ArrivalWatch(AbstractContextManager["ArrivalWatch"], Protocol):
    """Records, between entering and leaving, what the sink itself does not keep."""

    def read(self, run: str, one_in: int) -> Arrivals:
        """The records of `run` whose `bench.seq` is a multiple of `one_in`, after leaving and settling."""


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


@dataclass(frozen=True)
class Database:
    """Connections of a database; None is unknown. `used` excludes sinkbench's; `by_jdbc` are direct ones of drivers."""

    most_connections: int
    reserved: int
    used: int
    by_jdbc: int | None


@dataclass(frozen=True)
class Pooler:
    """A pooler; `address` is host:port for clients, of which it has `clients` and accepts `most_clients`."""

    address: str
    settings: SinkPooling
    most_clients: int
    clients: int


@dataclass(frozen=True)
class DataNode:
    """A data node of a search cluster, and its data disk; None is unknown."""

    name: str
    disk_bytes: int | None
    free_bytes: int | None


@dataclass(frozen=True)
class SearchCluster:
    """A search cluster. `watermarks` are low, high and flood as it writes them, empty if it ignores disks."""

    nodes: tuple[DataNode, ...]
    watermarks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkState:
    """The state of a sink; None is what it does not have or show. `unsafe` says why a crash loses acknowledged records,
    `target` the same of what manually created connectors write to, and `unseen` why a field could not be read."""

    database: Database | None = None
    pooler: Pooler | None = None
    cluster: SearchCluster | None = None
    unsafe: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    unseen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkup:
    """How to check a sink. `look` raises ServiceError without an answer. `target` says why a crash loses acknowledged
    records of what a file creates, and raises TargetError if it cannot be read; `file` is the default for a plan."""

    look: Callable[[Endpoints], SinkState]
    target: Callable[[Path], tuple[str, ...]]
    file: str
