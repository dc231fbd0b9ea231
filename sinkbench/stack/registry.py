"""`ServiceSpec`, the only description of a service: whatever starts, reaches or awaits a service reads it; and the
installed sinks, which bring theirs as entry points of the group `sinkbench.sinks`. They are never imported here, since
sinks depend on this package, and may be in the user's."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from sinkbench.errors import StackError
from sinkbench.services.access import Access
from sinkbench.services.failures import in_one_line
from sinkbench.services.versions import Supported
from sinkbench.stack import Endpoint, Say
from sinkbench.stack.processes import Supervisor
from sinkbench.stack.sections import SinkSection
from sinkbench.stack.security import Security
from sinkbench.topology import Node, Topology

NOWHERE = 0
"""The port of a node that cannot be reached now."""


@dataclass(frozen=True)
class Place:
    """Where a driver has its nodes, as clients at this place reach them. `address` returns host and port of a node for
    a setting ("kafka_port"). `data` is the folder as the services see it. No node waits for those in `gone`.
    `primaries` has the current primary of a service, by default the first node."""

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
        roles: how a stack of processes, whose usual roles the given place has, promotes a replica, if it has any."""

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
    roles: Callable[[Callable[[], Place], Supervisor], Roles] | None = None


GROUP = "sinkbench.sinks"
# Names of other services, and other keys of a stack file.
TAKEN = ("kafka", "connect", "loadgen", "loadgens", "controller")


@dataclass(frozen=True)
class About:
    """What a service says of itself; `other` names, in one line, another product that answers like it."""

    version: str | None = None
    java: str | None = None
    java_arguments: Sequence[str] | None = None
    other: str | None = None


@dataclass(frozen=True, kw_only=True)
class SinkService(ServiceSpec):
    """One service of a sink, or one that may precede it. `about` raises ServiceError if it does not answer.
    `usable_cores` returns how many cores it can use with a number of tasks, and why. `measures` says what cannot be
    measured without this service; "" if it is required."""

    section: type[SinkSection]
    about: Callable[[Endpoint], About]
    usable_cores: Callable[[int], tuple[float, str]] | None = None
    measures: str = ""
    supported: Supported | None = None

    def refusal(self, endpoint: Endpoint) -> str | None:
        """Returns why this version or product cannot be used; None if it can or is unknown. Raises ServiceError."""
        if self.supported is None:
            return None
        about = self.about(endpoint)
        if about.other is not None:
            return f"{about.other}; sinkbench supports {self.title} {self.supported.words}"
        return self.supported.refusal(self.title, about.version)


@dataclass(frozen=True)
class DeclaredSink:
    """The part of a sink that this package needs; the rest is in `sinkbench.sinks.SinkKind`. `name` is also that of its
    folder of connector files, its entry point and its first service; `services` are in starting order."""

    name: str
    services: tuple[SinkService, ...]


@functools.cache
def _registered() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


@functools.cache
def declared_sink(name: str) -> DeclaredSink:
    """Returns the sink of that name. Raises StackError if there is none, or its package cannot be used."""
    if name not in _registered():
        there = ", ".join(_registered()) or "none: run scripts/setup, which registers those of sinkbench"
        raise StackError(f"connectors/{name}: no sink is called that; there are {there}")
    point = _registered()[name]
    sink = f"the sink {name} of " + (point.value if point.dist is None else f"the package {point.dist.name}")
    try:
        found = point.load()
    except Exception as error:
        raise StackError(f"{sink} cannot be loaded: {in_one_line(error)}; correct or uninstall it") from error
    if not isinstance(found, DeclaredSink) or (found.name, *(each.name for each in found.services[:1])) != (name, name):
        raise StackError(
            f"{sink}: {point.value} is no SinkKind with that name, whose first service"
            " bears it; correct or uninstall it"
        )
    return found


def declared_sinks() -> list[DeclaredSink]:
    """Raises StackError if one cannot be used."""
    return [declared_sink(name) for name in _registered()]


@functools.cache
def sink_services() -> Mapping[str, SinkService]:
    """Raises StackError if two have the same name."""
    found: dict[str, SinkService] = {}
    for sink in declared_sinks():
        for service in sink.services:
            if service.name in found or service.name in TAKEN:
                raise StackError(f"the sink {sink.name}: its service {service.name} has a name that is taken")
            found[service.name] = service
    return found


def sink_service(name: str) -> SinkService:
    if name not in sink_services():
        raise StackError(f"{name}: no sink that is installed has this service; scripts/setup registers sinkbench's own")
    return sink_services()[name]
