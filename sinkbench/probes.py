"""The probes of a trial: every interval, one reading of each service, kept as a row of samples."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import psutil
from confluent_kafka import KafkaException
from httpx import HTTPError
from psycopg import Error as PostgresError

from elasticsearch import ApiError, TransportError
from sinkbench.connect import ConnectorStatus
from sinkbench.errors import ConnectError, StackError
from sinkbench.secrets import redacted
from sinkbench.sinks import SinkReading

__all__ = ["CLIENT_ERRORS", "CONTROLLER", "Sample", "Sampler", "Sources", "in_one_line"]

Read = TypeVar("Read")

CONTROLLER = "controller"
# What a service that is overloaded, or gone, makes its client raise; anything else is a fault of ours.
CLIENT_ERRORS = (OSError, HTTPError, KafkaException, ApiError, TransportError, PostgresError, StackError, ConnectError)


def in_one_line(error: Exception) -> str:
    """A client's error for a person: its kind and what it says, which may be many lines, in one short one."""
    # Before it is cut: half a secret would not be found any more.
    return " ".join(redacted(f"{type(error).__name__}: {error}").split())[:200]


@dataclass(frozen=True)
class Sources:
    """Where a sampler reads. Each is called in the sampler's thread and may raise CLIENT_ERRORS.

    What is left out is not looked at.

    Attributes:
        sink: how the sink stands.
        consumed: sum of the offsets that the connector's group has committed.
        status: the connector and its tasks.
        cpu_seconds: CPU seconds of each service so far; a service that was not looked at this time is not in it.
        troubles: what is wrong with services, by their names.
        in_topic: records in the topic.
        tasks: the signs that the workers' metrics give of the connector's tasks; empty when they were not looked at.
        machine: CPU seconds that all processes of the machine together have used so far; None if that is not known.
    """

    sink: Callable[[], SinkReading]
    in_topic: Callable[[], int]
    consumed: Callable[[], int | None] = lambda: None
    status: Callable[[], ConnectorStatus | None] = lambda: None
    cpu_seconds: Callable[[], Mapping[str, float | None]] = dict
    troubles: Callable[[], Mapping[str, str]] = dict
    tasks: Callable[[], Mapping[str, float]] = dict
    machine: Callable[[], float | None] = lambda: None


@dataclass(frozen=True)
class Sample:
    """One reading of everything; None is what could not be read.

    Attributes:
        seconds: when, since the sampler started; the moment at which `stored` was read.
        stored: records in the sink.
        lag: records that the connector's group has not committed yet; it commits every few seconds.
        backends, pool_clients, pool_servers: connections, as in SinkReading.
        tasks_running, tasks_failed: number of tasks in that state.
        cpu_seconds: of each service since it started, and of the controller itself; None for one that is gone, absent
            for one that was not looked at.
        troubles: what is wrong with services, by their names.
        problems: what went wrong while reading, if anything did.
        signs: further readings by name, as in SinkReading, of the tasks and of the machine too; what was not read this
            time is absent, never repeated.
        in_topic: records in the topic, just after `stored` was read.
    """

    seconds: float
    stored: int | None
    lag: int | None
    backends: int | None
    pool_clients: int | None
    pool_servers: int | None
    tasks_running: int | None
    tasks_failed: int | None
    cpu_seconds: Mapping[str, float | None] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    troubles: Mapping[str, str] = field(default_factory=dict)
    signs: Mapping[str, float] = field(default_factory=dict)
    in_topic: int | None = None

    def row(self) -> dict[str, float | int | str | None]:
        """The sample as a flat row for a table of samples; CPU seconds in a column for each service."""
        return {
            "seconds": round(self.seconds, 4),
            "stored": self.stored,
            "in_topic": self.in_topic,
            "lag": self.lag,
            "backends": self.backends,
            "pool_clients": self.pool_clients,
            "pool_servers": self.pool_servers,
            "tasks_running": self.tasks_running,
            "tasks_failed": self.tasks_failed,
            **{
                f"cpu_seconds_{name}": None if used is None else round(used, 3)
                for name, used in self.cpu_seconds.items()
            },
            **{name: round(value, 4) for name, value in self.signs.items()},
            "problems": "; ".join([*self.problems, *(f"{name} {text}" for name, text in self.troubles.items())])
            or None,
        }


class Sampler:
    """Reads all sources at a fixed interval, in a thread of its own, until it is stopped.

    A reading that takes longer than the interval makes the next one late, never a second one at the same time; the
    readings that were missed are not made up for.
    """

    def __init__(self, sources: Sources, interval_seconds: float) -> None:
        """
        Args:
            sources: where to read.
            interval_seconds: time from one reading to the next.
        """
        self._sources = sources
        self._interval_seconds = interval_seconds
        self._samples: list[Sample] = []
        self._fresh = threading.Condition()
        self._stopping = threading.Event()
        self._fault: Exception | None = None
        self._me = psutil.Process()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    @property
    def samples(self) -> list[Sample]:
        """All samples so far, oldest first."""
        with self._fresh:
            return list(self._samples)

    def start(self) -> int:
        """Takes the first sample at once.

        Returns:
            When the samples' second 0 is, in microseconds since the epoch.
        """
        self._started, began_ns = time.monotonic(), time.time_ns()
        self._thread.start()
        return began_ns // 1000

    def stop(self) -> None:
        """Ends it after the reading that is going on. Raises what went wrong in its thread, if anything did."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._fault is not None:
            raise self._fault

    def wait(self, seen: int, timeout_seconds: float) -> list[Sample]:
        """Waits for samples beyond the first `seen` of them and returns those; none if none came in time."""
        with self._fresh:
            self._fresh.wait_for(lambda: len(self._samples) > seen or self._fault is not None, timeout_seconds)
            if self._fault is not None:
                raise self._fault
            return self._samples[seen:]

    def _run(self) -> None:
        due = self._started
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
            except CLIENT_ERRORS as error:
                problems.append(in_one_line(error))
                return None

        before = time.monotonic()
        sink = attempt(self._sources.sink)
        seconds = (before + time.monotonic()) / 2 - self._started
        in_topic = attempt(self._sources.in_topic)
        consumed = attempt(self._sources.consumed)
        status = attempt(self._sources.status)
        tasks = attempt(self._sources.tasks) or {}
        machine = attempt(self._sources.machine)
        own = self._me.cpu_times()
        cpu_seconds = {**(attempt(self._sources.cpu_seconds) or {}), CONTROLLER: own.user + own.system}
        troubles = attempt(self._sources.troubles) or {}
        return Sample(
            seconds=seconds,
            stored=None if sink is None else sink.stored,
            lag=None if consumed is None or in_topic is None else max(in_topic - consumed, 0),
            backends=None if sink is None else sink.backends,
            pool_clients=None if sink is None else sink.pool_clients,
            pool_servers=None if sink is None else sink.pool_servers,
            tasks_running=None if status is None else status.running,
            tasks_failed=None if status is None else len(status.failed),
            cpu_seconds=cpu_seconds,
            problems=tuple(problems),
            troubles=troubles,
            in_topic=in_topic,
            signs={
                **({} if sink is None else sink.signs),
                **tasks,
                **({} if machine is None else {"machine_cpu_seconds_total": machine}),
            },
        )
