"""Reads each service at a fixed interval and keeps the readings as samples."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import psutil

from sinkbench.analysis.memory import RESIDENT
from sinkbench.analysis.samples import CONTROLLER, MACHINE, STOLEN, Sample, by_service
from sinkbench.errors import ReasonCode, ServiceError, ServiceTimeout, TrialFailed
from sinkbench.services.connect import ConnectorStatus
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import SinkReading
from sinkbench.stack import Usage
from sinkbench.topology import service_of

# A sampler without a sample for this time hangs in a request to a dead service.
SILENCE_SECONDS = 30.0
# An older reading of a background probe says nothing about now.
STALE_SECONDS = 2.5
# A hanging read ends by its client's timeout; the sampler does not wait for that.
ENDING_SECONDS = 3.0

Read = TypeVar("Read")


@dataclass(frozen=True)
class Sources:
    """What a sampler reads. Each source is called in the sampler's thread and may raise ServiceError or OSError."""

    sink: Callable[[], SinkReading]
    in_topic: Callable[[], int]
    consumed: Callable[[], int | None] = lambda: None
    status: Callable[[], ConnectorStatus | None] = lambda: None
    usage: Callable[[], Usage] = Usage
    tasks: Callable[[], Mapping[str, float]] = dict


def throttled(
    read: Callable[[], Read], seconds: float, meanwhile: Callable[[], Read] | None = None
) -> Callable[[], Read]:
    """Limits a source to one call per `seconds`, with `meanwhile` or its last value in between; not after an error."""
    last: list[Read] = []
    next_at = -math.inf

    def read_or_wait() -> Read:
        nonlocal next_at
        if time.monotonic() < next_at:
            return last[0] if meanwhile is None else meanwhile()
        last[:] = [read()]
        next_at = time.monotonic() + seconds
        return last[0]

    return read_or_wait


def fresh_samples(sampler: Sampler) -> Iterator[list[Sample]]:
    """Yields new samples as they come, without an end. Raises TrialFailed if the sampler hangs."""
    # Connect may have been rebalancing before it accepted the connector; no progress was due in that time.
    seen = len(sampler.samples)
    while True:
        fresh = sampler.wait(seen, SILENCE_SECONDS)
        if not fresh:
            silence = f"the probes have had no answer for {SILENCE_SECONDS:.0f} s"
            raise TrialFailed(silence, ReasonCode.PROBES_SILENT)
        seen += len(fresh)
        yield fresh


