"""What a service is, said once: whatever starts it, reaches it or waits for it reads its `ServiceSpec`.

Kafka, Connect and loadgen declare theirs in `pipeline`, each sink its own in its room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sinkbench.services.access import Access
from sinkbench.stack.endpoint import Endpoint
from sinkbench.stack.protocol import Promotion, Say
from sinkbench.stack.security import Security
from sinkbench.stack.supervisor import Program
from sinkbench.topology import Node, Topology

__all__ = ["NOWHERE", "OwnNodes", "Place", "Processes", "Roles", "ServiceSpec"]

NOWHERE = 0
"""The port of a node that cannot be reached now."""


@dataclass(frozen=True)
class Place:
    """Where a driver has its nodes, as one who asks there reaches them.

    Attributes:
        layout: which nodes there are.
        address: host and port of a node, by the setting of its port ("kafka_port").
        data: the folder of the services' data, as these find it.
        security: what they want before they answer; None if they answer without TLS and passwords.
        workers: host and port of each worker's REST interface, by its name.
        metrics: host and port of each worker's metrics, as far as they are shown.
        gone: nodes that no other has to wait for until it is ready.
        primaries: the node that is the primary now, by its service; absent: the first.
    """

    layout: Topology
    address: Callable[[Node, str], tuple[str, int]]
    data: str = ""
    security: Security | None = None
    workers: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    metrics: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    primaries: Mapping[str, str] = field(default_factory=dict)

    @property
    def scheme(self) -> str:
        """Of HTTP services."""
        return "http" if self.security is None else "https"

    def access(self, service: str) -> Access:
        """What an HTTP service wants before it answers."""
        return Access() if self.security is None else self.security.access(service)

    def hosts(self, port: str) -> list[str]:
        """host:port of each node of a service, by the setting of its port."""
        return [self.host(node, port) for node in self.layout.of(port.partition("_")[0])]

    def host(self, node: Node, port: str) -> str:
        """host:port of one node."""
        host, number = self.address(node, port)
        return f"{host}:{number}"

    def primary(self, service: str) -> str:
        """The node of a service that is the primary now."""
        return self.primaries.get(service) or self.layout.of(service)[0].name


class Processes(Protocol):
    """What starts and ends nodes that are processes, as `Supervisor` does."""

    def programs(self) -> list[Program]: ...

    def start(self, name: str) -> None: ...

    def stop(self, name: str) -> None: ...

    def kill(self, name: str) -> None: ...


@dataclass(frozen=True)
class OwnNodes:
    """The nodes of a stack of processes, for a sink that changes their roles.

    Attributes:
        place: tells where they are, with their usual roles.
        processes: starts and ends them.
        data: the folder of all services' data.
    """

    place: Callable[[], Place]
    processes: Processes
    data: Path


class Roles(Promotion, Protocol):
    """Which node of a sink is the primary, and how that changes."""

    @property
    def primary(self) -> str:
        """The node that is the primary, or is about to be. Raises StackError if that is not known."""

    def finish(self) -> None:
        """Finishes a promotion that was broken off, before missing nodes are started. Raises StackError."""

    def restore(self, say: Say = lambda line: None) -> None:
        """As in `Promotion`; tells that it is under way."""


@dataclass(frozen=True)
class ServiceSpec:
    """A service of a stack.

    Attributes:
        name: in tables, messages and settings; of its first node, too.
        title: its name as its makers write it.
        ready: None if it is ready for work, else what is missing, in one line. It is given where it is, whether others
            use it too, and how many seconds it may take to answer.
        ports: the settings of a node's ports, that of its clients first.
        in_java: whether it runs in a Java virtual machine.
        script: its run script, below the checkout; "" if the stacks of sinkbench do not have it.
        stop_signal, stop_seconds: how its process is ended, and when it is killed.
        programs: the variables that say where its programs are. Raises StackError if one is missing.
        needs: the nodes that must be ready before a node of it starts.
        shared: the variables that all services get because of it.
        own: the variables of one of its nodes alone.
        endpoint: how it is reached, if it is a sink's.
        variables: what ${env:NAME} in connector files holds of its address, with {host} and {port} in it.
        roles: how a stack of processes makes a replica the primary; None if it has none.
    """

    name: str
    title: str
    ready: Callable[[Endpoint, bool, float], str | None]
    ports: tuple[str, ...] = ()
    in_java: bool = False
    script: str = ""
    stop_signal: str = "TERM"
    stop_seconds: int = 30
    programs: Callable[[], Mapping[str, str]] = dict
    needs: Callable[[Place, Node], frozenset[str]] = lambda place, node: frozenset()
    shared: Callable[[Place], Mapping[str, str]] = lambda place: {}
    own: Callable[[Place, Node], Mapping[str, str]] = lambda place, node: {}
    endpoint: Callable[[Place], Endpoint] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    roles: Callable[[OwnNodes], Roles] | None = None
