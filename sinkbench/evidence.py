"""What a trial's samples say about where its time went: the figures that the rules in `causes` look at."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sinkbench.probes import Sample
from sinkbench.stats import HIGH_SHARE, LOW_SHARE, progress
from sinkbench.watch import stored_counts

__all__ = ["COUNTED", "Circumstances", "Evidence", "evidence_of"]

# How the name of a sign ends that only ever grows.
COUNTED = "_total"
# Its share of the time is that of a running average, whose last value is of the longest time.
AVERAGED = "tasks_"
DIVIDED = ("tasks_without_partitions", "tasks_without_records", "tasks_busiest_share")
MACHINE = "machine_cpu_seconds_total"


@dataclass(frozen=True)
class Circumstances:
    """What is known of a trial beside its samples; None is what is not known.

    Attributes:
        mode: of the cell, drain or sustain.
        tasks: how many were asked for.
        failed_tasks: how many of them FAILED.
        placement: tasks on each worker.
        records_per_write: as measured at the sink.
        used_connections: the most connections open at once if these were all that the database accepts, else None.
        connection_limit: how many it accepts.
        partitions, partitions_with_records: of the topic.
        offered_share: records that the generator sent, of those it was asked to send in that time.
        machine_cores: cores of the machine that all services share.
        cpu_limits: how many cores a service, or each worker, may use, by its name; absent where there is no limit.
    """

    mode: str = "drain"
    tasks: int = 1
    failed_tasks: int = 0
    placement: Mapping[str, int] = field(default_factory=dict)
    records_per_write: float | None = None
    used_connections: int | None = None
    connection_limit: int | None = None
    partitions: int | None = None
    partitions_with_records: int | None = None
    offered_share: float | None = None
    machine_cores: int | None = None
    cpu_limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """A trial between 10 % and 90 % of its records; where it did not come that far, all of it.

    Attributes:
        around: what is known beside the samples.
        seconds: how long that was.
        levels: mean of each sign that is a level; of the running averages of the tasks the last value.
        rises: how fast each count rose, per second; its name is without `_total`.
        cores: CPU seconds a second of each service, workers each by its name or, where only their sum is known, as
            "connect"; absent where that is not known.
        machine_busy: share of the machine's cores that was in use, 0 to 1; None if not known.
    """

    around: Circumstances = Circumstances()
    seconds: float = 0.0
    levels: Mapping[str, float] = field(default_factory=dict)
    rises: Mapping[str, float] = field(default_factory=dict)
    cores: Mapping[str, float] = field(default_factory=dict)
    machine_busy: float | None = None

    def cores_by_service(self) -> dict[str, float]:
        """The cores of each service, those of all workers added up."""
        added: dict[str, float] = {}
        for name, cores in self.cores.items():
            service = re.sub(r"-\d+$", "", name)
            added[service] = added.get(service, 0.0) + cores
        return added


def evidence_of(
    samples: Sequence[Sample], records: int, around: Circumstances, last: Mapping[str, float] | None = None
) -> Evidence | None:
    """Sums up a trial's samples.

    Args:
        samples: of one trial.
        records: how many were in its topic.
        around: what else is known of it.
        last: the signs of the tasks after all records were stored.

    Returns:
        None if there are too few samples for anything to be said.
    """
    if len(samples) < 2:
        return None
    start, end = _window(samples, records)
    if end <= start:
        return None
    columns: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        for name, value in sample.signs.items():
            columns.setdefault(name, []).append((sample.seconds, value))
        for name, used in sample.cpu_seconds.items():
            if used is not None:
                columns.setdefault(f"cpu {name}", []).append((sample.seconds, used))
    levels, rises, cores = {}, {}, {}
    for name, readings in columns.items():
        if name.startswith("cpu "):
            if (rise := _rise(readings, start, end)) is not None:
                cores[name.removeprefix("cpu ")] = rise
        elif name.endswith(COUNTED):
            if (rise := _rise(readings, start, end)) is not None:
                rises[name.removesuffix(COUNTED)] = rise
        elif (level := _level(name, readings, start, end)) is not None:
            levels[name] = level
    # How the records came to be divided is known for sure at the end only.
    levels |= {name: value for name, value in (last or {}).items() if name in DIVIDED}
    # Of somebody else's workers only their own metrics tell.
    if "connect_cpu_seconds" in rises and not any(name.startswith("connect") for name in cores):
        cores["connect"] = rises["connect_cpu_seconds"]
    busy = rises.get(MACHINE.removesuffix(COUNTED))
    share = None if busy is None or not around.machine_cores else min(busy / around.machine_cores, 1.0)
    return Evidence(around, end - start, levels, rises, cores, share)


def _window(samples: Sequence[Sample], records: int) -> tuple[float, float]:
    times, counts = progress(*stored_counts(samples))
    if counts.size == 0 or counts[-1] < HIGH_SHARE * records:
        return samples[0].seconds, samples[-1].seconds
    start, end = np.interp([LOW_SHARE * records, HIGH_SHARE * records], counts, times)
    return float(start), float(end)


def _rise(readings: Sequence[tuple[float, float]], start: float, end: float) -> float | None:
    """How fast a count rose; None if it was not read often enough, or began anew, as a restarted process does."""
    times, values = zip(*readings, strict=True)
    # Seldom read counts are taken between the readings around the window, not as still outside of them.
    first = max((time for time in times if time <= start), default=times[0])
    last = min((time for time in times if time >= end), default=times[-1])
    if last <= first:
        return None
    before, after = np.interp([first, last], times, values)
    return None if after < before else float(after - before) / (last - first)


def _level(name: str, readings: Sequence[tuple[float, float]], start: float, end: float) -> float | None:
    inside = [value for seconds, value in readings if start <= seconds <= end and math.isfinite(value)]
    if name.startswith(AVERAGED):
        known = inside or [value for seconds, value in readings if seconds <= end]
        return known[-1] if known else None
    return float(np.mean(inside)) if inside else None
