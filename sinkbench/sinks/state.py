"""A sink's state for `sinkbench doctor`: plain values, for any kind of sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sinkbench.analysis.replication import Standby
from sinkbench.stack import Endpoints


@dataclass(frozen=True)
class Database:
    """A database server; None is what it does not show. `reserved` connections are not for connectors; `used` excludes
    sinkbench's own; `by_jdbc` are direct ones of JDBC drivers. A commit waits for `waited_for` standbys, named by the
    setting `waits_for`.
    """

    most_connections: int
    reserved: int
    used: int
    by_jdbc: int | None
    waited_for: int
    waits_for: str = ""
    standbys: tuple[Standby, ...] = ()


@dataclass(frozen=True)
class Pooler:
    """A pooler; `address` is host:port for clients, `mode` session, transaction or statement. `pool` and `most_clients`
    limit `servers` and `clients`. `prepared` says whether clients' prepared statements work across connections.
    """

    address: str
    mode: str
    pool: int
    most_clients: int
    clients: int
    servers: int
    prepared: bool


@dataclass(frozen=True)
class DataNode:
    """A data node of a search cluster, with the size and free space of its data disk; None is unknown."""

    name: str
    disk_bytes: int | None
    free_bytes: int | None


@dataclass(frozen=True)
class SearchCluster:
    """A search cluster. `watermarks` are low, high and flood of disks as the cluster writes them, empty if it ignores
    disks; `unassigned` and `moving` count shard copies. `curl` begins a command that queries it, without secrets.
    """

    address: str
    nodes: tuple[DataNode, ...]
    watermarks: Mapping[str, str] = field(default_factory=dict)
    status: str | None = None
    unassigned: int = 0
    moving: int = 0
    curl: str = "curl"


@dataclass(frozen=True)
class Target:
    """An index or a table that exists, or that a file would create; None is unknown or absent. `index` is the real
    name, None for a file or table. `shards` are primaries. `unsafe` says why a crash loses acknowledged records.
    """

    name: str
    index: str | None = None
    shards: int | None = None
    replicas: int | None = None
    unsafe: tuple[str, ...] = ()


@dataclass(frozen=True)
class SinkState:
    """The state of a sink; None is what it does not have or show. `target` is what manually created connectors write
    to, `unsafe` says why a crash loses acknowledged records, and `unseen` why a field could not be read.
    """

    database: Database | None = None
    pooler: Pooler | None = None
    cluster: SearchCluster | None = None
    target: Target | None = None
    unsafe: tuple[str, ...] = ()
    unseen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkup:
    """How to check a sink: `look` raises ServiceError without an answer, and `target` TargetError if the file cannot be
    read. `file` is the default for a plan. `read_only` of a connector's database is None if it cannot be tried.
    """

    look: Callable[[Endpoints], SinkState]
    target: Callable[[Path], Target]
    file: str
    read_only: Callable[[Endpoints, Mapping[str, str]], bool | None] | None = None
