"""`ServiceSpec`, the only description of a service: whatever starts, reaches or awaits a service reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sinkbench.services.access import Access
from sinkbench.stack import Endpoint, Say
from sinkbench.stack.security import Security
from sinkbench.stack.supervisor import Program
from sinkbench.topology import Node, Topology

NOWHERE = 0
"""The port of a node that cannot be reached now."""


@dataclass(frozen=True)
class Place:
    """Where a driver has its nodes, as clients at this place reach them. `address` returns host and port of a node for
    a setting ("kafka_port"). `data` is the folder as the services see it. No node waits for those in `gone`.
    `primaries` has the current primary of a service, by default the first node.
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
        return "http" if self.security is None else "https"

    def access(self, service: str) -> Access:
        return Access() if self.security is None else self.security.access(service)

    def url(self, where: tuple[str, int]) -> str:
        return "{}://{}:{}".format(self.scheme, *where)

    def hosts(self, port: str) -> list[str]:
        """Returns host:port of each node of a service for the setting of its port."""
        return ["{}:{}".format(*self.address(node, port)) for node in self.layout.of(port.partition("_")[0])]

    def primary(self, service: str) -> str:
        return self.primaries.get(service) or self.layout.of(service)[0].name


class Processes(Protocol):
    def programs(self) -> list[Program]: ...

    def start(self, name: str) -> None: ...

    def stop(self, name: str) -> None: ...

    def kill(self, name: str) -> None: ...


@dataclass(frozen=True)
class OwnNodes:
    """The nodes of a stack of processes, for a sink that changes their roles; `place` has their usual roles."""

    place: Callable[[], Place]
    processes: Processes
    data: Path


class Roles(Protocol):
    """Which node of a sink is the primary, and how that changes. Each method raises StackError."""

    @property
    def primary(self) -> str:
        """The node that is the primary, or is about to be."""

    def promote(self) -> tuple[str, int]:
        """Kills the primary with SIGKILL and promotes a replica. Returns host and port of the new primary."""

    def demote(self) -> None:
        """Starts the killed node as a replica of the new primary, and waits until it is in sync."""

    def finish(self) -> None:
        """Finishes an interrupted promotion before missing nodes are started."""

    def restore(self, say: Say = lambda line: None) -> None:
        """Makes the first node the primary again and all others its replicas, unless they are. `up` does this too."""


@dataclass(frozen=True)
class ServiceSpec:
    """A service of a stack.

    Attributes:
        name: also that of its first node.
        ready: returns None if it is ready, else the problem in one line. Arguments: its endpoint, whether others use it
            too, and the timeout in seconds.
        ports: the settings of a node's ports; the first is that of clients.
        script: its run script, below the checkout; "" if sinkbench does not start it.
        programs: the variables with the paths of its programs. Raises StackError if one is missing.
        needs: the nodes that must be ready before this node starts.
        shared, own: variables that it adds to all services, and those of one node.
        variables: values of ${env:NAME} in connector files that depend on its address, with {host} and {port} in them.
        roles: how a stack of processes promotes a replica; None if it has no replicas.
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
