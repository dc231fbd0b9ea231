"""Decides from its samples when a run is over, when a user would act, and what the death of a service means. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from sinkbench.analysis.rates import progress
from sinkbench.analysis.samples import Sample, compiling_share, stored_counts
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
# After this many restarts a pipeline does not recover.
MOST_DEEDS = 3
# A service that died of another cause than a fault is given this time before the trial fails.
DEAD_SECONDS = 5.0
# Kafka keeps the partitions of a dead consumer for 45 s.
SESSION_SECONDS = 45.0
# Offsets may be committed before records reach the sink, as with a batch that is not full.
QUIET_SECONDS = 5.0
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
    """When a pilot may stop: the rate over `seconds` is hardly above the one over the same time before, and at most the
    share `most_compiling` of the CPU time went into compiling; or `longest_seconds` after the first stored record."""

    seconds: float
    most_compiling: float
    longest_seconds: float


@dataclass(frozen=True)
class End:
    """The run is over. `reason`: why its figures must not be used; `dead`: services that died."""

    reason: Reason | None = None
    dead: tuple[str, ...] = ()


class Watch(ABC):
    """Watches the samples of a run of so many records and tasks."""

    def __init__(self, records: int, tasks: int) -> None:
        self._records = records
        self._tasks = tasks
        self._alive: set[str] = set()

    @abstractmethod
    def see(self, sample: Sample) -> End | None:
        """Returns End if this sample ends the run, else None."""

    def _dead(self, sample: Sample) -> tuple[str, ...]:
        """The services that were seen alive and are not; one without CPU readings cannot be seen."""
        dead = tuple(sorted(name for name in self._alive if sample.cpu_seconds.get(name, 0.0) is None))
        self._alive |= {name for name, used in sample.cpu_seconds.items() if used is not None}
        return dead


class DrainWatch(Watch):
    """Gives up after `stall` seconds without a new record, or after `timeout` in total. A `pilot` ends earlier."""

    def __init__(self, records: int, tasks: int, stall: float, timeout: float, pilot: Enough | None = None) -> None:
        super().__init__(records, tasks)
        self._stall_seconds = stall
        self._timeout_seconds = timeout
        self._pilot = pilot
        self._stored = 0
        self._first_seconds: float | None = None
        self._moved_seconds: float | None = None
        self._failed_seconds: float | None = None
        self._has_failed = False
        self._blind = 0
        self._seen: list[Sample] = []

    def see(self, sample: Sample) -> End | None:
        now = sample.seconds
        self._moved_seconds = now if self._moved_seconds is None else self._moved_seconds
        if dead := self._dead(sample):
            return End(died(dead, sample.troubles), dead)
        if sample.troubles:
            return End(died(sorted(sample.troubles), sample.troubles))
        self._blind = self._blind + 1 if sample.stored is None else 0
        if self._blind >= BLIND_SAMPLES:
            text = f"the sink could not be read {self._blind} times: {'; '.join(sample.problems)}"
            return end_with(ReasonCode.SINK_UNREADABLE, text, times=self._blind)
        if sample.stored is not None and sample.stored > self._stored:
            self._stored = sample.stored
            self._moved_seconds = now
            self._first_seconds = now if self._first_seconds is None else self._first_seconds
        # Records may be stored twice, as another task repeats what a FAILED one wrote: only commits show the end.
        self._has_failed |= bool(sample.tasks_failed)
        ahead = self._has_failed and bool(sample.uncommitted)
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
        if now - self._moved_seconds > self._stall_seconds:
            text = f"no progress for {self._stall_seconds:g} s {so_far}"
            return end_with(ReasonCode.NO_PROGRESS, text, **figures)
        if now > self._timeout_seconds:
            text = f"not done after {self._timeout_seconds:g} s, {so_far}"
            return end_with(ReasonCode.TIMED_OUT, text, **figures)
        return None

    def _stay_failed(self, sample: Sample) -> bool:
        if sample.tasks_failed is not None and sample.tasks_failed != self._tasks:
            self._failed_seconds = None
        elif sample.tasks_failed is not None and self._failed_seconds is None:
            self._failed_seconds = sample.seconds
        return self._failed_seconds is not None and sample.seconds - self._failed_seconds >= FAILED_SECONDS

    def _pilot_is_over(self, sample: Sample) -> bool:
        enough, now = self._pilot, sample.seconds
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


class Deed(StrEnum):
    """A request to Connect for a pipeline that does not recover."""

    RESTART_FAILED = "POST /connectors/{name}/restart?includeTasks=true&onlyFailed=true"
    REDIRECT = "PUT /connectors/{name}/config, with the new primary's address in the place of the old one's"
    RESTART = "POST /connectors/{name}/restart?includeTasks=true"


class FaultWatch(Watch):
    """Watches until all records are read, after a fault or after what interrupted a trial, which do not end it.

    A user waits for FAILED tasks for `patience`, and for the whole trial until the timeout, in seconds. `ended` is when
    the fault was over. `bad` counts bad records: with own offsets those at a partition's end may stay uncommitted."""

    def __init__(self, records: int, tasks: int, patience: float, timeout: float, ended: float | None = None) -> None:
        super().__init__(records, tasks)
        self._patience = patience
        self._timeout_seconds = timeout
        self._stored: int | None = None
        self.uncommitted: int | None = None
        self._moved_seconds = 0.0
        self._failed_since: float | None = None
        self._dead_since: float | None = None
        self._gone: tuple[str, ...] = ()
        self._deeds = 0
        self.ended = ended
        self.bad = 0
        self.recovered = False

    def see(self, sample: Sample) -> End | None:
        """Returns End if all was read and nothing more is stored, or if that does not happen."""
        now, seen = sample.seconds, (self._stored, self.uncommitted)
        self._stored = self._stored if sample.stored is None else sample.stored
        self.uncommitted = self.uncommitted if sample.uncommitted is None else sample.uncommitted
        if (self._stored, self.uncommitted) != seen:
            self._moved_seconds = now
        if sample.tasks_failed is not None:
            self._failed_since = (self._failed_since or now) if sample.tasks_failed else None
        dead = self._dead(sample)
        # A pipeline that does not recover is a result.
        late = End() if now > self._timeout_seconds else None
        if self.ended is None:
            return late
        if sample.cpu_seconds:
            self._dead_since, self._gone = (self._dead_since or now) if dead else None, dead
        if self._dead_since is not None and now - max(self._dead_since, self.ended) >= DEAD_SECONDS:
            text = f"{' and '.join(self._gone)} died after the fault"
            return replace(end_with(ReasonCode.SERVICE_DIED, text), dead=self._gone)
        if self._all_read(sample) and self._failed_since is None:
            if now - max(self._moved_seconds, self.ended) >= QUIET_SECONDS:
                self.recovered = True
                return End()
        elif self._deeds >= MOST_DEEDS:
            # A FAILED task stays FAILED, and its partitions have moved to the others.
            all_failed = sample.tasks_failed is not None and sample.tasks_failed >= self._tasks
            if self._still(now) > self._patience + (0 if all_failed else SESSION_SECONDS):
                return End()
        return late

    def deed(self, sample: Sample) -> Deed | None:
        if self.ended is None or self._deeds >= MOST_DEEDS:
            return None
        failed_for = 0.0 if self._failed_since is None else sample.seconds - max(self._failed_since, self.ended)
        if failed_for >= self._patience:
            self._deeds += 1
            # The wait begins again.
            self._failed_since = self._moved_seconds = sample.seconds
            return Deed.RESTART_FAILED
        still = self._still(sample.seconds) > self._patience + SESSION_SECONDS
        if self._all_read(sample) or not sample.uncommitted or not still:
            return None
        self._deeds += 1
        self._moved_seconds = sample.seconds
        return Deed.RESTART

    def _all_read(self, sample: Sample) -> bool:
        """Whether all records are read; only bad ones may be uncommitted."""
        if sample.stored is None or sample.uncommitted is None or (sample.in_topic or 0) < self._records:
            return False
        return sample.uncommitted == 0 or (sample.uncommitted <= self.bad and sample.stored >= self._records)

    def _still(self, now: float) -> float:
        return now - max(self._moved_seconds, self.ended or 0.0)


