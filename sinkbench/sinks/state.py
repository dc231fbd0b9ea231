"""What a sink tells of itself to `sinkbench doctor`: plain values, for any kind of sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sinkbench.analysis.replication import Standby
from sinkbench.stack import Endpoints

__all__ = ["Checkup", "DataNode", "Database", "Pooler", "SearchCluster", "SinkState", "Target"]


@dataclass(frozen=True)
class Database:
    """A database server with a limited number of connections. None is what it does not let us see.

    Attributes:
        most_connections: that it takes in all, such as PostgreSQL's `max_connections`.
        reserved: of these, those that connectors do not get.
        used: that are open now, but for sinkbench's own.
        by_jdbc: of these, those that a JDBC driver has opened straight, not through a pooler.
        waited_for: servers that follow this one, and that a commit waits for.
        waits_for: the setting that names the standbys that a commit waits for; empty if it waits for none.
        standbys: the servers that follow this one.
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
    """A pooler before a database.

    Attributes:
        address: host:port by which clients reach it.
        mode: session, transaction or statement.
        pool: connections to the database at most.
        most_clients: connections of clients that it takes.
        clients: that are open now.
        servers: connections to the database that are open now.
        prepared: whether statements that a client has prepared follow it from one connection to the next.
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
    """A node of a search cluster that holds data; None is what it does not tell.

    Attributes:
        disk_bytes, free_bytes: of the disk that it keeps its data on.
    """

    name: str
    disk_bytes: int | None
    free_bytes: int | None


@dataclass(frozen=True)
class SearchCluster:
    """A cluster of such nodes.

    Attributes:
        address: where it is asked.
        watermarks: the room that each stage of a filling disk begins at, low, high and flood, as the cluster writes it:
            a share that is used, or bytes that are free; empty if it does not look at disks.
        status: green, yellow or red; None if it does not tell.
        unassigned, moving: shards, or their copies, of all of its indices, that are on no node, or on their way.
        curl: the beginning of a command that asks it, with what it takes to be let in, but no secret.
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
    """An index or a table: one that is there, or one that a file would make. None is what is not known, or has none.

    Attributes:
        name: of the index or table, or of the file.
        index: the index's own name, by which it is changed; None of a file, or a table.
        shards: of an index, without their copies.
        replicas: copies of each shard in addition to the first.
        unsafe: what makes records that it acknowledges be lost in a crash, each for a person.
    """

    name: str
    index: str | None = None
    shards: int | None = None
    replicas: int | None = None
    unsafe: tuple[str, ...] = ()


@dataclass(frozen=True)
class SinkState:
    """The state of a sink; None is what it has not, or does not let us see.

    Attributes:
        target: what a connector that is posted manually writes to.
        unsafe: what makes records that the server acknowledges be lost in a crash, each for a person.
        unseen: what could not be seen, and why, by the name of the field.
    """

    database: Database | None = None
    pooler: Pooler | None = None
    cluster: SearchCluster | None = None
    target: Target | None = None
    unsafe: tuple[str, ...] = ()
    unseen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkup:
    """How to look at one kind of sink.

    Attributes:
        look: asks the sink of a stack that has it. Raises ServiceError if it does not answer.
        target: what an index or table that a file makes would be like. Raises TargetError if the file cannot be read.
        file: that file, in the checkout, where a plan names none.
        read_only: whether what a connector's configuration connects to takes no writes; None if that cannot be tried.
    """

    look: Callable[[Endpoints], SinkState]
    target: Callable[[Path], Target]
    file: str
    read_only: Callable[[Endpoints, Mapping[str, str]], bool | None] | None = None
