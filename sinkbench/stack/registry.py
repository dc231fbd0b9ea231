"""The installed sinks: entry points of the group `sinkbench.sinks`. They are never imported here, since sinks depend on
this package, and may be in the user's.
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
    measured without this service; "" if it is required.
    """

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
    folder of connector files, its entry point and its first service; `services` are in starting order.
    """

    name: str
    services: tuple[SinkService, ...]


@functools.cache
def _registered() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def _package(point: EntryPoint) -> str:
    return point.value if point.dist is None else f"the package {point.dist.name}"


@functools.cache
def declared_sink(name: str) -> DeclaredSink:
    """Returns the sink of that name. Raises StackError if there is none, or its package cannot be used."""
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
    if not isinstance(found, DeclaredSink) or (found.name, *(each.name for each in found.services[:1])) != (name, name):
        raise StackError(
            f"the sink {name} of {_package(point)}: {point.value} is no SinkKind with that name, whose first service"
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
