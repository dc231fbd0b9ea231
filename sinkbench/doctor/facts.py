"""What was seen, as plain values: what there is now, and what the cells of a plan would add to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sinkbench.sinks.jdbcurl import JdbcUrl
from sinkbench.sinks.state import SinkState, Target

__all__ = ["Area", "Connector", "Facts", "Machine", "Topic"]


class Area(StrEnum):
    """What can be looked at, or not."""

    CONNECT = "Connect"
    KAFKA = "Kafka"
    SINKS = "the sinks"
    DATABASE = "the database's connections"
    POOLER = "the pooler"
    CLUSTER = "the search cluster's nodes"
    MEMORY = "memory"
    DISK = "free disk space"


@dataclass(frozen=True)
class Connector:
    """A sink connector: one that is there, or one that a cell of a plan would make.

    Attributes:
        name: its own, or the cell's key.
        label: the same, or the pipeline's label in the plan: its configuration is the same in all cells.
        config: its configuration, with variables filled in where their values are known.
        tasks: that it is asked to have.
        planned: whether it would be a cell's.
        trials: whether it is a trial's that goes on.
        sink: the sink that it writes to, by its name; None if its configuration does not tell.
        state: RUNNING, PAUSED, STOPPED, FAILED ..., in Connect's words.
        placement: tasks on each worker, with 0 for a worker without; empty while they are dealt out.
        failed: tasks that have FAILED.
        cause: why, in one line.
        url: the database that it names by a JDBC URL.
        pooled: whether that is a pooler; None if it has no such URL.
        read_only: whether what it connects to takes no writes; None if that could not be tried.
        target: the index or table that it writes to.
    """

    name: str
    label: str
    config: Mapping[str, str]
    tasks: int
    planned: bool = False
    trials: bool = False
    sink: str | None = None
    state: str = "RUNNING"
    placement: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    cause: str | None = None
    url: JdbcUrl | None = None
    pooled: bool | None = None
    read_only: bool | None = None
    target: Target | None = None

    @property
    def runs(self) -> bool:
        """Whether it is there, and has tasks that work, or are about to."""
        return not self.planned and self.state not in ("PAUSED", "STOPPED")

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that it names."""
        return tuple(name.strip() for name in self.config.get("topics", "").split(",") if name.strip())


@dataclass(frozen=True)
class Topic:
    """A topic that a connector reads.

    Attributes:
        records: that each partition has taken so far.
    """

    name: str
    records: tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """The machine of the services, where it is seen. None is what is not.

    Attributes:
        available_bytes: memory that can be had without swapping.
        needed_bytes: what the stack takes when it is started; 0 if it runs, or that is not known.
        free_bytes: of the disk with the services' data.
        least_free_bytes: below which no race begins.
    """

    available_bytes: int | None = None
    needed_bytes: int = 0
    free_bytes: int | None = None
    least_free_bytes: int = 0


@dataclass(frozen=True)
class Facts:
    """One look.

    Attributes:
        workers: how many Connect workers there are.
        worker: the address of one of them.
        worker_curl: the beginning of a command that asks it: curl, with what it takes to be let in.
        shared: whether others use these clusters, too.
        plan: the plan's name; None without one.
        partitions, keys: of the plan's load; keys are None of your own records.
        refusals: why a race of the plan would not begin, a line each.
        connectors: those that are there, then those of the plan's cells.
        behind: brokers whose copy of a topic is not in sync, or that lead nothing since they are gone, by the topic.
        unseen: what could not be looked at, and why.
    """

    workers: int
    worker: str = "WORKER"
    worker_curl: str = "curl"
    shared: bool = False
    plan: str | None = None
    partitions: int | None = None
    keys: int | None = None
    refusals: tuple[str, ...] = ()
    connectors: tuple[Connector, ...] = ()
    topics: Mapping[str, Topic] = field(default_factory=dict)
    behind: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sinks: Mapping[str, SinkState] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)
    unseen: Mapping[Area, str] = field(default_factory=dict)

    @property
    def running(self) -> tuple[Connector, ...]:
        """The connectors that are there and work."""
        return tuple(each for each in self.connectors if each.runs)

    @property
    def planned(self) -> tuple[Connector, ...]:
        """Those of the plan's cells."""
        return tuple(each for each in self.connectors if each.planned)

    @property
    def in_question(self) -> tuple[Connector, ...]:
        """The connectors that are judged by their configuration, each once: a plan's, or those that are there."""
        chosen = self.planned if self.plan is not None else self.running
        return tuple({each.label: each for each in sorted(chosen, key=lambda each: each.tasks)}.values())
