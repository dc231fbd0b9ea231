"""Runs a connector, samples it, and watches it until it has finished or makes no more progress."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from sinkbench.analysis.samples import Sample
from sinkbench.errors import ConnectError, ReasonCode, ServiceError, TrialFailed
from sinkbench.plan.faults import OF_NETWORK
from sinkbench.services.causes import explained, failure
from sinkbench.services.connect import ConnectorStatus, is_even, placement
from sinkbench.sinks import PoolReading, Sink, SinkPooling, SinkReading
from sinkbench.stack import Stack, Usage
from sinkbench.stack.processes import machine_cpu
from sinkbench.trial.resources import Resources
from sinkbench.trial.sampler import Sampler, Sources, fresh_samples
from sinkbench.trial.stop import Deed, FaultWatch, Watch, died, died_of_memory
from sinkbench.trial.values import Timeline

# Interval for a sink without probes, which is only read to see when all is stored.
UNWATCHED_SECONDS = 2.0
# Of what changes slowly: a connector commits every few seconds, tasks rarely change, CPU time is of a whole trial.
SLOW_SECONDS = 1.0
# How long tasks of an interrupted trial may be FAILED before they are restarted.
RESTART_SECONDS = 5.0

Found = TypeVar("Found")


def pool_of(sink: Sink) -> PoolReading:
    pooler = sink.capabilities.pooler
    return PoolReading() if pooler is None else pooler.connections()


def pooling_of(sink: Sink) -> SinkPooling | None:
    """Returns the settings of the pooler before the sink; None if there is none or it does not say."""
    with suppress(ServiceError):
        return None if sink.capabilities.pooler is None else sink.capabilities.pooler.read()
    return None


def probes(own: Resources, *, growing: bool = False, always: bool = False, apart: bool = False) -> Sampler:
    """Creates a trial's sampler. `growing`: its topic is loaded meanwhile. `always`: also for a cell without probes.
    `apart`: for a trial with a fault, with clients of its own, and a thread for each source."""
    cell, interval, lock, due = own.cell, own.cluster.plan.probe_interval_ms / 1000, threading.Lock(), -math.inf
    cluster = own.cluster.for_probes() if apart else own.cluster

    def there() -> Resources:
        # The connector may be renamed; only the trial's thread writes its names.
        return replace(own, cluster=cluster)

    def of_sink(ask: Callable[[Sink], Found]) -> Found:
        with lock:
            sink = cluster.sink(cell.sink)
        try:
            return ask(sink)
        except ServiceError:
            # During a fault, the next reading connects anew, also to a restarted server.
            if apart:
                with lock:
                    cluster.forget_sink(cell.sink)
            raise

    def stored() -> SinkReading:
        reading = of_sink(lambda sink: sink.read(own.names.target))
        return replace(reading, stored=reading.stored - cell.rows_before)

    def used() -> Usage:
        nonlocal due
        if time.monotonic() < due and not apart:
            # A trial of a few seconds needs the machine's CPU time at every sample; an external cluster's is not known.
            return Usage(machine=None if cluster.stack.endpoints.shared else machine_cpu())
        found, due = cluster.stack.usage(), time.monotonic() + SLOW_SECONDS
        # What a fault does to a service is not an error.
        return Usage(found.cpu_seconds, machine=found.machine) if apart else found

    in_topic = (lambda: there().in_topic()) if growing or apart else lambda: own.records
    sources = Sources(sink=stored, in_topic=in_topic, pool=lambda: of_sink(pool_of))
    if not (cell.probes or always or apart):
        return cluster.sampler(sources, UNWATCHED_SECONDS, {"pool": UNWATCHED_SECONDS})
    sources = replace(sources, consumed=lambda: there().consumed(), status=lambda: there().status(), usage=used)
    # A service that hangs does not keep the sink from being read.
    background = {"consumed": SLOW_SECONDS, "status": SLOW_SECONDS, "pool": interval}
    if apart:
        background |= {"sink": interval, "in_topic": interval, "usage": SLOW_SECONDS}
        return cluster.sampler(sources, interval, background, cluster.close)
    sources = replace(sources, tasks=lambda: cluster.metrics.read(own.names.connector))
    return cluster.sampler(sources, interval, background)


class Following(AbstractContextManager["Following"]):
    """What happens while a connector runs. As a context it keeps the error that ends the run, except an interrupt."""

    def __init__(self, own: Resources, sampler: Sampler, watch: Watch) -> None:
        self._own = own
        self._sampler = sampler
        self._watch = watch
        self.seen = Timeline()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, TrialFailed | ServiceError | OSError):
            return False
        self.seen = replace(self.seen, failed=error)
        return True

    @property
    def timeline(self) -> Timeline:
        return replace(self.seen, samples=self._sampler.samples)

    def to_the_end(self) -> Timeline:
        with self, self.samples() as samples:
            deque(samples, maxlen=0)
        return self.timeline

    def now(self) -> float:
        """Current time in seconds on the samples' clock."""
        return self._sampler.now()

    def settled(self, status: ConnectorStatus) -> None:
        ids = self._own.cluster.stack.endpoints.worker_ids
        self.seen = replace(self.seen, placement=placement(status, ids))

    @contextmanager
    def samples(self) -> Iterator[Iterator[Sample]]:
        """Runs sampler and connector. Raises TrialFailed if Connect refuses, a service dies or the sampler hangs."""
        self.seen = replace(self.seen, from_us=self._sampler.start(), created=True)
        try:
            self.seen = replace(self.seen, connector=self._own.start_connector())
            yield self._until_over()
        except ConnectError as error:
            raise TrialFailed(str(error), ReasonCode.CONNECT_REFUSED) from None
        except TrialFailed as error:
            if error.code == ReasonCode.PROBES_SILENT:
                self._raise_if_dead()
            raise
        finally:
            self._sampler.stop()

    def _until_over(self) -> Iterator[Sample]:
        own = self._own
        for fresh in fresh_samples(self._sampler):
            own.observer.progress(min(fresh[-1].stored or 0, own.records), own.records)
            begun = (fresh[-1].tasks_running or 0) + (fresh[-1].tasks_failed or 0)
            if self.seen.placement is None and begun == own.cell.at_start.tasks and (state := own.status()) is not None:
                self.settled(state)
            for sample in fresh:
                own.observer.sample(sample)
                yield sample
            if (end := next(filter(None, map(self._watch.see, fresh)), None)) is None:
                continue
            if end.dead and end.reason is not None:
                # Requests to a dead service fail, or wait for their timeout.
                self._raise_died(end.reason.text, end.dead)
            last = own.status()
            # All records may be stored before a sample sees every task run.
            if self.seen.placement is None and last is not None and last.settled(own.cell.tasks):
                self.settled(last)
            logs, config = own.logs(self.seen.from_us / 1e6), own.config
            why = None if last is None else failure(last, config, *logs)
            reasons = [] if end.reason is None else [end.reason]
            if end.reason is not None and end.reason.code in (ReasonCode.NO_PROGRESS, ReasonCode.TIMED_OUT):
                said = None if why else explained(logs[0](), config)
                text = f"{end.reason.text}; the worker's log says: {said}" if said else end.reason.text
                reasons = [end.reason.model_copy(update={"text": text})]
            self.seen = replace(self.seen, last=last, failure=why, reasons=reasons)
            return

    def _raise_if_dead(self) -> None:
        """Raises TrialFailed if a service has died: a JVM with a full heap stops answering before it exits."""
        stack = self._own.cluster.stack
        with suppress(ServiceError, OSError):
            # An external cluster only shows that it does not answer, not that it has exited.
            dead = sorted(each.name for each in stack.services() if each.state == "dead" and each.exit_code is not None)
            if dead:
                self._raise_died(died(dead, stack.usage().troubles).text, dead)

    def _raise_died(self, text: str, dead: Sequence[str]) -> None:
        with suppress(ServiceError, OSError):
            if of_memory := died_of_memory(self._own.cluster.stack.services(), dead):
                raise TrialFailed(of_memory, ReasonCode.OUT_OF_MEMORY)
        raise TrialFailed(text, ReasonCode.SERVICE_DIED)


