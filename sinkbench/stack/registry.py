"""The sinks that are installed, as entry points of the group `sinkbench.sinks`, and the services that they declare.

The sinks stand above this room, and your package may bring one: so they are found by name when they are needed, and
never imported here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from sinkbench.errors import StackError
from sinkbench.services.failures import in_one_line
from sinkbench.services.versions import Supported
from sinkbench.stack import Endpoint
from sinkbench.stack.sections import SinkSection
from sinkbench.stack.spec import ServiceSpec

__all__ = [
    "GROUP",
    "About",
    "DeclaredSink",
    "SinkService",
    "declared_sink",
    "declared_sinks",
    "sink_service",
    "sink_services",
]

GROUP = "sinkbench.sinks"
# Names of other services, and of other keys of a stack file.
TAKEN = ("kafka", "connect", "loadgen", "loadgens", "controller")


@dataclass(frozen=True)
class About:
    """What a service tells of itself; None is what it keeps back.

    Attributes:
        version: its own.
        java: the version of the Java that it runs in.
        java_arguments: what that Java was started with.
        other: what it is, in one line, if it answers like the service and is another product.
    """

    version: str | None = None
    java: str | None = None
    java_arguments: Sequence[str] | None = None
    other: str | None = None


@dataclass(frozen=True, kw_only=True)
class SinkService(ServiceSpec):
    """One service that a sink consists of, or that may stand before it.

    Attributes:
        section: what its section of a stack file, which bears its name, may hold.
        about: asks it for its version. Raises ServiceError if it does not answer.
        usable_cores: how many cores it can use at a number of tasks, and why, for a person; None: as many as there are.
        measures: what cannot be measured where the sink is there and this service is not; "" if it must be there.
        supported: its versions that can be used; None for all of them.
    """

    section: type[SinkSection]
    about: Callable[[Endpoint], About]
    usable_cores: Callable[[int], tuple[float, str]] | None = None
    measures: str = ""
    supported: Supported | None = None

    def refusal(self, endpoint: Endpoint) -> str | None:
        """Why what answers there cannot be used: its version, or another product; None if it can, or does not tell.

        Raises ServiceError if it does not answer.
        """
        if self.supported is None:
            return None
        about = self.about(endpoint)
        if about.other is not None:
            return f"{about.other}; sinkbench supports {self.title} {self.supported.words}"
        return self.supported.refusal(self.title, about.version)


@dataclass(frozen=True)
class DeclaredSink:
    """What this room needs to know of a sink; the rest is in `sinkbench.sinks.SinkKind`.

    Attributes:
        name: of the sink: the folder of its connector files. Its entry point and its first service bear it, too.
        services: what it consists of, in the order in which they start.
    """

    name: str
    services: tuple[SinkService, ...]


@functools.cache
def _registered() -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if point.name in found:
            both = " and ".join(_package(each) for each in (found[point.name], point))
            raise StackError(f"the sink {point.name} comes twice, from {both}; uninstall one of them")
        found[point.name] = point
    return found


def _package(point: EntryPoint) -> str:
    return point.value if point.dist is None else f"the package {point.dist.name}"


@functools.cache
def declared_sink(name: str) -> DeclaredSink:
    """The sink of that name. Raises StackError if there is none, or its package cannot be used."""
    if name not in _registered():
        there = ", ".join(_registered()) or "none: run scripts/setup, which registers those of sinkbench"
        raise StackError(f"connectors/{name}: no sink is called that; there are {there}")
    point = _registered()[name]
    try:
        found = point.load()
    except Exception as error:
        raise StackError(
            f"the sink {name} of {_package(point)} cannot be loaded: {in_one_line(error)}; correct or uninstall it"
        ) from error
    if (
        not isinstance(found, DeclaredSink)
        or found.name != name
        or [service.name for service in found.services][:1] != [name]
    ):
        raise StackError(
            f"the sink {name} of {_package(point)}: {point.value} is no SinkKind with that name, whose first service"
            " bears it; correct or uninstall it"
        )
    return found


def declared_sinks() -> list[DeclaredSink]:
    """All sinks that are installed, by name. Raises StackError if one cannot be used."""
    return [declared_sink(name) for name in _registered()]


@functools.cache
def sink_services() -> Mapping[str, SinkService]:
    """The services of all sinks, by name. Raises StackError if two bear one name."""
    found: dict[str, SinkService] = {}
    for sink in declared_sinks():
        for service in sink.services:
            if service.name in found or service.name in TAKEN:
                raise StackError(f"the sink {sink.name}: its service {service.name} has a name that is taken")
            found[service.name] = service
    return found


def sink_service(name: str) -> SinkService:
    """The service of that name. Raises StackError if no sink has it."""
    if name not in sink_services():
        raise StackError(f"{name}: no sink that is installed has this service; scripts/setup registers sinkbench's own")
    return sink_services()[name]
