"""Creates the samplers of a trial, which read its services while its connector runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sinkbench.errors import ServiceError
from sinkbench.sinks import SinkReading
from sinkbench.stack import Usage
from sinkbench.stack.processes import machine_cpu
from sinkbench.trial.resources import Resources
from sinkbench.trial.sampler import Sampler, Sources, throttled

# Interval for a sink without probes, which is only read to see when all is stored.
UNWATCHED_SECONDS = 2.0
# Interval for what changes slowly: a connector commits every few seconds, its tasks rarely change, and CPU
# time is measured over a whole trial.
SLOW_SECONDS = 1.0


def probes(own: Resources, *, growing: bool = False, always: bool = False) -> Sampler:
    """Creates a trial's sampler. `growing`: its topic is loaded meanwhile. `always`: also for a cell without probes."""
    cluster, cell = own.cluster, own.cell

    def stored() -> SinkReading:
        reading = own.sink.read(own.names.target)
        return replace(reading, stored=reading.stored - cell.rows_before) if cell.rows_before else reading

    sources = Sources(sink=stored, in_topic=own.in_topic if growing else lambda: own.records)
    if not (cell.probes or always):
        return cluster.sampler(sources, UNWATCHED_SECONDS)
    # Clusters without faults are external: their machines are not this one.
    seen = cluster.stack.faults is not None
    sources = replace(
        sources,
        consumed=throttled(own.consumed, SLOW_SECONDS),
        status=throttled(own.status, SLOW_SECONDS),
        # A trial of a few seconds needs the machine's CPU time at every sample.
        usage=throttled(cluster.stack.usage, SLOW_SECONDS, lambda: Usage(machine=machine_cpu() if seen else None)),
        tasks=lambda: cluster.metrics.read(own.names.connector),
    )
    return cluster.sampler(sources, cluster.plan.probe_interval_ms / 1000)


def background_probes(own: Resources) -> Sampler:
    """Creates a sampler for a trial with a fault: it has its own clients, and a thread per source."""
    cluster = own.cluster.for_probes()
    # The connector may be renamed; only the trial's thread writes its names.
    there: Callable[[], Resources] = lambda: own.named(own.names, cluster)  # noqa: E731

    def read() -> SinkReading:
        try:
            return cluster.sink(own.cell.sink).read(own.names.target)
        except ServiceError:
            # The next reading connects anew, also to a restarted server.
            cluster.forget_sink(own.cell.sink)
            raise

    def used() -> Usage:
        found = cluster.stack.usage()
        # What a fault does to a service is not an error.
        return Usage(found.cpu_seconds, machine=found.machine)

    sources = Sources(
        sink=read,
        in_topic=lambda: there().in_topic(),
        consumed=lambda: there().consumed(),
        status=lambda: there().status(),
        usage=used,
    )
    interval = cluster.plan.probe_interval_ms / 1000
    return cluster.background_sampler(sources, interval, SLOW_SECONDS, cluster.close)
