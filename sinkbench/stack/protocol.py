"""The interface of a stack: a place where the services run, and what can be done to them there.

`local` runs processes under supervisord, `compose` containers; `external` uses clusters that exist already. Standard
library only: `scripts/setup` runs `sinkbench.stack.tools` before any package is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sinkbench.services.toxiproxy import Toxiproxy
    from sinkbench.stack.endpoint import Endpoints
    from sinkbench.stack.smalldisk import SmallDisk
    from sinkbench.topology import Topology

__all__ = [
    "Allowance",
    "Facts",
    "Faults",
    "Isolation",
    "MachineCpu",
    "Promotion",
    "Proxies",
    "ProxyTarget",
    "Say",
    "ServiceState",
    "SmallDisks",
    "Stack",
    "Usage",
]

Say = Callable[[str], None]
"""Shows the user a line about progress."""


@dataclass(frozen=True)
class ServiceState:
    """A service now: `state` is running, stopped or dead, `detail` explains it to a person.

    `exit_code` is that of its process once that has ended by itself; None where it is not known.
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


@dataclass(frozen=True)
class Usage:
    """What the services use, in one snapshot; by the name of each service and worker.

    Attributes:
        cpu_seconds: user and system time since its start; None if it is dead or not visible, absent if not read now.
        jvm_cpu_seconds: the parts of a JVM's time as in `sinkbench.stack.jvmthreads`; absent if it is no JVM.
        memory_bytes: memory that its processes hold now, shared pages once; None if it is dead or not visible.
        troubles: what is wrong with a service that still runs, such as a failing health check.
        machine: of the machine that all services share; None if not visible.
        free_bytes: free disk space for the services' data; None if not visible.
    """

    cpu_seconds: Mapping[str, float | None] = field(default_factory=dict)
    jvm_cpu_seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    memory_bytes: Mapping[str, float | None] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)
    machine: MachineCpu | None = None
    free_bytes: int | None = None


@dataclass(frozen=True)
class Facts:
    """What does not change while a stack runs.

    Attributes:
        unmeasured: what cannot be measured there, each for a person; such values are None.
        cpu_limits: cores that a service, or each worker, may use, by the service's name; absent for no limit.
        allowances: what each service's containers may use, by the service's name; empty without containers.
        command_lines: the words of each running and visible service's command line, by its name.
        data_path: a path on the disk with the services' data; None if not visible.
    """

    unmeasured: tuple[str, ...] = ()
    cpu_limits: Mapping[str, float] = field(default_factory=dict)
    allowances: Mapping[str, Allowance] = field(default_factory=dict)
    command_lines: Mapping[str, list[str]] = field(default_factory=dict)
    data_path: Path | None = None


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


class Isolation(Protocol):
    """Takes the network from a single service. What has none when its controller is killed gets it with `up`."""

    def isolate(self, service: str) -> None:
        """From now on the service reaches nothing, and nothing reaches it."""

    def rejoin(self, service: str) -> None:
        """Gives it its network back and waits until it is ready."""


class Proxies(Protocol):
    """A TCP proxy of this process between the workers and the sinks."""

    @property
    def targets(self) -> Mapping[str, ProxyTarget]:
        """The way into each service of the sinks; empty if no proxy can stand there."""

    def check(self) -> None:
        """Makes sure, without any service, that the proxy can be built. Raises StackError: what is missing."""

    def prepare(self, say: Say) -> None:
        """Builds the proxy, if that was not done before. Raises StackError if it cannot be built."""

    def run(self) -> AbstractContextManager[Toxiproxy]:
        """Runs it as long as the context lasts, and not longer than this process. Raises StackError."""


class SmallDisks(Protocol):
    """A small file system for a sink's service."""

    def check(self) -> None:
        """Makes sure, without any service, that one can be mounted. Raises StackError: what is missing."""

    def mounted(self, size_bytes: int) -> AbstractContextManager[SmallDisk]:
        """A disk of that size as long as the context lasts; what a killed controller left is used again."""


class Promotion(Protocol):
    """Makes a replica of a sink the primary. Each method raises StackError."""

    def promote(self) -> tuple[str, int]:
        """Kills the primary with SIGKILL and makes a replica the primary. Returns host and port of the new one.

        What was killed never starts as a primary again, but as a replica of the new one.
        """

    def demote(self) -> None:
        """Starts what `promote` has killed, as a replica of the new primary, and waits until it is in sync."""

    def restore(self) -> None:
        """Makes the first node the primary again, and all others its replicas; nothing if it is so. `up` does it."""


class Faults(Protocol):
    """What can be done to single services; each is undone by the next `up` if the controller is killed meanwhile."""

    def kill(self, service: str) -> None:
        """Kills it with SIGKILL."""

    def stop(self, service: str) -> None:
        """Stops it and waits for its end."""

    def start(self, service: str) -> None:
        """Starts it again and waits until it is ready."""

    def freeze(self, service: str) -> None:
        """Stops its processes where they are (SIGSTOP): its connections stay, and nothing answers."""

    def thaw(self, service: str) -> None:
        """Lets it go on and waits until it is ready."""

    @property
    def isolation(self) -> Isolation | None:
        """None if services share one network."""

    @property
    def proxies(self) -> Proxies | None:
        """None if no proxy can stand between workers and sinks."""

    def small_disks(self, sink: str) -> SmallDisks | None:
        """None if the services of this sink cannot have one here."""

    def promotion(self, sink: str) -> Promotion | None:
        """None if this stack has no replica of the sink that could be promoted."""


class Stack(Protocol):
    """A place where the services run."""

    name: str
    own_container: str | None = None
    """The container of the stack that this process is in; None outside."""

    @property
    def endpoints(self) -> Endpoints:
        """How to reach each service."""

    @property
    def workers(self) -> int:
        """Number of Connect workers."""

    @property
    def layout(self) -> Topology | None:
        """Which nodes it has; None where that is not known."""

    @property
    def lock_file(self) -> Path:
        """The file that a race on this stack locks."""

    @property
    def faults(self) -> Faults | None:
        """What can be done to single services; None where they are other people's."""

    def start_id(self) -> str | None:
        """What tells this start of the stack from every other; None if it is down. Single services may be dead."""

    def up(self, say: Say) -> None:
        """Starts what is not running and waits until everything is ready; a second call changes nothing.

        Raises StackError, with the end of its log, if a service does not start.
        """

    def down(self) -> None:
        """Stops everything, whatever state it is in."""

    def services(self) -> list[ServiceState]:
        """Every service, in starting order."""

    def usage(self) -> Usage:
        """What the services use now; a part that cannot be read is left out."""

    def facts(self) -> Facts:
        """What does not change while it runs."""

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        """The command that prints the last `lines` of a service's log. Raises StackError for an unknown service."""
