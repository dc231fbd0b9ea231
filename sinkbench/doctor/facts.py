"""The doctor's facts as plain values: the present state, and what the cells of a plan would add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sinkbench.sinks.jdbcurl import JdbcUrl
from sinkbench.sinks.values import SinkState


class Area(StrEnum):
    """Areas that may be visible or not."""

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
    """A sink connector that exists, or that a cell of a plan would create.

    Attributes:
        label: `name`, or the pipeline's label in the plan, with the same configuration in all its cells.
        config: variables are filled in where their values are known.
        trials: whether it belongs to a running trial.
        state: RUNNING, PAUSED, STOPPED or FAILED, as Connect says.
        placement: number of tasks by worker; empty during a rebalance.
        failed: number of FAILED tasks; `cause` says why, in one line.
        pooled: whether `url` leads to a pooler; None without a URL.
        unsafe: why a crash loses records that its index or table has acknowledged, one line each.
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
    unsafe: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether it exists and has tasks that work or are about to."""
        return not self.planned and self.state not in ("PAUSED", "STOPPED")

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.config.get("topics", "").split(",") if name.strip())


@dataclass(frozen=True)
class Machine:
    """The services' machine; None is unknown. `available_bytes` is memory without swapping, and `needed_bytes` what
    starting the stack takes (0 if it runs). `free_bytes` is of the data disk; no race begins below `least_free_bytes`.
    """

    available_bytes: int | None = None
    needed_bytes: int = 0
    free_bytes: int | None = None
    least_free_bytes: int = 0


@dataclass(frozen=True)
class Facts:
    """All facts of one diagnosis.

    Attributes:
        worker: address of one Connect worker; `worker_curl` begins a command that queries it, with login.
        shared: whether others use these clusters too.
        keys: of the plan's load; None for your own records.
        refusals: why a race of the plan would not begin, one line each.
        connectors: those that exist, then those of the plan's cells.
        topics: the number of records that each partition has taken so far, of topics that connectors read.
        unseen: by area, why it could not be seen.
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
    topics: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sinks: Mapping[str, SinkState] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)
    unseen: Mapping[Area, str] = field(default_factory=dict)

    @property
    def running(self) -> tuple[Connector, ...]:
        return tuple(each for each in self.connectors if each.runs)

    @property
    def planned(self) -> tuple[Connector, ...]:
        return tuple(each for each in self.connectors if each.planned)

    @property
    def in_question(self) -> tuple[Connector, ...]:
        """The connectors whose configurations are judged, each with its most tasks: the plan's, or running ones."""
        chosen = self.planned if self.plan is not None else self.running
        return tuple({each.label: each for each in sorted(chosen, key=lambda each: each.tasks)}.values())
