"""Creates the samplers of a trial, which read its services while its connector runs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from sinkbench.errors import ServiceError
from sinkbench.sinks import PoolReading, Sink, SinkReading
from sinkbench.stack import Usage
from sinkbench.stack.processes import machine_cpu
from sinkbench.trial.resources import Resources
from sinkbench.trial.sampler import Sampler, Sources

# Interval for a sink without probes, which is only read to see when all is stored.
UNWATCHED_SECONDS = 2.0
# Interval for what changes slowly: a connector commits every few seconds, its tasks rarely change, and CPU
# time is measured over a whole trial.
SLOW_SECONDS = 1.0

Found = TypeVar("Found")


def pool_of(sink: Sink) -> PoolReading:
    pooler = sink.capabilities.pooler
    return PoolReading() if pooler is None else pooler.connections()


def probes(own: Resources, *, growing: bool = False, always: bool = False) -> Sampler:
    """Creates a trial's sampler. `growing`: its topic is loaded meanwhile. `always`: also for a cell without probes."""
    cluster, cell, interval = own.cluster, own.cell, own.cluster.plan.probe_interval_ms / 1000

    def stored() -> SinkReading:
        reading = own.sink.read(own.names.target)
        return replace(reading, stored=reading.stored - cell.rows_before) if cell.rows_before else reading

    sink = own.sink
    sources = Sources(
        sink=stored, in_topic=own.in_topic if growing else lambda: own.records, pool=lambda: pool_of(sink)
    )
    if not (cell.probes or always):
        return cluster.sampler(sources, UNWATCHED_SECONDS, {"pool": UNWATCHED_SECONDS})
    # Clusters without faults are external: their machines are not this one.
    seen, due = cluster.stack.faults is not None, -math.inf

    def used() -> Usage:
        nonlocal due
        if time.monotonic() < due:
            # A trial of a few seconds needs the machine's CPU time at every sample.
            return Usage(machine=machine_cpu() if seen else None)
        found = cluster.stack.usage()
        due = time.monotonic() + SLOW_SECONDS
        return found

    sources = replace(
        sources,
        consumed=own.consumed,
        status=own.status,
        usage=used,
        tasks=lambda: cluster.metrics.read(own.names.connector),
    )
    # A service that hangs does not keep the sink from being read.
    slow = {"consumed": SLOW_SECONDS, "status": SLOW_SECONDS}
    return cluster.sampler(sources, interval, {**slow, "pool": interval})


def background_probes(own: Resources) -> Sampler:
    """Creates a sampler for a trial with a fault: it has its own clients, and a thread per source."""
    cluster, interval, lock = own.cluster.for_probes(), own.cluster.plan.probe_interval_ms / 1000, threading.Lock()
    # The connector may be renamed; only the trial's thread writes its names.
    there: Callable[[], Resources] = lambda: own.named(own.names, cluster)  # noqa: E731

    def of_sink(ask: Callable[[Sink], Found]) -> Found:
        try:
            with lock:
                sink = cluster.sink(own.cell.sink)
            return ask(sink)
        except ServiceError:
            # The next reading connects anew, also to a restarted server.
            with lock:
                cluster.forget_sink(own.cell.sink)
            raise

    def used() -> Usage:
        found = cluster.stack.usage()
        # What a fault does to a service is not an error.
        return Usage(found.cpu_seconds, machine=found.machine)

    sources = Sources(
        sink=lambda: of_sink(lambda sink: sink.read(own.names.target)),
        in_topic=lambda: there().in_topic(),
        consumed=lambda: there().consumed(),
        status=lambda: there().status(),
        pool=lambda: of_sink(pool_of),
        usage=used,
    )
    often = dict.fromkeys(("sink", "in_topic", "pool"), interval)
    slow = dict.fromkeys(("consumed", "status", "usage"), SLOW_SECONDS)
    return cluster.sampler(sources, interval, {**often, **slow}, cluster.close)