class Sampler:
    """Reads all sources at a fixed interval in a thread. A slow reading delays the next; none is repeated."""

    def __init__(self, sources: Sources, interval_seconds: float) -> None:
        self._sources = sources
        self._interval_seconds = interval_seconds
        self._samples: list[Sample] = []
        self._fresh = threading.Condition()
        self._stopping = threading.Event()
        self._fault: Exception | None = None
        self._me = psutil.Process()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        # Monotonic time of the samples' second 0.
        self._second_zero = time.monotonic()

    @property
    def samples(self) -> list[Sample]:
        with self._fresh:
            return list(self._samples)

    def now(self) -> float:
        """Current time in seconds on the samples' clock."""
        return time.monotonic() - self._second_zero

    def start(self) -> int:
        """Takes the first sample; returns the time of the samples' second 0 in microseconds since the epoch."""
        self._second_zero, began_ns = time.monotonic(), time.time_ns()
        self._thread.start()
        return began_ns // 1000

    def stop(self) -> None:
        """Stops after the current reading. Raises the error of the thread, if any."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._fault is not None:
            raise self._fault

    def wait(self, seen: int, timeout_seconds: float) -> list[Sample]:
        with self._fresh:
            self._fresh.wait_for(lambda: len(self._samples) > seen or self._fault is not None, timeout_seconds)
            if self._fault is not None:
                raise self._fault
            return self._samples[seen:]

    def _run(self) -> None:
        due = self._second_zero
        try:
            while not self._stopping.is_set():
                sample = self._read()
                with self._fresh:
                    self._samples.append(sample)
                    self._fresh.notify_all()
                due = max(due + self._interval_seconds, time.monotonic())
                self._stopping.wait(due - time.monotonic())
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits for samples
            with self._fresh:
                self._fault = error
                self._fresh.notify_all()

    def _read(self) -> Sample:
        problems: list[str] = []

        def attempt(read: Callable[[], Read]) -> Read | None:
            try:
                return read()
            except (ServiceError, OSError) as error:
                problems.append(in_one_line(error))
                return None

        before = time.monotonic()
        sink = attempt(self._sources.sink)
        answered = time.monotonic()
        # A late answer shows the end of the wait: the sink was delayed before it counted.
        seconds = answered - min(answered - before, self._interval_seconds) / 2 - self._second_zero
        in_topic = attempt(self._sources.in_topic)
        consumed = attempt(self._sources.consumed)
        status = attempt(self._sources.status)
        tasks = attempt(self._sources.tasks) or {}
        own = self._me.cpu_times()
        usage = attempt(self._sources.usage) or Usage()
        return Sample(
            seconds=seconds,
            stored=None if sink is None else sink.stored,
            uncommitted=None if consumed is None or in_topic is None else max(in_topic - consumed, 0),
            backends=None if sink is None else sink.backends,
            pool_clients=None if sink is None else sink.pool_clients,
            pool_servers=None if sink is None else sink.pool_servers,
            tasks_running=None if status is None else status.running,
            tasks_failed=None if status is None else len(status.failed),
            cpu_seconds={**usage.cpu_seconds, CONTROLLER: own.user + own.system},
            problems=tuple(problems),
            troubles=usage.troubles,
            in_topic=in_topic,
            signs={
                **({} if sink is None else sink.signs),
                **tasks,
                **usage_signs(usage),
            },
        )


def usage_signs(usage: Usage) -> dict[str, float]:
    """Figures of JVMs, memory and the machine by service. A service with an unreadable process has no memory figure."""
    signs: dict[str, float] = {}
    for name, parts in usage.jvm_cpu_seconds.items():
        for part, seconds in parts.items():
            sign = f"{service_of(name)}_{part}_cpu_seconds_total"
            signs[sign] = signs.get(sign, 0.0) + seconds
    memory = by_service(usage.memory_bytes.items())
    signs |= {service + RESIDENT: total for service, total in memory.items() if total is not None}
    if usage.machine is not None:
        signs |= {MACHINE: usage.machine.busy_seconds, STOLEN: usage.machine.stolen_seconds}
    return signs


class BackgroundProbe(Generic[Read]):
    """Reads a source repeatedly in a thread. A call returns the last reading or its error, ServiceTimeout if old."""

    def __init__(self, name: str, read: Callable[[], Read], interval_seconds: float) -> None:
        self._read = read
        self._name = name
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._last: tuple[float, Read | Exception] | None = None
        self._thread = threading.Thread(target=self._run, name=f"probe of {name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(ENDING_SECONDS)

    def __call__(self) -> Read:
        last = self._last
        if last is None or time.monotonic() - last[0] > STALE_SECONDS + self._interval_seconds:
            raise ServiceTimeout(f"{self._name}: no answer for {STALE_SECONDS + self._interval_seconds:g} s")
        found = last[1]
        if isinstance(found, Exception):
            raise found
        return found

    def _run(self) -> None:
        while not self._stopping.is_set():
            found: Read | Exception
            try:
                found = self._read()
            except Exception as error:  # noqa: BLE001 - raised again in the thread that asks
                found = error
            self._last = time.monotonic(), found
            self._stopping.wait(self._interval_seconds)


class BackgroundSampler(Sampler):
    """A sampler that continues while services do not answer."""

    def __init__(
        self, sources: Sources, interval_seconds: float, slow_seconds: float, close: Callable[[], None]
    ) -> None:
        """Sink and topic are read every `interval_seconds`, the other sources every `slow_seconds`."""
        intervals = {"sink": interval_seconds, "in_topic": interval_seconds}
        self._probes: dict[str, BackgroundProbe[Any]] = {
            each.name: BackgroundProbe(each.name, getattr(sources, each.name), intervals.get(each.name, slow_seconds))
            for each in fields(Sources)
        }
        self._close = close
        super().__init__(Sources(**self._probes), interval_seconds)

    def start(self) -> int:
        for each in self._probes.values():
            each.start()
        return super().start()

    def stop(self) -> None:
        super().stop()
        stopped = [threading.Thread(target=each.stop, daemon=True) for each in self._probes.values()]
        for thread in stopped:
            thread.start()
        for thread in stopped:
            thread.join()
        self._close()
