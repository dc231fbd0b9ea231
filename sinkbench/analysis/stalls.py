"""Gaps in a trial: no new record in the sink, a service that did not answer, or tasks that did not run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sinkbench.analysis.rates import progress
from sinkbench.analysis.samples import Sample, middle, stored_counts

# A shorter gap may be a large batch, a checkpoint or garbage collection.
SHORTEST_SECONDS = 3.0
# Above this share a stall changes the rate by more than trials usually differ.
MUCH_STALLED = 0.02
# Writing in batches causes gaps all the time; a stall is longer than N usual ones.
USUAL_GAPS = 5
# A trial that stood still for more than this share of its measured time has no rate.
MOST_STALLED = 0.1
NAMES = {"connect": "Connect", "kafka": "Kafka", "pgbouncer": "PgBouncer"}


@dataclass(frozen=True)
class Stall:
    """A gap: its length and its start, in seconds after the first sample. `silent` is the service that answered no
    probe for at least half of it, which explains it; empty if all did."""

    began_seconds: float
    seconds: float
    silent: str = ""

    @property
    def in_words(self) -> str:
        """As `no new record was seen in the sink for 8.0 s, from second 4.2 on: Kafka answered no probe meanwhile`."""
        gap = f"no new record was seen in the sink for {self.seconds:.1f} s, from second {self.began_seconds:.1f} on"
        return f"{gap}: {NAMES.get(self.silent, self.silent)} answered no probe meanwhile" if self.silent else gap


def stalls(samples: Sequence[Sample], records: int) -> list[Stall]:
    """The gaps between samples with progress in the `middle` of a drain that last at least 3 s, and more than five
    times as long as the median gap; none if it did not reach 90 %."""
    window = middle(samples, records)
    if window is None:
        return []
    times, counts = progress(*stored_counts(samples))
    rises = [float(at) for at, rise in zip(times[1:], np.diff(counts), strict=True) if rise > 0]
    gaps = [(before, after - before) for before, after in pairwise(rises)]
    if not gaps:
        return []
    usual = statistics.median(seconds for _, seconds in gaps)
    silent, first = silences(samples), samples[0].seconds
    return [
        Stall(round(began - first, 1), round(seconds, 1), _silent_in(silent, began - first, seconds))
        for began, seconds in gaps
        if seconds >= max(SHORTEST_SECONDS, USUAL_GAPS * usual) and began + seconds > window[0] and began < window[1]
    ]


def much_stalled(found: Sequence[Stall], samples: Sequence[Sample], records: int) -> tuple[float, Stall] | None:
    """The share of the `middle` of a drain in which it stood still, and the longest stall; None up to `MOST_STALLED`.
    If half of what is usual was stored in a stall, just the probes were late."""
    window = middle(samples, records)
    if window is None:
        return None
    first, (times, counts) = samples[0].seconds, progress(*stored_counts(samples))
    start, end = (at - first for at in window)
    usual = float(np.interp(window[1], times, counts) - np.interp(window[0], times, counts)) / (end - start)
    still = []
    for each in found:
        stored = np.interp([each.began_seconds + first, each.began_seconds + each.seconds + first], times, counts)
        if stored[1] - stored[0] < usual * each.seconds / 2:
            still.append(each)
    inside = sum(min(each.began_seconds + each.seconds, end) - max(each.began_seconds, start) for each in still)
    share = inside / (end - start)
    return (share, max(still, key=lambda each: each.seconds)) if share > MOST_STALLED else None


@dataclass(frozen=True)
class Silence:
    """A time in which a service answered no probe, in seconds after the first sample."""

    service: str
    began_seconds: float
    seconds: float

    @property
    def in_words(self) -> str:
        """As `Connect answered no probe for 8.0 s, from second 4.2 on`."""
        name = NAMES.get(self.service, self.service)
        return f"{name} answered no probe for {self.seconds:.1f} s, from second {self.began_seconds:.1f} on"


def silences(samples: Sequence[Sample]) -> list[Silence]:
    """When Connect, Kafka or the pooler did not answer for at least 3 s, after a first answer; a silent sink is a
    stall."""
    found = []
    for service in dict.fromkeys(name for each in samples for name in each.silent):
        since: float | None = None
        for each in samples:
            last = since
            if (since := each.silent.get(service)) is not None:
                since = since if last is None else min(last, since)
            if last is not None and (since is None or each is samples[-1]) and each.seconds - last >= SHORTEST_SECONDS:
                found.append(Silence(service, round(last - samples[0].seconds, 1), round(each.seconds - last, 1)))
    return found


def _silent_in(silent: Sequence[Silence], began: float, seconds: float) -> str:
    """The service that was silent for most of a gap, and at least half of it; empty if none was."""
    shared = {
        each.service: min(each.began_seconds + each.seconds, began + seconds) - max(each.began_seconds, began)
        for each in silent
    }
    longest = max(shared, key=lambda service: shared[service], default="")
    return longest if longest and shared[longest] >= seconds / 2 else ""


@dataclass(frozen=True)
class Idle:
    """A time in which fewer tasks ran than requested, though all had run before and none had FAILED."""

    began_seconds: float
    seconds: float
    tasks: int
    running: int

    @property
    def in_words(self) -> str:
        """As `only 0 of 3 tasks ran for about 2 s, from second 2.5 on: was the connector paused or changed?`."""
        about = f"only {self.running} of {self.tasks} tasks ran for about {max(self.seconds, 1.0):.0f} s"
        return f"{about}, from second {self.began_seconds:.1f} on: was the connector paused, restarted or changed?"


def idle_tasks(samples: Sequence[Sample], records: int, tasks: int) -> list[Idle]:
    """When not all tasks of a drain ran, between the first sample with all of them and the last record stored."""
    known = [each for each in samples if each.tasks_running is not None]
    start = next((place for place, each in enumerate(known) if each.tasks_running == tasks), len(known))
    found: list[Idle] = []
    began: Sample | None = None
    fewest = tasks
    for each in known[start:]:
        short = each.tasks_running is not None and each.tasks_running < tasks and not each.tasks_failed
        if short and (each.stored or 0) < records:
            began = began or each
            fewest = min(fewest, each.tasks_running or 0)
        elif began is not None:
            found.append(_idle(samples, began, each, tasks, fewest))
            began, fewest = None, tasks
    if began is not None:
        found.append(_idle(samples, began, known[-1], tasks, fewest))
    return found


def _idle(samples: Sequence[Sample], began: Sample, ended: Sample, tasks: int, fewest: int) -> Idle:
    since = round(began.seconds - samples[0].seconds, 1)
    return Idle(since, round(ended.seconds - began.seconds, 1), tasks, fewest)
