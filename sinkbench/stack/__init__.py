"""Where the services are and how they are started, stopped and watched: one driver for each place to run.

`local` runs them as processes under supervisord. A driver is any object with the methods of `Stack`; whoever measures
knows no more of a place than that. (Only the standard library is imported here: `scripts/setup` runs
`sinkbench.stack.tools` before any package is installed.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Endpoints", "Say", "ServiceState", "Stack"]

Say = Callable[[str], None]
"""Takes one line for the user about what is going on."""


@dataclass(frozen=True)
class Endpoints:
    """How to reach each service from the controller.

    Attributes:
        kafka: bootstrap servers, host:port.
        connect: REST address of each worker by the worker's name ("connect-1").
        worker_ids: the worker's name by the id that Connect's REST gives it (host:port).
        elasticsearch: base address.
        elasticsearch_index: the name that the connector files write to; an alias of the trial's index.
        postgres: connection string, straight to PostgreSQL.
        pgbouncer_admin: connection string of PgBouncer's own console.
    """

    kafka: str
    connect: Mapping[str, str]
    worker_ids: Mapping[str, str]
    elasticsearch: str
    elasticsearch_index: str
    postgres: str
    pgbouncer_admin: str


@dataclass(frozen=True)
class ServiceState:
    """One service as it is now: `state` is running, stopped or dead; `detail` says more for a person."""

    name: str
    state: str
    pid: int | None
    detail: str


class Stack(Protocol):
    """A place where the services run."""

    name: str

    @property
    def endpoints(self) -> Endpoints:
        """How to reach each service."""
        ...

    @property
    def workers(self) -> int:
        """Number of Connect workers."""
        ...

    def up(self, say: Say) -> None:
        """Starts what is not running and returns when all of it is ready; a second call changes nothing.

        Raises:
            StackError: a service could not be started; the message holds the end of its log.
        """
        ...

    def down(self) -> None:
        """Stops everything, whatever state it is in."""
        ...

    def states(self) -> list[ServiceState]:
        """Every service, in starting order."""
        ...

    def kill(self, service: str) -> None:
        """Ends one service at once, as a power cut would."""
        ...

    def cpu_seconds(self) -> dict[str, float | None]:
        """CPU seconds (user and system) that each service has used since it started, by its name; workers by theirs.

        None for a service that cannot be seen.
        """
        ...

    def free_bytes(self) -> int | None:
        """Free space where the services keep their data, if that can be seen."""
        ...
