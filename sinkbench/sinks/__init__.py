"""The sinks, found by their entry points; the module or package of each has all that is particular to it."""

# ruff: noqa: F403, F405 - what a sink is and says, for those that import this one

from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.sinks.kind import *
from sinkbench.sinks.values import *
from sinkbench.stack import Endpoints
from sinkbench.stack.registry import declared_sink, declared_sinks
from sinkbench.suggest import did_you_mean


def sink_kind(name: str) -> SinkKind:
    """The sink of that name. Raises StackError if there is none, or its package cannot be used."""
    found = declared_sink(name)
    if not isinstance(found, SinkKind):
        raise StackError(f"the sink {name}: what its package declares is no SinkKind; correct or uninstall it")
    return found


def sink_kinds() -> list[SinkKind]:
    """All installed sinks, by name. Raises StackError if one cannot be used."""
    return [sink_kind(sink.name) for sink in declared_sinks()]


def sinks_of(endpoints: Endpoints) -> list[str]:
    return [sink.name for sink in declared_sinks() if sink.name in endpoints.sinks]


def stamping_sinks() -> list[str]:
    """Names of the sinks that keep the time of every insertion."""
    return [kind.name for kind in sink_kinds() if kind.stamps]


def open_sink(name: str, endpoints: Endpoints, checkout: Path) -> Sink:
    """Connects to a sink. Raises ServiceError without an answer, StackError if it is missing or not supported."""
    kind = sink_kind(name)
    if name not in endpoints.sinks:
        where = endpoints.stack_file or "this stack"
        raise StackError(
            f"{where}: has no '{name}', which a pipeline of the plan writes to; add that key, or leave the pipeline out"
        )
    for service in kind.services:
        there = endpoints.sinks.get(service.name)
        if there is not None and (refusal := service.refusal(there)) is not None:
            raise StackError(f"{service.name} at {there.shown or there.address}: {refusal}; use such a one")
    return kind.open(endpoints, checkout)


def open_existing(name: str, target: str, endpoints: Endpoints) -> Existing:
    """Opens a target that is there already. Raises StackError if there is no such sink or target, with the nearest."""
    there = {kind.name: kind.existing for kind in sink_kinds() if kind.existing and kind.name in endpoints.sinks}
    if name not in there:
        where = endpoints.stack_file or "this stack"
        raise StackError(f"{where}: has no sink '{name}' that can be verified{did_you_mean(name, there)}")
    return there[name](endpoints, target)


def open_writer(to: Destination) -> Writer:
    """Opens a connection that writes as `to` says. Raises ServiceError if that fails."""
    return sink_kind(to.sink).writers[to.way](to)
