"""The search for the batch size and number of connections at which a client is fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sinkbench.limits.costs import Costs

GAIN = 0.05
"""The search continues in a direction while each step gains more than this share."""


@dataclass(frozen=True)
class Point:
    """A client's setting: records per batch, and concurrent connections."""

    batch: int
    connections: int


@dataclass(frozen=True)
class Measured:
    """A rate in records per second, or why there is none; and its costs, if they were read."""

    records_per_second: float | None
    problem: str | None = None
    costs: Costs = field(default_factory=Costs)


@dataclass(frozen=True)
class Attempt:
    """One measurement of a search; `confirms` marks the longer ones after it."""

    point: Point
    measured: Measured
    confirms: bool = False


@dataclass(frozen=True)
class Tuned:
    """The result of a search: its confirmed attempt, or None, and all attempts in order."""

    best: Attempt | None
    path: tuple[Attempt, ...]


Measure = Callable[[Point, bool], Measured]
"""Measures one point; with True for longer, to confirm it."""


def tune(measure: Measure, first: Point, largest: Point) -> Tuned:
    """Doubles batch and connections in turn, each while a doubling gains more than `GAIN`, until neither does. The
    fastest point is measured again, for longer, and that gives the rate: the highest of several short measurements is
    too high by chance. If it then has no rate, the next fastest point is confirmed, and so on.
    """
    seen: dict[Point, Measured] = {}

    def rate(point: Point) -> float:
        if point not in seen:
            seen[point] = measure(point, False)
        return seen[point].records_per_second or 0.0

    def climb(at: Point, double: Callable[[Point], Point]) -> Point:
        while _within(following := double(at), largest) and rate(following) > rate(at) * (1 + GAIN):
            at = following
        return at

    begun: Point | None = None
    at = first
    while at != begun and rate(at) > 0:
        begun = at
        at = climb(at, lambda point: Point(2 * point.batch, point.connections))
        at = climb(at, lambda point: Point(point.batch, 2 * point.connections))
    path = [Attempt(point, measured) for point, measured in seen.items()]
    # The last point of a climb may be the fastest although it gained too little to go on.
    ranked = sorted((attempt for attempt in path if attempt.measured.records_per_second), key=_rate_of, reverse=True)
    for attempt in ranked:
        confirmed = Attempt(attempt.point, measure(attempt.point, True), confirms=True)
        path.append(confirmed)
        if confirmed.measured.records_per_second:
            return Tuned(confirmed, tuple(path))
    return Tuned(None, tuple(path))


def _within(point: Point, largest: Point) -> bool:
    return point.batch <= largest.batch and point.connections <= largest.connections


def _rate_of(attempt: Attempt) -> float:
    return attempt.measured.records_per_second or 0.0


def step_up(measure: Callable[[int], Measured], numbers: Sequence[int]) -> Tuned:
    """Measures `numbers` of connections in order while each gains more than `GAIN`; a point's batch is 0."""
    path: list[Attempt] = []
    for number in numbers:
        path.append(Attempt(Point(0, number), measure(number)))
        if len(path) > 1 and _rate_of(path[-1]) <= _rate_of(path[-2]) * (1 + GAIN):
            break
    best = max(path, key=_rate_of)
    return Tuned(best if _rate_of(best) > 0 else None, tuple(path))
