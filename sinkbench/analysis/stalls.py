"""Gaps in a trial: no new record in the sink, a service that did not answer, or tasks that did not run."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

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
    if (window := middle(samples, records)) is None:
        return []
    times, counts = progress(*stored_counts(samples))
    rises = [float(at) for at, rise in zip(times[1:], np.diff(counts), strict=True) if rise > 0]
    if not (gaps := [(before, after - before) for before, after in pairwise(rises)]):
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
    if (window := middle(samples, records)) is None:
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
    """When Connect, Kafka or the pooler was silent for at least 3 s, after a first answer; a silent sink is a stall."""
    found = []
    for service in dict.fromkeys(name for each in samples for name in each.silent):
        for mute, after in _spans([service in each.silent for each in samples], samples):
            since = min(each.silent[service] for each in mute)
            if after.seconds - since >= SHORTEST_SECONDS:
                found.append(Silence(service, round(since - samples[0].seconds, 1), round(after.seconds - since, 1)))
    return found


def _silent_in(silent: Sequence[Silence], began: float, seconds: float) -> str:
    """The service that was silent for most of a gap, and at least half of it; empty if none was."""
    shared = {
        each.service: min(each.began_seconds + each.seconds, began + seconds) - max(each.began_seconds, began)
        for each in silent
    }
    longest = max(shared, key=lambda service: shared[service], default="")
    return longest if longest and shared[longest] >= seconds / 2 else ""


def idle_tasks(samples: Sequence[Sample], records: int, tasks: int) -> list[str]:
    """When fewer tasks of a drain ran than requested, though all had run before and none had FAILED, until its last
    record was stored: as `only 0 of 3 tasks ran for about 2 s, from second 2.5 on: was the connector paused?`."""
    known = [each for each in samples if each.tasks_running is not None]
    start = next((place for place, each in enumerate(known) if each.tasks_running == tasks), len(known))

    def idle(each: Sample) -> bool:
        return (each.tasks_running or 0) < tasks and not each.tasks_failed and (each.stored or 0) < records

    return [
        f"only {min(each.tasks_running or 0 for each in few)} of {tasks} tasks ran for about"
        f" {max(after.seconds - few[0].seconds, 1.0):.0f} s, from second {few[0].seconds - samples[0].seconds:.1f} on:"
        " was the connector paused, restarted or changed?"
        for few, after in _spans([idle(each) for each in known[start:]], known[start:])
    ]


def _spans(holds: Sequence[bool], samples: Sequence[Sample]) -> Iterator[tuple[list[Sample], Sample]]:
    """Successive samples for which a condition holds, and the sample after them, or the last one."""
    for is_one, group in groupby(range(len(samples)), key=holds.__getitem__):
        places = list(group)
        if is_one:
            yield [samples[place] for place in places], samples[min(places[-1] + 1, len(samples) - 1)]
