"""What a sink tells of itself to whoever looks before a race: plain values, for any kind of sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sinkbench.analysis.replication import Standby
from sinkbench.stack import Endpoints

__all__ = ["Checkup", "DataNode", "Database", "Pooler", "SearchCluster", "SinkState", "Target"]


@dataclass(frozen=True)
class Database:
    """A database server that takes so many connections and no more. None is what it does not let us see.

    Attributes:
        most_connections: that it takes in all, such as PostgreSQL's `max_connections`.
        reserved: of these, those that connectors do not get.
        used: that are open now, but for sinkbench's own.
        by_jdbc: of these, those that a JDBC driver has opened straight, not through a pooler.
        oldest_jdbc_seconds: for how long the oldest of those by JDBC is open.
        replicas: servers that follow this one.
        waited_for: of these, those that a commit waits for.
        read_only: whether it takes no writes, since it follows another server or is told to.
        waits_for: the setting that names the standbys that a commit waits for; empty if it waits for none.
        standbys: the servers that follow this one.
    """

    most_connections: int
    reserved: int
    used: int
    by_jdbc: int | None
    oldest_jdbc_seconds: float | None
    replicas: int
    waited_for: int
    read_only: bool
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
        waiting: of these, those that wait for a connection to the database.
        servers: connections to the database that are open now.
        waits_seconds: how long the first of them has waited.
        prepared: whether statements that a client has prepared follow it from one connection to the next.
    """

    address: str
    mode: str
    pool: int
    most_clients: int
    clients: int
    waiting: int
    servers: int
    waits_seconds: float
    prepared: bool


@dataclass(frozen=True)
class DataNode:
    """A node of a search cluster that holds data; None is what it does not tell.

    Attributes:
        processors: cores that it uses.
        files: that it may have open.
        disk_bytes, free_bytes: of the disk that it keeps its data on.
    """

    name: str
    processors: int | None
    files: int | None
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
        template_replicas: copies that its templates give to an index that does not ask for any; None if they give none.
        curl: the beginning of a command that asks it, with what it takes to be let in, but no secret.
    """

    address: str
    nodes: tuple[DataNode, ...]
    watermarks: Mapping[str, str] = field(default_factory=dict)
    status: str | None = None
    unassigned: int = 0
    moving: int = 0
    template_replicas: int | None = None
    curl: str = "curl"


@dataclass(frozen=True)
class Target:
    """An index or a table: one that is there, or one that a file would make. None is what is not known, or has none.

    Attributes:
        name: of the index or table, or of the file.
        index: the index's own name, by which it is changed; None of a file, or a table.
        shards: of an index, without their copies.
        replicas: copies of each shard beside the first.
        refresh_seconds: time between two refreshes that somebody has set; None: the default, which rests while nobody
            searches. Below 0: never.
        unassigned: shards, or their copies, that are on no node now.
        unsafe: what makes records that it acknowledges be lost in a crash, each for a person.
    """

    name: str
    index: str | None = None
    shards: int | None = None
    replicas: int | None = None
    refresh_seconds: float | None = None
    unassigned: int | None = None
    unsafe: tuple[str, ...] = ()


@dataclass(frozen=True)
class SinkState:
    """One look at a sink; None is what it has not, or does not let us see.

    Attributes:
        target: what a connector that is posted by hand writes to.
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
        change: gives a setting of an index another value, and returns the one before: is given the endpoints, the
            index, the setting's name and its value; None is what the setting is unless somebody sets it.
        certificates: until when that of each of the sink's servers is valid, by the name of the server, also where
            `look` trusts none of them; those without TLS are absent.
    """

    look: Callable[[Endpoints], SinkState]
    target: Callable[[Path], Target]
    file: str
    read_only: Callable[[Endpoints, Mapping[str, str]], bool | None] | None = None
    change: Callable[[Endpoints, str, str, str | None], str | None] | None = None
    certificates: Callable[[Endpoints], Mapping[str, datetime]] | None = None
