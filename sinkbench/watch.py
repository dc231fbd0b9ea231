"""When a drain is over, and what its samples say: pure decisions over samples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sinkbench.probes import Sample
from sinkbench.stats import HIGH_SHARE, LOW_SHARE, progress

__all__ = [
    "NOT_DONE",
    "DrainWatch",
    "End",
    "Limits",
    "connection_peaks",
    "cpu_seconds_per_million",
    "rejected_writes",
    "service_of",
    "stored_counts",
    "used_up",
    "window_seconds",
]

# So many readings of the sink that fail one after the other are a sink that is gone, not one that is slow.
BLIND_SAMPLES = 40
# A rate that is higher than this many times the one before is still rising; less is noise.
STILL_RISING = 1.05
# So few connections that are left do not make another task's pool; two are sinkbench's own.
UNSEEN_CONNECTIONS = 10

NOT_DONE = "not done after"
"""How the reason of a trial begins that only took too long."""


@dataclass(frozen=True)
class Limits:
    """When to give up.

    Attributes:
        stall_seconds: no further record stored for so long.
        timeout_seconds: the whole drain takes longer.
        pilot: None where all records must be stored; else the lengths of a pilot, in seconds: enough was seen when the
            rate over the first length is no longer above that over as much time before, or after the second length.
    """

    stall_seconds: float
    timeout_seconds: float
    pilot: tuple[float, float] | None = None


@dataclass(frozen=True)
class End:
    """The drain is over. `reason` says why its numbers must not be used, None if they may be; `dead` names services."""

    reason: str | None = None
    dead: tuple[str, ...] = ()


class DrainWatch:
    """Looks at one sample after the other and says when the drain is over."""

    def __init__(self, records: int, tasks: int, limits: Limits) -> None:
        """
        Args:
            records: how many there are in the topic.
            tasks: how many tasks were asked for.
            limits: when to give up.
        """
        self._records = records
        self._tasks = tasks
        self._limits = limits
        self._stored = 0
        self._first_seconds: float | None = None
        self._moved_seconds: float | None = None
        self._blind = 0
        self._alive: set[str] = set()
        self._times: list[float] = []
        self._counts: list[int] = []

    def see(self, sample: Sample) -> End | None:
        """What the next sample means: End if the drain is over, None if it goes on."""
        now = sample.seconds
        self._moved_seconds = now if self._moved_seconds is None else self._moved_seconds
        dead = tuple(sorted(name for name in self._alive if sample.cpu_seconds.get(name, 0.0) is None))
        if dead:
            return End(_what_befell(dead, sample.troubles), dead)
        if sample.troubles:
            return End(_what_befell(sorted(sample.troubles), sample.troubles))
        self._alive |= {name for name, used in sample.cpu_seconds.items() if used is not None}
        self._blind = self._blind + 1 if sample.stored is None else 0
        if self._blind >= BLIND_SAMPLES:
            return End(f"the sink could not be read {self._blind} times: {'; '.join(sample.problems)}")
        if sample.stored is not None and sample.stored > self._stored:
            self._stored = sample.stored
            self._moved_seconds = now
            self._first_seconds = now if self._first_seconds is None else self._first_seconds
        if self._stored >= self._records:
            return End()
        if sample.in_topic is not None and self._stored >= sample.in_topic:
            # All that there is is stored; what is still to come is the generator's business.
            self._moved_seconds = now
        if self._pilot_is_over(now):
            return End()
        so_far = f"at {self._stored:,} of {self._records:,} records"
        if sample.tasks_failed == self._tasks:
            return End(f"all {self._tasks} tasks FAILED {so_far}")
        if now - self._moved_seconds > self._limits.stall_seconds:
            return End(f"no progress for {self._limits.stall_seconds:g} s {so_far}")
        if now > self._limits.timeout_seconds:
            return End(f"{NOT_DONE} {self._limits.timeout_seconds:g} s, {so_far}")
        return None

    def _pilot_is_over(self, now: float) -> bool:
        if self._limits.pilot is None or self._first_seconds is None:
            return False
        half, longest = self._limits.pilot
        self._times.append(now)
        self._counts.append(self._stored)
        if now - self._first_seconds >= longest:
            return True
        if now - self._first_seconds < 2 * half:
            return False
        before, middle, end = np.interp([now - 2 * half, now - half, now], self._times, self._counts)
        return bool(end - middle <= STILL_RISING * (middle - before))


def _what_befell(names: Sequence[str], troubles: Mapping[str, str]) -> str:
    """The services in one line: those of which nothing is known but that they died together, then the others."""
    unknown = [name for name in names if name not in troubles]
    died = [f"{' and '.join(unknown)} died during the trial"] if unknown else []
    return "; ".join([*died, *(f"{name} {troubles[name]}" for name in names if name in troubles)])


def stored_counts(samples: Sequence[Sample]) -> tuple[list[float], list[float]]:
    """When each sample was taken and how many records the sink held, NaN where it could not be read."""
    times = [sample.seconds for sample in samples]
    return times, [np.nan if sample.stored is None else float(sample.stored) for sample in samples]


def window_seconds(samples: Sequence[Sample], records: int) -> float | None:
    """How long the drain took, from the first record stored to the last; None if not all were stored.

    Its resolution is the sampling interval at either end; the first record came after the last sample without any.
    """
    times, counts = progress(*stored_counts(samples))
    if counts.size == 0 or counts[-1] < records:
        return None
    first = int(np.searchsorted(counts, 0, side="right"))
    last = int(np.searchsorted(counts, records, side="left"))
    return float(times[last] - times[max(first - 1, 0)])


def used_up(samples: Sequence[Sample], connection_limit: int | None) -> int | None:
    """The most connections of the database seen at once if they were, but for a few, all that it accepts; else None.

    A task that gets no connection does not always say so: the library that asked for it may fail over what it wanted to
    look up first. A few are never seen: sinkbench's own, those that are just being refused, and the rest that is too
    small for another task.
    """
    peak = max((sample.backends for sample in samples if sample.backends is not None), default=0)
    return peak if connection_limit is not None and peak >= connection_limit - UNSEEN_CONNECTIONS else None


def connection_peaks(samples: Sequence[Sample]) -> tuple[int | None, int | None]:
    """The most connections seen at once: (those that clients opened, those that the database served).

    Through a pooler these are two things; without one, every connection of a client is one of the database.
    """
    backends = [sample.backends for sample in samples if sample.backends is not None]
    clients = [sample.pool_clients for sample in samples if sample.pool_clients is not None]
    servers = [sample.pool_servers for sample in samples if sample.pool_servers is not None]
    if any(clients):
        return max(clients), max(servers)
    return (max(backends), max(backends)) if backends else (None, None)


def rejected_writes(samples: Sequence[Sample]) -> int:
    """How many writes the sink has rejected from the first sample to the last; 0 where it does not count them."""
    counts = [count for sample in samples if (count := sample.signs.get("es_write_rejected_total")) is not None]
    # Of a node that has started anew the count begins anew, too.
    return max(0, round(counts[-1] - counts[0])) if counts else 0


def service_of(name: str) -> str:
    """What a process is one of: "connect" of "connect-2"."""
    return re.sub(r"-\d+$", "", name)


def cpu_seconds_per_million(samples: Sequence[Sample], records: int) -> dict[str, float | None]:
    """CPU seconds that each service used for a million records, over the window between 10 % and 90 % of them.

    Args:
        samples: of one drain.
        records: how many were drained.

    Returns:
        By service, those that may be several added up ("connect-1" and on as "connect"), and the controller, whose
        probes run all the while;
        None for a service that could not be seen; empty if the drain did not reach 90 %.
    """
    times, counts = progress(*stored_counts(samples))
    if counts.size == 0 or counts[-1] < HIGH_SHARE * records:
        return {}
    start, end = np.interp([LOW_SHARE * records, HIGH_SHARE * records], counts, times)
    used: dict[str, float | None] = {}
    for name in dict.fromkeys(name for sample in samples for name in sample.cpu_seconds):
        seconds = _used_between(samples, name, float(start), float(end))
        service = service_of(name)
        before = used.get(service, 0.0)
        used[service] = None if seconds is None or before is None else before + seconds
    millions = (HIGH_SHARE - LOW_SHARE) * records / 1e6
    return {name: None if seconds is None else round(seconds / millions, 3) for name, seconds in used.items()}


def _used_between(samples: Sequence[Sample], name: str, start: float, end: float) -> float | None:
    readings: list[Mapping[str, float | None]] = [sample.cpu_seconds for sample in samples]
    known = [(s.seconds, used) for s, r in zip(samples, readings, strict=True) if (used := r.get(name)) is not None]
    if len(known) < 2:
        return None
    times, used_seconds = zip(*known, strict=True)
    first, last = np.interp([start, end], times, used_seconds)
    return float(last - first)
