"""The search for the batch size and the number of connections with which a client writes fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["GAIN", "Measure", "Measured", "Point", "Step", "Tuned", "step_up", "tune"]

GAIN = 0.05
"""A step that gains no more than this share is not worth another one."""


@dataclass(frozen=True)
class Point:
    """How a client writes: records a batch, and over how many connections at once."""

    batch: int
    connections: int


@dataclass(frozen=True)
class Measured:
    """What came of writing so for a while: records per second, or why there is no rate to use."""

    records_per_second: float | None
    problem: str | None = None


@dataclass(frozen=True)
class Step:
    """One measurement of a search; `confirms` marks those that were measured longer, after the search."""

    point: Point
    measured: Measured
    confirms: bool = False


@dataclass(frozen=True)
class Tuned:
    """What a search has found: the confirmed step, None if no point could be confirmed, and all steps in turn."""

    best: Step | None
    path: tuple[Step, ...]


Measure = Callable[[Point, bool], Measured]
"""Measures one point; with True for longer, since the result will stand."""


def tune(measure: Measure, first: Point, largest: Point, gain: float = GAIN) -> Tuned:
    """Doubles the batch, then the connections, as long as each doubling gains more than `gain`; and so on in turn,
    until neither does. What it ends at is measured once more, for longer: the highest of several short measurements
    is too high by chance, so it chooses the point, and the longer one gives the rate.

    Args:
        measure: measures a point. It is asked for each point once, and once more to confirm.
        first: where to begin.
        largest: the bounds of both; no point is beyond them.
        gain: the least share of the rate that a further doubling must gain.

    Returns:
        The fastest point and all steps. A step without a rate is never taken; if the fastest point cannot be
        confirmed, the next fastest is, and so on.
    """
    seen: dict[Point, Measured] = {}

    def rate(point: Point) -> float:
        if point not in seen:
            seen[point] = measure(point, False)
        return seen[point].records_per_second or 0.0

    def climb(at: Point, double: Callable[[Point], Point]) -> Point:
        while _within(following := double(at), largest):
            better = rate(following) > rate(at) * (1 + gain)
            if not better:
                break
            at = following
        return at

    at = first
    if rate(at) > 0:
        while True:
            begun = at
            at = climb(at, lambda point: Point(2 * point.batch, point.connections))
            at = climb(at, lambda point: Point(point.batch, 2 * point.connections))
            if at == begun:
                break
    path = [Step(point, measured) for point, measured in seen.items()]
    # The last step of a climb may be the fastest although it gained too little to go on.
    ranked = sorted((step for step in path if step.measured.records_per_second), key=_rate_of, reverse=True)
    for step in ranked:
        confirmed = Step(step.point, measure(step.point, True), confirms=True)
        path.append(confirmed)
        if confirmed.measured.records_per_second:
            return Tuned(confirmed, tuple(path))
    return Tuned(None, tuple(path))


def _within(point: Point, largest: Point) -> bool:
    return point.batch <= largest.batch and point.connections <= largest.connections


def _rate_of(step: Step) -> float:
    return step.measured.records_per_second or 0.0


def step_up(measure: Callable[[int], Measured], numbers: Sequence[int], gain: float = GAIN) -> Tuned:
    """Takes one number of connections after the other, as long as each gains more than `gain`.

    Args:
        measure: measures so many connections; what it returns stands without being confirmed.
        numbers: what to try, in this order.
        gain: the least share of the rate that the next must gain.

    Returns:
        The fastest and all steps; the batch of every point is 0.
    """
    path: list[Step] = []
    for number in numbers:
        path.append(Step(Point(0, number), measure(number)))
        if len(path) > 1 and _rate_of(path[-1]) <= _rate_of(path[-2]) * (1 + gain):
            break
    best = max(path, key=_rate_of, default=None)
    return Tuned(best if best is not None and _rate_of(best) > 0 else None, tuple(path))
