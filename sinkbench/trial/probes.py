"""The probes of a trial: what is read of its services while its connector runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sinkbench.analysis.memory import RESIDENT
from sinkbench.analysis.samples import by_service
from sinkbench.errors import ServiceError
from sinkbench.sinks import SinkReading
from sinkbench.stack import Stack
from sinkbench.topology import service_of
from sinkbench.trial.resources import Resources
from sinkbench.trial.sampler import Sampler, Sources, throttled

__all__ = ["background_probes", "jvm_signs", "probes"]

# How often a sink is asked whether all is stored where nothing else is read.
UNWATCHED_SECONDS = 2.0
# How often is asked for what changes slowly: a connector commits every few seconds, its tasks rarely change, and CPU
# time is taken over a whole trial.
SLOW_SECONDS = 1.0
# What a service holds changes slowly, and each of its processes is a file to read.
MEMORY_SECONDS = 2.0


def probes(own: Resources, *, growing: bool = False, always: bool = False) -> Sampler:
    """A sampler of everything that matters for this trial.

    Args:
        growing: whether its topic is loaded meanwhile; else it holds all records all the time.
        always: whether everything is read also of a cell without probes.
    """
    cluster, cell = own.cluster, own.cell

    def stored() -> SinkReading:
        reading = own.sink.read(own.names.target)
        # Without the rows that were there before the trial.
        return replace(reading, stored=reading.stored - cell.rows_before) if cell.rows_before else reading

    sources = Sources(sink=stored, in_topic=own.in_topic if growing else lambda: own.records)
    if not (cell.probes or always):
        return cluster.sampler(sources, UNWATCHED_SECONDS)
    stack = cluster.stack
    sources = replace(
        sources,
        consumed=throttled(own.consumed, SLOW_SECONDS),
        status=throttled(own.status, SLOW_SECONDS),
        cpu_seconds=throttled(stack.cpu_seconds, SLOW_SECONDS, meanwhile={}),
        troubles=stack.troubles,
        tasks=lambda: cluster.metrics.read(own.names.connector),
        jvms=throttled(lambda: jvm_signs(stack), SLOW_SECONDS, meanwhile={}),
        machine=stack.machine_cpu,
        memory=throttled(lambda: memory_signs(stack), MEMORY_SECONDS, meanwhile={}),
    )
    return cluster.sampler(sources, cluster.plan.probe_interval_ms / 1000)


def background_probes(own: Resources) -> Sampler:
    """A sampler for a trial in which services are broken: it has its own clients, and a thread for each source."""
    cluster = own.cluster.for_probes()
    # The connector may be renamed; only the trial's thread writes its names.
    there: Callable[[], Resources] = lambda: own.named(own.names, cluster)  # noqa: E731

    def read() -> SinkReading:
        try:
            return cluster.sink(own.cell.sink).read(own.names.target)
        except ServiceError:
            # The next reading connects anew, also to a server that has started again.
            cluster.forget_sink(own.cell.sink)
            raise

    sources = Sources(
        sink=read,
        in_topic=lambda: there().in_topic(),
        consumed=lambda: there().consumed(),
        status=lambda: there().status(),
        cpu_seconds=cluster.stack.cpu_seconds,
        machine=cluster.stack.machine_cpu,
    )
    interval = cluster.plan.probe_interval_ms / 1000
    return cluster.background_sampler(sources, interval, SLOW_SECONDS, cluster.close)


def jvm_signs(stack: Stack) -> dict[str, float]:
    """CPU seconds of a stack's JVMs for compiling and collection, by service, as `sinkbench.analysis.warm` reads it."""
    signs: dict[str, float] = {}
    for name, parts in stack.jvm_cpu_seconds().items():
        for part, seconds in parts.items():
            sign = f"{service_of(name)}_{part}_cpu_seconds_total"
            signs[sign] = signs.get(sign, 0.0) + seconds
    return signs


def memory_signs(stack: Stack) -> dict[str, float]:
    """Bytes of memory now, by service, all its workers together, as `sinkbench.analysis` reads them.

    A service of which one process could not be seen is not in it.
    """
    held = by_service(stack.memory_bytes().items())
    return {service + RESIDENT: total for service, total in held.items() if total is not None}
