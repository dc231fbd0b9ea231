"""Where the services run: one driver for each place, with the interface `Stack`. No trials or results here. Standard
library only, since `scripts/setup` runs `sinkbench.stack.tools` before any package is installed."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sinkbench.errors import StackError
from sinkbench.services.access import Access

if TYPE_CHECKING:
    from sinkbench.services.connect import Changes
    from sinkbench.stack.profiler import Profiler
    from sinkbench.stack.proxyserver import Proxies
    from sinkbench.stack.registry import Roles
    from sinkbench.stack.smalldisk import SmallDisks
    from sinkbench.topology import Topology

Say = Callable[[str], None]
"""Shows a line of progress to the user."""


@dataclass(frozen=True)
class Endpoint:
    """How to reach one service of a sink. `address` may be a connection string; if it contains a secret, `shown`
    replaces it on display. `nodes` has each node by name if there are several; the first one's address is `address`."""

    address: str = field(repr=False)
    shown: str = ""
    access: Access = field(default_factory=Access)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    nodes: "Mapping[str, Endpoint]" = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Endpoints:
    """How to reach each service from the controller. Fields with secrets are not printed.

    Attributes:
        kafka: bootstrap servers, host:port, separated by commas.
        brokers: address of each broker by node name, in the order of their ids from 1, if there are several.
        worker_ids: the worker's name by Connect's own id (host:port).
        kafka_settings: further settings by librdkafka's names, such as those for SASL and TLS.
        connect_variables: values of ${env:NAME} in connector files that the workers do not know themselves.
        loadgens: address of each load generator service; if empty, the controller starts one.
        loadgen_kafka: bootstrap servers for the load generators; None if they are `kafka`.
        shared: whether others use these clusters: then only objects of the trial itself may be changed.
        connector_changes: what changes connectors where REST may not."""

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
    connector_changes: "Changes | None" = field(default=None, repr=False)

    def addresses(self) -> dict[str, str]:
        """Returns the address of each node by name, for display."""
        sinks = {node: each for name, sink in self.sinks.items() for node, each in (sink.nodes or {name: sink}).items()}
        shown = {name: each.shown or each.address for name, each in sinks.items()}
        return {**(self.brokers or {"kafka": self.kafka}), **shown, **self.connect, **self.loadgens}


@dataclass(frozen=True)
class ServiceState:
    """`state` is running, stopped or dead; `exit_code` that of a process that ended by itself, None if unknown."""

    name: str
    state: str
    pid: int | None
    detail: str
    exit_code: int | None = None


@dataclass(frozen=True)
class Allowance:
    """The limits of a process or container on its machine; None for no limit."""

    cpus: float | None = None
    memory_bytes: int | None = None


class MachineCpu(NamedTuple):
    """`busy_seconds` of all cores so far include `stolen_seconds`, which a hypervisor gave to other machines."""

    busy_seconds: float
    stolen_seconds: float
    cores: int


@dataclass(frozen=True)
class Usage:
    """A snapshot of resource usage, by service and worker. None means dead or not visible; absent means not read now.

    `cpu_seconds` is user and system time since its start, `jvm_cpu_seconds` that of the parts of a JVM (`meter`),
    absent if it is no JVM. `memory_bytes` is resident memory with shared pages once. `troubles` has the problem of a
    service that still runs, such as a failing health check. `free_bytes` is free disk space for the services' data."""

    cpu_seconds: Mapping[str, float | None] = field(default_factory=dict)
    jvm_cpu_seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    memory_bytes: Mapping[str, float | None] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)
    machine: MachineCpu | None = None
    free_bytes: int | None = None


@dataclass(frozen=True)
class Facts:
    """What does not change while a stack runs, by service or worker. Absent means no limit or not visible.

    `unmeasured` names, for display, what cannot be measured there; such values are None. `data_path` is a path on the
    disk with the services' data; None if not visible."""

    unmeasured: tuple[str, ...] = ()
    allowances: Mapping[str, Allowance] = field(default_factory=dict)
    command_lines: Mapping[str, list[str]] = field(default_factory=dict)
    data_path: Path | None = None

    @property
    def cpu_limits(self) -> dict[str, float]:
        """In cores; without services that have no limit."""
        return {name: each.cpus for name, each in self.allowances.items() if each.cpus is not None}


