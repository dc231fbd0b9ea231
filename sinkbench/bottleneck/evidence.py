"""The figures from a trial's samples that the rules use."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sinkbench.analysis.samples import MACHINE, Sample, middle
from sinkbench.analysis.stalls import Stall, stalls

COUNTED, CPU = "_total", "cpu "
# The tasks' signs are running averages; the last value covers the longest time.
AVERAGED = "tasks_"
DIVIDED = ("tasks_without_partitions", "tasks_without_records", "tasks_busiest_share")


@dataclass(frozen=True)
class Circumstances:
    """What is known of a trial besides its samples; None is unknown. `used_connections` is the maximum if that
    exhausted the database, `offered_share` that of due records that were sent, `usable_cores` those of a service."""

    sink: str = "sink"
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
    usable_cores: Mapping[str, tuple[float, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """A trial between 10 % and 90 % of its records; all of it if it stored fewer than 90 %. `levels` are means of
    gauges, and last values of the tasks' running averages; `rises` increases of counters per second, without `_total`;
    `cores` are by service and worker; `machine_busy` is the share of the machine's cores in use."""

    around: Circumstances = Circumstances()
    seconds: float = 0.0
    levels: Mapping[str, float] = field(default_factory=dict)
    rises: Mapping[str, float] = field(default_factory=dict)
    cores: Mapping[str, float] = field(default_factory=dict)
    machine_busy: float | None = None
    stalls: Sequence[Stall] = ()


def evidence_of(
    samples: Sequence[Sample], records: int, around: Circumstances, last: Mapping[str, float] | None = None
) -> Evidence | None:
    """Summarizes the samples of a trial; None if too few. `last` has the tasks' signs after all records were stored."""
    if len(samples) < 2:
        return None
    start, end = middle(samples, records) or (samples[0].seconds, samples[-1].seconds)
    if end <= start:
        return None
    columns: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        used = {f"{CPU}{name}{COUNTED}": seconds for name, seconds in sample.cpu_seconds.items() if seconds is not None}
        for name, value in {**sample.signs, **used}.items():
            columns.setdefault(name, []).append((sample.seconds, value))
    levels, rises = {}, {}
    for name, readings in columns.items():
        if not name.endswith(COUNTED):
            if (level := _level(name, readings, start, end)) is not None:
                levels[name] = level
        elif (rise := _rise(readings, start, end)) is not None:
            rises[name.removesuffix(COUNTED)] = rise
    cores = {name.removeprefix(CPU): rises.pop(name) for name in list(rises) if name.startswith(CPU)}
    # How records were divided among tasks is certain only at the end.
    levels |= {name: value for name, value in (last or {}).items() if name in DIVIDED}
    # For shared workers the CPU time is known only from their metrics.
    if "connect_cpu_seconds" in rises and not any(name.startswith("connect") for name in cores):
        cores["connect"] = rises["connect_cpu_seconds"]
    busy = rises.get(MACHINE.removesuffix(COUNTED))
    share = None if busy is None or not around.machine_cores else min(busy / around.machine_cores, 1.0)
    return Evidence(around, end - start, levels, rises, cores, share, stalls(samples, records))


def _rise(readings: Sequence[tuple[float, float]], start: float, end: float) -> float | None:
    """Increase per second; None with too few readings, or if the counter was reset, as by a restarted process."""
    times, values = zip(*readings, strict=True)
    # A rarely read counter may have no reading within the window: take the ones around it.
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
