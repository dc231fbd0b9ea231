"""Keeps the last minute of a trial's samples, in as many points as a small chart can show."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypedDict

from sinkbench.analysis.samples import Sample, connection_peaks
from sinkbench.topology import service_of

MOST_POINTS = 120
SPACING_SECONDS = 0.5
# Samples at a fixed interval come a little early or late.
_EARLY_SECONDS = 0.02


class ChartSeries(TypedDict):
    """Series of equal length, oldest point first; None: not known.

    `rate` is per second since the previous point; `servers` are connections of the database.
    """

    seconds: list[float]
    rate: list[float | None]
    lag: list[int | None]
    clients: list[int | None]
    servers: list[int | None]
    cpu: dict[str, list[float | None]]


@dataclass(frozen=True)
class _Point:
    seconds: float
    rate: float | None
    lag: int | None
    clients: int | None
    servers: int | None
    cpu: dict[str, float]


class LastMinute:
    """Keeps the points of the last minute; a sample takes constant time."""

    def __init__(self) -> None:
        self._points: deque[_Point] = deque(maxlen=MOST_POINTS)
        self._stored: tuple[float, int] | None = None
        self._used: dict[str, tuple[float, float]] = {}
        self._cores: dict[str, float] = {}

    def add(self, sample: Sample) -> bool:
        """Adds a sample; returns whether it made a point. A clock that restarts clears all points."""
        if self._points and sample.seconds < self._points[-1].seconds:
            self._forget()
        self._see_cpu(sample)
        if self._points and sample.seconds - self._points[-1].seconds < SPACING_SECONDS - _EARLY_SECONDS:
            return False
        clients, servers = connection_peaks([sample])
        known = sample.stored is not None and sample.in_topic is not None
        lag = max((sample.in_topic or 0) - (sample.stored or 0), 0) if known else None
        cpu: dict[str, float] = {}
        for name, cores in self._cores.items():
            cpu[service_of(name)] = round(cpu.get(service_of(name), 0.0) + cores, 3)
        self._points.append(_Point(round(sample.seconds, 2), self._rate(sample), lag, clients, servers, cpu))
        return True

    def _forget(self) -> None:
        self._stored = None
        for each in (self._points, self._used, self._cores):
            each.clear()

    def _rate(self, sample: Sample) -> float | None:
        if sample.stored is None:
            return None
        before, self._stored = self._stored, (sample.seconds, sample.stored)
        if before is None or sample.seconds <= before[0]:
            return None
        return round(max(sample.stored - before[1], 0) / (sample.seconds - before[0]), 1)

    def _see_cpu(self, sample: Sample) -> None:
        for name, used in sample.cpu_seconds.items():
            if used is None:
                self._used.pop(name, None)
                self._cores.pop(name, None)
                continue
            before = self._used.get(name)
            if before is not None and sample.seconds - before[0] < SPACING_SECONDS - _EARLY_SECONDS:
                continue
            # Less CPU time than before means a restarted process.
            if before is not None and used >= before[1]:
                self._cores[name] = (used - before[1]) / (sample.seconds - before[0])
            self._used[name] = (sample.seconds, used)

    def readings(self) -> ChartSeries:
        points = list(self._points)
        services = dict.fromkeys(name for point in points for name in point.cpu)
        return {
            "seconds": [point.seconds for point in points],
            "rate": [point.rate for point in points],
            "lag": [point.lag for point in points],
            "clients": [point.clients for point in points],
            "servers": [point.servers for point in points],
            "cpu": {name: [point.cpu.get(name) for point in points] for name in services},
        }