@dataclass(frozen=True)
class ProxyTarget:
    """A sink service's address for this machine, and texts of variables that depend on it, with {host} and {port}."""

    host: str
    port: int
    variables: Mapping[str, str]

    def at(self, host: str, port: int) -> dict[str, str]:
        return {name: text.format(host=host, port=port) for name, text in self.variables.items()}


@dataclass(frozen=True)
class Faults:
    """What can be done to single services. The next `up` undoes what a killed controller left.

    Attributes:
        act: does kill (SIGKILL), stop (which waits for its end), start, freeze (SIGSTOP), thaw, isolate or rejoin.
        wait_for: waits until a service that was started is ready.
        can_isolate: whether a service can be disconnected from the network.
        restarts: whether what was killed or stopped is started again at once, so that such a fault ends by itself.
        proxies: the proxy between workers and sinks; None if none is possible.
        small_disks: the small disk for the services of a sink; None if they cannot have one here.
        promotion: how a replica of a sink is promoted; None if this stack has none.
        hold: holds each node of a service to so many cores and bytes of further memory in its context, or None."""

    act: Callable[[str, str], None]
    wait_for: Callable[[str], None]
    can_isolate: bool = False
    restarts: bool = False
    proxies: "Proxies | None" = None
    small_disks: "Callable[[str], SmallDisks | None]" = lambda sink: None
    promotion: "Callable[[str], Roles | None]" = lambda sink: None
    hold: Callable[[str, float | None, int | None], AbstractContextManager[None]] | None = None

    def do(self, what: str, service: str) -> None:
        """Does one of these to a service. `freeze` suspends its processes: its connections stay open, and nothing
        answers. After `isolate` it reaches nothing, and nothing reaches it. Waits until what was undone is ready."""
        self.act(what, service)
        if what in ("start", "thaw", "rejoin"):
            self.wait_for(service)


class Stack(Protocol):
    """A place where the services run."""

    name: str
    own_container: str | None = None
    """The container of the stack that this process is in; None outside."""
    profiler: "Profiler | None" = None
    """None if the services are no processes of this machine."""
    variables: Collection[str] = ()
    """Those of run scripts that a plan may set with `sibling`."""

    @property
    def endpoints(self) -> Endpoints:
        """How to reach each service."""

    @property
    def workers(self) -> int:
        """Number of Connect workers."""

    @property
    def layout(self) -> "Topology | None":
        """Its nodes; None if unknown."""

    @property
    def lock_file(self) -> Path:
        """The file that a race on this stack locks."""

    @property
    def faults(self) -> Faults | None:
        """None if others own the services."""

    def start_id(self) -> str | None:
        """An id that differs for each start of the stack; None if it is down. Single services may be dead."""

    def up(self, say: Say) -> None:
        """Starts what does not run and waits until everything is ready. Raises StackError, with the end of a log."""

    def sibling(self, number: int, variables: Mapping[str, str]) -> "Stack":
        """Another stack beside this one, with ports and data of its own, and these variables; numbers count from 1. Its
        `down` removes all of it; this one's does, too. Raises StackError if there can be none."""
        raise StackError(f"the stack {self.name} starts with no variables of a plan")

    def down(self) -> None:
        """Stops everything, whatever state it is in."""

    def services(self) -> list[ServiceState]:
        """Every service, in starting order."""

    def dead(self) -> dict[str, str]:
        """What is known of each service that does not run, by name."""
        return {state.name: state.detail for state in self.services() if state.state != "running"}

    def usage(self) -> Usage:
        """What the services use now, without the parts that cannot be read."""

    def facts(self) -> Facts:
        """What does not change while it runs."""

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        """The command that prints the last `lines` of a service's log. Raises StackError for an unknown service."""

    def log_tail(self, service: str, lines: int) -> str:
        """The last `lines` of a service's log. Raises StackError if there is none, or it is not visible."""
