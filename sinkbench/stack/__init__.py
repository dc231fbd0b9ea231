"""Where the services are and how they are started, stopped and watched: one driver for each place to run.

`local` runs them as processes under supervisord, `compose` as containers; `external` finds them in clusters that are
there already. A driver is any object with the methods of `Stack`; whoever measures knows no more of a place than that.
(Only the standard library is imported here: `scripts/setup` runs `sinkbench.stack.tools` before any package is
installed.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

__all__ = ["Access", "Allowance", "Endpoints", "Say", "ServiceState", "Stack", "own_addresses"]

Say = Callable[[str], None]
"""Takes one line for the user about what is going on."""


@dataclass(frozen=True)
class Access:
    """What an HTTP service wants before it answers: nothing, a user and a password, or a key of its own.

    Attributes:
        user, password: for HTTP's basic authentication.
        api_key: Elasticsearch's, encoded as it prints it.
        ca: file with the certificates (PEM) that sign the service's own; None for those that the system trusts.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca: Path | None = None


@dataclass(frozen=True)
class Endpoints:
    """How to reach each service from the controller. What holds a secret is left out where an object is printed.

    Attributes:
        kafka: bootstrap servers, host:port.
        connect: REST address of each worker by the worker's name ("connect-1").
        worker_ids: the worker's name by the id that Connect's REST gives it (host:port).
        elasticsearch: base address; None where there is none.
        elasticsearch_index: the name that the connector files write to; an alias of the trial's index.
        postgres: connection string, straight to PostgreSQL; None where there is none.
        pgbouncer_admin: connection string of PgBouncer's own console; None where there is no PgBouncer.
        kafka_settings: further settings of Kafka's clients (librdkafka's names), such as those for SASL and TLS.
        connect_access, elasticsearch_access: what these want before they answer.
        connect_variables: what ${env:NAME} in a connector file stands for, where the workers do not know it themselves.
        connect_metrics: address of each worker's metrics (Prometheus text) by the worker's name, if they are shown.
        loadgens: address of each load generator that runs as a service; where there is none, the controller starts one.
        loadgen_kafka: bootstrap servers as the load generators reach them; None if that is `kafka`, too.
        shared: whether others use these clusters, so that nothing may be touched but what a trial surely has made.
        stack_file: the file that describes them, for messages; None where sinkbench itself knows them.
    """

    kafka: str
    connect: Mapping[str, str]
    worker_ids: Mapping[str, str]
    elasticsearch: str | None
    elasticsearch_index: str
    postgres: str | None = field(repr=False)
    pgbouncer_admin: str | None = field(repr=False)
    kafka_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_access: Access = Access()
    elasticsearch_access: Access = Access()
    connect_variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_metrics: Mapping[str, str] = field(default_factory=dict)
    loadgens: Mapping[str, str] = field(default_factory=dict)
    loadgen_kafka: str | None = None
    shared: bool = False
    stack_file: Path | None = None


def own_addresses(endpoints: Endpoints, database: str) -> dict[str, str]:
    """Where each service of a stack of our own is reached, for a person; PgBouncer's is that of `database`."""
    return {
        "kafka": endpoints.kafka,
        "elasticsearch": str(endpoints.elasticsearch),
        "postgres": str(endpoints.postgres),
        "pgbouncer": str(endpoints.pgbouncer_admin).replace("dbname=pgbouncer", f"dbname={database}"),
        **endpoints.connect,
        **endpoints.loadgens,
    }


@dataclass(frozen=True)
class ServiceState:
    """One service as it is now: `state` is running, stopped or dead; `detail` says more for a person."""

    name: str
    state: str
    pid: int | None
    detail: str


@dataclass(frozen=True)
class Allowance:
    """What a process, or a container, may use of its machine at most; None for what has no limit."""

    cpus: float | None = None
    memory_bytes: int | None = None


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

    @property
    def lock_file(self) -> Path:
        """The file that whoever races on this stack holds a lock on."""
        ...

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """What cannot be measured here, each for a person; such values are None."""
        ...

    def running(self) -> bool:
        """Whether the stack was started and not stopped since (single services may be dead)."""
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

    def addresses(self) -> dict[str, str]:
        """Where each service of `states` is reached, for a person."""
        ...

    def kill(self, service: str) -> None:
        """Ends one service at once, as a power cut would."""
        ...

    def stop(self, service: str) -> None:
        """Asks one service to end, and waits until it has."""
        ...

    def start(self, service: str) -> None:
        """Starts one service again, and waits until it is ready."""
        ...

    def cpu_seconds(self) -> dict[str, float | None]:
        """CPU seconds (user and system) that each service has used since it started, by its name; workers by theirs.

        None for a service that cannot be seen. One that could be seen before and no longer can has died.
        """
        ...

    @property
    def cpu_limits(self) -> dict[str, float]:
        """How many cores a service, or each worker, may use at most, by the service's name; absent: no limit."""
        ...

    def machine_cpu(self) -> tuple[float, int] | None:
        """CPU seconds that the machine of all services has spent so far, and its cores; None if that cannot be seen."""
        ...

    def troubles(self) -> dict[str, str]:
        """What is wrong now with services that run all the same, by their names: a failing health check, say."""
        ...

    def free_bytes(self) -> int | None:
        """Free space where the services keep their data, if that can be seen."""
        ...

    @property
    def data_path(self) -> Path | None:
        """A path on the disk where the services keep their data, if that can be seen."""
        ...

    def allowances(self) -> dict[str, Allowance]:
        """What the containers of each service may use, by the service's name; empty where there are no containers."""
        ...

    def command_lines(self) -> dict[str, list[str]]:
        """The words of the command line of each service that runs, by its name; of those that can be seen."""
        ...

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        """The command that prints the last lines of a service's log. Raises StackError for one that there is not."""
        ...
