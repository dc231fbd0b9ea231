"""Where the services run: a driver for each place, with the methods of `Stack`.

`local` runs processes under supervisord, `compose` containers; `external` uses clusters that exist already. This module
imports the standard library only: `scripts/setup` runs `sinkbench.stack.tools` before any package is installed.
Trials and results are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sinkbench.errors import StackError
from sinkbench.services.access import Access

if TYPE_CHECKING:
    from sinkbench.services.toxiproxy import Toxiproxy
    from sinkbench.stack.smalldisk import SmallDisk
    from sinkbench.topology import Topology

__all__ = [
    "Allowance",
    "Endpoint",
    "Endpoints",
    "MachineCpu",
    "ProxyTarget",
    "Say",
    "ServiceState",
    "Stack",
]

Say = Callable[[str], None]
"""Shows the user a line about progress."""


@dataclass(frozen=True)
class Endpoint:
    """How to reach one service of a sink.

    Attributes:
        address: its base address, or a connection string, as its clients take it.
        shown: the same for a person, where `address` holds a secret; "" where it does not.
        access: what it wants before it answers, if it is asked by HTTP.
        options: what else its clients must know, such as the name that connectors write to.
        nodes: each of its nodes by name, where it has several that can be asked; the first one's address is `address`.
    """

    address: str = field(repr=False)
    shown: str = ""
    access: Access = field(default_factory=Access)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    nodes: Mapping[str, Endpoint] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Endpoints:
    """How to reach each service from the controller. What holds a secret is left out where an object is printed.

    Attributes:
        kafka: bootstrap servers, host:port, separated by commas.
        brokers: address of each broker by its node's name, in the order of their ids from 1, where there are several.
        replication: how many replicas a topic's partitions have, if nobody says.
        connect: REST address of each worker by the worker's name ("connect-1").
        worker_ids: the worker's name by the id that Connect's REST gives it (host:port).
        sinks: each service of the sinks by its name: "postgres", and "pgbouncer" before it. Absent: there is none.
        kafka_settings: further settings of Kafka's clients (librdkafka's names), such as those for SASL and TLS.
        connect_access: what the workers want before they answer.
        connect_variables: what ${env:NAME} in a connector file stands for, where the workers do not know it themselves.
        connect_metrics: address of each worker's metrics (Prometheus text) by the worker's name, if they are shown.
        loadgens: address of each load generator that runs as a service; where there is none, the controller starts one.
        loadgen_access: what these want before they answer.
        loadgen_kafka: bootstrap servers as the load generators reach them; None if that is `kafka`, too.
        shared: whether others use these clusters, so that nothing may be touched but what a trial surely has made.
        stack_file: the file that describes them, for messages; None where sinkbench itself knows them.
    """

    kafka: str
    connect: Mapping[str, str]
    worker_ids: Mapping[str, str]
    sinks: Mapping[str, Endpoint] = field(default_factory=dict)
    brokers: Mapping[str, str] = field(default_factory=dict)
    replication: int = 1
    kafka_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_access: Access = field(default_factory=Access)
    connect_variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_metrics: Mapping[str, str] = field(default_factory=dict)
    loadgens: Mapping[str, str] = field(default_factory=dict)
    loadgen_access: Access = field(default_factory=Access)
    loadgen_kafka: str | None = None
    shared: bool = False
    stack_file: Path | None = None


@dataclass(frozen=True)
class ProxyTarget:
    """The way into a service of a sink, before which a proxy can stand.

    Attributes:
        host, port: its address, for a process of this machine.
        variables: what ${env:NAME} in connector files holds of it, by the name: a text with {host} or {port} in it.
    """

    host: str
    port: int
    variables: Mapping[str, str]

    def at(self, host: str, port: int) -> dict[str, str]:
        """The values of the variables for another address."""
        return {name: text.format(host=host, port=port) for name, text in self.variables.items()}


@dataclass(frozen=True)
class ServiceState:
    """A service now: `state` is running, stopped or dead, `detail` explains it to a person.

    `exit_code` is that of its process, once it has ended by itself; None where that is not known.
    """

    name: str
    state: str
    pid: int | None
    detail: str
    exit_code: int | None = None


@dataclass(frozen=True)
class Allowance:
    """The most that a process or container may use of its machine; None for no limit."""

    cpus: float | None = None
    memory_bytes: int | None = None


class MachineCpu(NamedTuple):
    """What a machine's cores have done so far.

    Attributes:
        busy_seconds: CPU seconds in which they were busy, or stolen.
        stolen_seconds: the part of these that a hypervisor gave to other machines.
        cores: how many there are.
    """

    busy_seconds: float
    stolen_seconds: float
    cores: int


class Stack(Protocol):
    """A place where the services run. A driver inherits the answer of what it cannot see, or does not have."""

    name: str

    @property
    def endpoints(self) -> Endpoints:
        """How to reach each service."""

    @property
    def workers(self) -> int:
        """Number of Connect workers."""

    @property
    def layout(self) -> Topology | None:
        """Which nodes it has; None where somebody else says so."""
        return None

    @property
    def lock_file(self) -> Path:
        """The file that a race on this stack locks."""

    @property
    def own_container(self) -> str | None:
        """The container of the stack that this process is in; None outside."""
        return None

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """What cannot be measured on this stack, each for a person; such values are None."""
        return ()

    def running(self) -> bool:
        """Whether the stack was started and not stopped since; single services may be dead."""

    def start_id(self) -> str | None:
        """What tells this start of the stack from every other; None if it is down, or somebody else starts it."""
        return None

    def up(self, say: Say) -> None:
        """Starts what is not running and waits until everything is ready; a second call changes nothing.

        Raises StackError, with the end of its log, if a service does not start.
        """

    def down(self) -> None:
        """Stops everything, whatever state it is in."""

    def states(self) -> list[ServiceState]:
        """Every service, in starting order."""

    def addresses(self) -> dict[str, str]:
        """The address of each service of `states`, for a person."""
        endpoints = self.endpoints
        sinks = {
            node: each
            for name, endpoint in endpoints.sinks.items()
            for node, each in (endpoint.nodes or {name: endpoint}).items()
        }
        return {
            **(endpoints.brokers or {"kafka": endpoints.kafka}),
            **{name: each.shown or each.address for name, each in sinks.items()},
            **endpoints.connect,
            **endpoints.loadgens,
        }

    @property
    def breakable(self) -> bool:
        """Whether single services may be killed, stopped and frozen here."""
        return False

    def kill(self, service: str) -> None:
        """Kills one service with SIGKILL."""

    def stop(self, service: str) -> None:
        """Stops one service and waits for its end."""

    def start(self, service: str) -> None:
        """Starts one service again and waits until it is ready."""

    def freeze(self, service: str) -> None:
        """Stops all processes of one service where they are (SIGSTOP): its connections stay, and nothing answers.

        What is frozen when its controller is killed goes on with the next `up`, or ends with `down`.
        """

    def thaw(self, service: str) -> None:
        """Lets a frozen service go on and waits until it is ready."""

    @property
    def separable(self) -> bool:
        """Whether a single service can lose its network here."""
        return False

    def isolate(self, service: str) -> None:
        """Takes the network from one service: nobody reaches it, and it reaches nobody.

        What has none when its controller is killed gets it back with the next `up`.
        """
        raise StackError(f"stack {self.name}: {service} has no network of its own that could be taken from it")

    def rejoin(self, service: str) -> None:
        """Gives an isolated service its network back and waits until it is ready."""
        return

    def check_promotion(self) -> None:
        """Makes sure, without any service, that a replica of PostgreSQL can become the primary here.

        Raises StackError if not: what is missing.
        """
        raise StackError(f"stack {self.name} cannot promote a replica; only the stack local can")

    def promote(self) -> tuple[str, int]:
        """Kills PostgreSQL's primary with SIGKILL, makes a replica the primary, and tells the pooler before it.

        What was killed never starts as a primary again, but as a replica of the new one. Raises StackError.

        Returns:
            Host and port of the new primary.
        """
        raise StackError(f"stack {self.name} cannot promote a replica")

    def demote(self) -> None:
        """Starts what `promote` has killed, as a replica of the new primary, and waits until it is in sync."""
        raise StackError(f"stack {self.name} cannot promote a replica")

    def restore_roles(self) -> None:
        """Makes the first node the primary again, and all others its replicas; nothing if it is so.

        `up` does the same, for a controller that was killed meanwhile. Raises StackError.
        """
        return

    @property
    def proxy_targets(self) -> Mapping[str, ProxyTarget]:
        """The way into each service of the sinks, if a proxy of this process can stand before it."""
        return {}

    def check_proxy(self) -> None:
        """Makes sure, without any service, that such a proxy can be had. Raises StackError if not: what is missing.

        It is asked only where there are proxy_targets.
        """
        return

    def prepare_proxy(self, say: Say) -> None:
        """Builds the proxy, if that was not done before. Raises StackError if it cannot be built."""
        return

    def proxy(self) -> AbstractContextManager[Toxiproxy]:
        """Runs it, as long as the context lasts, and not longer than this process. Raises StackError."""
        raise StackError(f"stack {self.name}: no proxy can stand between workers and sinks")

    def check_small_disk(self) -> None:
        """Makes sure, without any service, that `small_disk` can be had. Raises StackError if not: what is missing."""
        raise StackError(f"stack {self.name} has no small disk for a trial; only the stack local does")

    def small_disk(self, size_bytes: int) -> AbstractContextManager[SmallDisk]:
        """A disk of that size for the sinks' services, as long as the context lasts. Raises StackError.

        What a killed controller has left is used again, or taken away by `down`.
        """
        raise StackError(f"stack {self.name} has no small disk for a trial")

    def cpu_seconds(self) -> dict[str, float | None]:
        """CPU seconds (user and system) of each service and worker since its start; None if not visible, or dead."""

    def jvm_cpu_seconds(self) -> dict[str, dict[str, float]]:
        """CPU seconds that each JVM has spent beside its work since its start, by service or worker and part.

        The parts are those of `sinkbench.stack.jvmthreads`. What is no JVM, or cannot be seen, is not in it.
        """
        return {}

    def memory_bytes(self) -> dict[str, float | None]:
        """Memory that each service and worker holds now, in bytes; None if not visible, or dead.

        That is what its processes hold of the machine's memory: their own and what they have mapped, shared pages once.
        """
        return {}

    @property
    def cpu_limits(self) -> dict[str, float]:
        """Cores that a service, or each worker, may use, by the service's name; absent for no limit."""
        return {}

    def machine_cpu(self) -> MachineCpu | None:
        """Of the machine that all services share; None if not visible."""
        return None

    def troubles(self) -> dict[str, str]:
        """What is wrong now with services that still run, by their names; a failing health check, for example."""
        return {}

    def free_bytes(self) -> int | None:
        """Free disk space for the services' data; None if not visible."""
        return None

    @property
    def data_path(self) -> Path | None:
        """A path on the disk that holds the services' data; None if not visible."""
        return None

    def allowances(self) -> dict[str, Allowance]:
        """What each service's containers may use, by the service's name; empty without containers."""
        return {}

    def command_lines(self) -> dict[str, list[str]]:
        """The words of each running and visible service's command line, by its name."""
        return {}

    def plugin_jars(self) -> dict[str, tuple[str, ...]]:
        """The names of the jars in the plugin of each sink connector, by its class; empty if they cannot be seen."""
        return {}

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        """The command that prints the last `lines` of a service's log. Raises StackError for an unknown service."""
