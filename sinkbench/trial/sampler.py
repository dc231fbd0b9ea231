"""Reads each service at a fixed interval and keeps the readings as samples."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import psutil

from sinkbench.analysis.samples import CONTROLLER, MACHINE, RESIDENT, STOLEN, Sample, by_service
from sinkbench.errors import ReasonCode, ServiceError, ServiceTimeout, TrialFailed
from sinkbench.services.connect import ConnectorStatus
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import PoolReading, SinkReading
from sinkbench.stack import Usage
from sinkbench.topology import service_of

# A sampler without a sample for this time hangs in a request to a dead service.
SILENCE_SECONDS = 30.0
# An answer that takes longer, or a reading that is older than this and its interval, is a gap.
STALE_SECONDS = 1.5
# A hanging read ends by its client's timeout; the sampler does not wait for that.
ENDING_SECONDS = 3.0
# The services whose silence can explain why nothing is stored. A sink that does not answer is a stall by itself.
ASKED = {"in_topic": "kafka", "consumed": "kafka", "status": "connect", "pool": "pgbouncer"}


@dataclass(frozen=True)
class Sources:
    """What a sampler reads. Each source may raise ServiceError or OSError."""

    sink: Callable[[], SinkReading]
    in_topic: Callable[[], int]
    consumed: Callable[[], int | None] = lambda: None
    status: Callable[[], ConnectorStatus | None] = lambda: None
    pool: Callable[[], PoolReading] = PoolReading
    usage: Callable[[], Usage] = Usage
    tasks: Callable[[], Mapping[str, float]] = dict


def fresh_samples(sampler: "Sampler") -> Iterator[list[Sample]]:
    """Yields new samples as they come, without an end. Raises TrialFailed if the sampler hangs."""
    # Connect may have been rebalancing before it accepted the connector; no progress was due in that time.
    seen = len(sampler.samples)
    while True:
        if not (fresh := sampler.wait(seen, SILENCE_SECONDS)):
            silence = f"the probes have had no answer for {SILENCE_SECONDS:.0f} s"
            raise TrialFailed(silence, ReasonCode.PROBES_SILENT)
        seen += len(fresh)
        yield fresh


class Sampler:
    """Reads all sources at a fixed interval in a thread. A slow reading delays the next; none is repeated."""

    def __init__(
        self,
        sources: Sources,
        interval_seconds: float,
        background: Mapping[str, float] | None = None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """The sources in `background` are read at their own intervals, in seconds, and cannot delay the others."""
        self._stopping = threading.Event()
        self._probes = {
            name: BackgroundProbe(name, getattr(sources, name), seconds, self._stopping)
            for name, seconds in (background or {}).items()
        }
        self._sources = replace(sources, **self._probes)
        self._interval_seconds = interval_seconds
        self._close = close
        self._samples: list[Sample] = []
        self._answered: dict[str, float] = {}
        self._fresh = threading.Condition()
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
        """Starts sampling; returns the time of the samples' second 0 in microseconds since the epoch."""
        for each in self._probes.values():
            each.thread.start()
        self._second_zero, began_ns = time.monotonic(), time.time_ns()
        self._thread.start()
        return began_ns // 1000

    def stop(self) -> None:
        """Stops after the current reading. Raises the error of the thread, if any."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
            deadline = time.monotonic() + ENDING_SECONDS
            for each in self._probes.values():
                each.thread.join(max(0.0, deadline - time.monotonic()))
        self._close()
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
        silent: dict[str, float] = {}

        def ask(name: str) -> Any:
            source, began, found = getattr(self._sources, name), time.monotonic(), None
            since, late = self._answered.get(name), False
            try:
                found = source()
                late = time.monotonic() - began > STALE_SECONDS
                self._answered[name] = getattr(source, "answered", time.monotonic())
            except (ServiceError, OSError) as error:
                problems.append(in_one_line(error))
                late = True
            if late and since is not None and name in ASKED:
                silent.setdefault(ASKED[name], since - self._second_zero)
            return found

        before = time.monotonic()
        sink = ask("sink")
        answered = time.monotonic()
        # A late answer shows the end of the wait: the sink was delayed before it counted.
        seconds = answered - min(answered - before, self._interval_seconds) / 2 - self._second_zero
        in_topic, consumed, status = ask("in_topic"), ask("consumed"), ask("status")
        pool, tasks = ask("pool") or PoolReading(), ask("tasks") or {}
        own = self._me.cpu_times()
        usage = ask("usage") or Usage()
        return Sample(
            seconds=seconds,
            stored=None if sink is None else sink.stored,
            uncommitted=None if consumed is None or in_topic is None else max(in_topic - consumed, 0),
            backends=None if sink is None else sink.backends,
            pool_clients=pool.clients,
            pool_servers=pool.servers,
            tasks_running=None if status is None else status.running,
            tasks_failed=None if status is None else len(status.failed),
            cpu_seconds={**usage.cpu_seconds, CONTROLLER: own.user + own.system},
            problems=tuple(problems),
            troubles=usage.troubles,
            in_topic=in_topic,
            signs={**({} if sink is None else sink.signs), **pool.signs, **tasks, **usage_signs(usage)},
            silent=silent,
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


class BackgroundProbe:
    """Reads a source repeatedly in a thread. A call returns the last reading or its error, ServiceTimeout if old."""

    def __init__(self, name: str, read: Callable[[], Any], interval_seconds: float, stopping: threading.Event) -> None:
        self._name = name
        self._read = read
        self._interval_seconds = interval_seconds
        self._last: tuple[float, Any] | None = None
        self._asked = threading.Event()
        self.answered = 0.0
        """Monotonic time of the last answer."""
        self._stopping = stopping
        self.thread = threading.Thread(target=self._run, name=f"probe of {name}", daemon=True)

    def __call__(self) -> Any:
        self._asked.wait(STALE_SECONDS)
        last, longest = self._last, STALE_SECONDS + self._interval_seconds
        if last is None or time.monotonic() - last[0] > longest:
            raise ServiceTimeout(f"{self._name}: no answer for {longest:g} s")
        if isinstance(last[1], Exception):
            raise last[1]
        return last[1]

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                found = self._read()
                self.answered = time.monotonic()
            except Exception as error:  # noqa: BLE001 - raised again in the thread that asks
                found = error
            self._last = time.monotonic(), found
            self._asked.set()
            self._stopping.wait(self._interval_seconds)