def end_with(code: ReasonCode, text: str, **figures: float) -> End:
    return End(Reason(code=code, text=text, figures=figures))


def died(names: Sequence[str], troubles: Mapping[str, str]) -> Reason:
    """Returns the reason for these dead services, with their `troubles` where known, in one line."""
    unknown = [name for name in names if name not in troubles]
    words = [f"{' and '.join(unknown)} died during the trial"] if unknown else []
    text = "; ".join([*words, *(f"{name} {troubles[name]}" for name in names if name in troubles)])
    return Reason(code=ReasonCode.SERVICE_DIED, text=text)


def died_of_memory(states: Iterable[ServiceState], dead: Collection[str]) -> str | None:
    """Returns which of the dead services' JVMs ran out of heap, and what to do; None if none did."""
    used_up = [each.name for each in states if each.name in dead and each.exit_code == EXIT_CODE]
    if not (names := {name: service_of(name) for name in used_up if service_of(name) in _HEAPS}):
        return None
    its, it = ("its Java heap was", "it") if len(names) == 1 else ("their Java heaps were", "them")
    settings = " and ".join(dict.fromkeys(_HEAPS[service] for service in names.values()))
    less = f", or {_HOLD_LESS}" if "connect" in names.values() else ""
    died = f"{' and '.join(names)} died, out of memory: {its} used up (exit code {EXIT_CODE})"
    return f"{died}; give {it} more ({settings}){less}"