def out_of_memory(stack: Stack) -> str | None:
    """Returns which services have died for lack of memory, and what to do; None if none has."""
    with suppress(ServiceError, OSError):
        states = stack.services()
        return died_of_memory(states, [each.name for each in states if each.state == "dead"])
    return None


def finish(own: Resources) -> None:
    """Lets an interrupted trial's connector read the rest of its topic, and stops it. Raises TrialFailed."""
    own.observer.phase("letting the connector finish, for the audit")
    name, connect, fault = own.names.connector, own.cluster.connect, own.cell.fault
    there = own.status() is not None
    if there and fault is not None and fault.what in OF_NETWORK:
        # Its configuration has the address of a proxy that is gone.
        own.stop_connector()
        there = False
    if not there:
        # Under its old name it continues at its committed offsets.
        own.start_connector_again()
    timeout = own.cluster.plan.drain.timeout_seconds
    watch, end = FaultWatch(own.records, own.cell.tasks, RESTART_SECONDS, timeout, ended=0.0), None
    # Only the committed offsets show the end.
    sampler = probes(own, always=True)
    sampler.start()
    try:
        for sample in chain.from_iterable(fresh_samples(sampler)):
            own.observer.progress(min(sample.stored or 0, own.records), own.records)
            if (deed := watch.deed(sample)) is not None:
                (connect.restart_failed if deed == Deed.RESTART_FAILED else connect.restart)(name)
            if (end := watch.see(sample)) is not None:
                break
    finally:
        sampler.stop()
    if end is not None and end.reason is not None:
        raise TrialFailed(end.reason.text, end.reason.code)
    if not watch.recovered:
        left = "some" if watch.uncommitted is None else f"{watch.uncommitted:,}"
        raise TrialFailed(f"{left} records are left to commit, and there is no progress", ReasonCode.NO_PROGRESS)
    own.stop_connector()


def uneven(placement: Mapping[str, int] | None, workers: int, tasks: int) -> str | None:
    """Returns that the tasks are not spread evenly over the workers, in words; None if they are."""
    placed = dict(placement or {})
    # If the workers' ids are not known beforehand, a worker without a task is missing in `placement`.
    busy = sum(number > 0 for number in placed.values())
    if is_even(placed) and busy >= min(workers, tasks):
        return None
    return f"the tasks are spread unevenly over the {workers} workers: {placed}"
