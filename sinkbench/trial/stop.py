"""Decides when a drain is over, and what the death of a service means. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sinkbench.analysis.rates import progress
from sinkbench.analysis.samples import Sample, stored_counts
from sinkbench.analysis.warm import compiling_share
from sinkbench.errors import ReasonCode
from sinkbench.results import Reason
from sinkbench.stack import ServiceState
from sinkbench.topology import service_of

# After this many failed readings in a row the sink is gone, not slow.
BLIND_SAMPLES = 40
# Tasks notice a dead service before its container or process is read again; the dead service is then the reason.
FAILED_SECONDS = 3.0
# A rate above this multiple of the previous one still rises. If compilers are visible they show whether a JVM is warm,
# and the limit is wider: on a shared machine the rate would seldom be so level.
STILL_RISING, STILL_RISING_IF_SEEN = 1.05, 1.15
# With -XX:+ExitOnOutOfMemoryError, which connect/run and Elasticsearch set. A worker that cannot start has the
# same exit code, but one that ran tasks did start.
EXIT_CODE = 3
_HEAPS = {"connect": "SINKBENCH_CONNECT_HEAP", "elasticsearch": "SINKBENCH_ELASTICSEARCH_HEAP"}
_HOLD_LESS = (
    "have tasks hold less: consumer.override.max.poll.records, consumer.override.max.partition.fetch.bytes, the"
    " connector's batch or aggregate"
)


@dataclass(frozen=True)
class Enough:
    """When a pilot may stop.

    Attributes:
        seconds: the rate over this time is hardly above the one over the same time before, and
        most_compiling: at most this share of the CPU time went into compiling;
        longest_seconds: or this time has passed since the first record was stored.
    """

    seconds: float
    most_compiling: float
    longest_seconds: float


@dataclass(frozen=True)
class Timeouts:
    """When to give up: `stall_seconds` without a new record, or `timeout_seconds` in total. A `pilot` ends earlier."""

    stall_seconds: float
    timeout_seconds: float
    pilot: Enough | None = None


@dataclass(frozen=True)
class End:
    """The drain is over. `reason`: why its figures must not be used; `dead`: services that died."""

    reason: Reason | None = None
    dead: tuple[str, ...] = ()


class Watch(Protocol):
    def see(self, sample: Sample) -> End | None:
        """Returns End if this sample ends the run, else None."""


class DrainWatch:
    def __init__(self, records: int, tasks: int, timeouts: Timeouts) -> None:
        self._records = records
        self._tasks = tasks
        self._timeouts = timeouts
        self._stored = 0
        self._first_seconds: float | None = None
        self._moved_seconds: float | None = None
        self._failed_seconds: float | None = None
        self._has_failed = False
        self._blind = 0
        self._alive: set[str] = set()
        self._seen: list[Sample] = []

    def see(self, sample: Sample) -> End | None:
        now = sample.seconds
        self._moved_seconds = now if self._moved_seconds is None else self._moved_seconds
        dead = tuple(sorted(name for name in self._alive if sample.cpu_seconds.get(name, 0.0) is None))
        if dead:
            return End(died(dead, sample.troubles), dead)
        if sample.troubles:
            return End(died(sorted(sample.troubles), sample.troubles))
        self._alive |= {name for name, used in sample.cpu_seconds.items() if used is not None}
        self._blind = self._blind + 1 if sample.stored is None else 0
        if self._blind >= BLIND_SAMPLES:
            text = f"the sink could not be read {self._blind} times: {'; '.join(sample.problems)}"
            return end_with(ReasonCode.SINK_UNREADABLE, text, times=self._blind)
        if sample.stored is not None and sample.stored > self._stored:
            self._stored = sample.stored
            self._moved_seconds = now
            self._first_seconds = now if self._first_seconds is None else self._first_seconds
        ahead = self._runs_ahead(sample)
        if self._stored >= self._records and not ahead:
            return End()
        if sample.in_topic is not None and self._stored >= sample.in_topic and not ahead:
            # All records so far are stored; the generator has to send more.
            self._moved_seconds = now
        if self._pilot_is_over(sample):
            return End()
        so_far, figures = f"at {self._stored:,} of {self._records:,} records", {"stored": self._stored}
        if self._stay_failed(sample):
            text = f"all {self._tasks} tasks FAILED {so_far}"
            return end_with(ReasonCode.TASKS_FAILED, text, failed=self._tasks, tasks=self._tasks, **figures)
        if now - self._moved_seconds > self._timeouts.stall_seconds:
            text = f"no progress for {self._timeouts.stall_seconds:g} s {so_far}"
            return end_with(ReasonCode.NO_PROGRESS, text, **figures)
        if now > self._timeouts.timeout_seconds:
            text = f"not done after {self._timeouts.timeout_seconds:g} s, {so_far}"
            return end_with(ReasonCode.TIMED_OUT, text, **figures)
        return None

    def _runs_ahead(self, sample: Sample) -> bool:
        """Whether records may be stored twice, as another task repeats what a FAILED one wrote: only commits show the
        end.
        """
        self._has_failed |= bool(sample.tasks_failed)
        return self._has_failed and bool(sample.uncommitted)

    def _stay_failed(self, sample: Sample) -> bool:
        if sample.tasks_failed is not None and sample.tasks_failed != self._tasks:
            self._failed_seconds = None
        elif sample.tasks_failed is not None and self._failed_seconds is None:
            self._failed_seconds = sample.seconds
        return self._failed_seconds is not None and sample.seconds - self._failed_seconds >= FAILED_SECONDS

    def _pilot_is_over(self, sample: Sample) -> bool:
        enough, now = self._timeouts.pilot, sample.seconds
        if enough is None or self._first_seconds is None:
            return False
        self._seen.append(sample)
        if now - self._first_seconds >= enough.longest_seconds:
            return True
        if now - self._first_seconds < 2 * enough.seconds:
            return False
        marks = [now - 2 * enough.seconds, now - enough.seconds, now]
        before, middle, end = np.interp(marks, *progress(*stored_counts(self._seen)))
        compiling = compiling_share(self._seen, marks[1], now)
        rise = STILL_RISING if compiling is None else STILL_RISING_IF_SEEN
        return bool(end - middle <= rise * (middle - before)) and (compiling or 0.0) <= enough.most_compiling


def end_with(code: ReasonCode, text: str, **figures: float) -> End:
    return End(Reason(code=code, text=text, figures=figures))


def died(names: Sequence[str], troubles: Mapping[str, str]) -> Reason:
    """Returns the reason for these dead services, with their `troubles` where known, in one line."""
    unknown = [name for name in names if name not in troubles]
    words = [f"{' and '.join(unknown)} died during the trial"] if unknown else []
    text = "; ".join([*words, *(f"{name} {troubles[name]}" for name in names if name in troubles)])
    return Reason(code=ReasonCode.SERVICE_DIED, text=text)


def used_up_heaps(states: Iterable[ServiceState], dead: Collection[str]) -> list[str]:
    """Returns the dead services whose JVM ran out of heap, in the order of `states`."""
    return [
        each.name
        for each in states
        if each.name in dead and each.exit_code == EXIT_CODE and service_of(each.name) in _HEAPS
    ]


def exhausted_in_words(names: Collection[str]) -> str:
    """Returns that these services ran out of memory, and what to do. At least one name is needed."""
    services = dict.fromkeys(map(service_of, names))
    its, it = ("its Java heap was", "it") if len(names) == 1 else ("their Java heaps were", "them")
    settings = " and ".join(_HEAPS[service] for service in services)
    less = f", or {_HOLD_LESS}" if "connect" in services else ""
    died = f"{' and '.join(names)} died, out of memory: {its} used up (exit code {EXIT_CODE})"
    return f"{died}; give {it} more ({settings}){less}"


def advice_on_memory(cause: str) -> str:
    """Returns why tasks without memory FAILED, and what to do; `cause` is the tasks' message."""
    return f"out of memory ({cause}); give the workers more heap ({_HEAPS['connect']}), or {_HOLD_LESS}"
