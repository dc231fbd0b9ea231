"""The search for the fastest batch size and number of connections, or for a topic that lasts, and its cost. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sinkbench.analysis.limits import CLIENT
from sinkbench.analysis.samples import Sample, compiling_share, cpu_seconds_per_million
from sinkbench.results import LimitStep

TOO_SHORT = "the topic was read too fast to be measured; a larger record_bytes would take longer"
GAIN = 0.05
"""A step gains if its rate is higher by more than this share."""
PATIENCE = 2
"""The search leaves a direction after so many steps that do not gain."""


@dataclass(frozen=True)
class Point:
    """A client's setting: records per batch, and concurrent connections."""

    batch: int
    connections: int


@dataclass(frozen=True)
class Measured:
    """A rate in records per second, or why there is none.

    Also, if read, CPU seconds per million records by service, with sinkbench itself, and the clients as `CLIENT` (None
    is unknown), and the JIT compilers' share of all that CPU time; of Kafka alone `FIGURES`."""

    records_per_second: float | None
    problem: str | None = None
    cpu_seconds_per_million: Mapping[str, float | None] = field(default_factory=dict)
    compiling_share: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)


class Tuned(NamedTuple):
    """The result of a search: its confirmed step, or None, and all steps in order."""

    best: LimitStep | None
    path: list[LimitStep]


Measure = Callable[[Point, bool], Measured]
"""Measures one point; with True for longer, to confirm it."""


def tune(measure: Measure, first: Point, largest: Point) -> Tuned:
    """Doubles batch and connections in turn, each until two doublings in a row gain less than `GAIN`, since one may be
    slow by chance, and until neither gains. The fastest point is measured again, for longer, and that gives the rate:
    the highest of several short measurements is too high by chance. Without a rate the next fastest point follows."""
    seen: dict[Point, LimitStep] = {}

    def rate(point: Point) -> float:
        if point not in seen:
            seen[point] = step_of(point, measure(point, False))
        return _rate(seen[point])

    def climb(at: Point, batch: int, connections: int) -> Point:
        missed, step = 0, at
        while missed < PATIENCE:
            step = Point(batch * step.batch, connections * step.connections)
            if step.batch > largest.batch or step.connections > largest.connections or not rate(step):
                break
            gains = rate(step) > rate(at) * (1 + GAIN)
            at, missed = (step, 0) if gains else (at, missed + 1)
        return at

    begun: Point | None = None
    at = first
    while at != begun and rate(at) > 0:
        begun = at
        at = climb(climb(at, 2, 1), 1, 2)
    path = list(seen.values())
    # The last point of a climb may be the fastest although it gained too little to go on.
    for point in sorted(filter(rate, seen), key=rate, reverse=True):
        path.append(step_of(point, measure(point, True)).model_copy(update={"confirms": True}))
        if _rate(path[-1]):
            return Tuned(path[-1], path)
    return Tuned(None, path)


def step_up(measure: Callable[[int], Measured], numbers: Sequence[int]) -> Tuned:
    """Measures `numbers` of connections in order while each gains more than `GAIN`; a point's batch is 0."""
    path: list[LimitStep] = []
    for number in numbers:
        path.append(step_of(Point(0, number), measure(number)))
        if len(path) > 1 and _rate(path[-1]) <= _rate(path[-2]) * (1 + GAIN):
            break
    best = max(path, key=_rate)
    return Tuned(best if _rate(best) > 0 else None, path)


LONG_ENOUGH = 0.6
"""A measurement that takes this share of the time wanted is not repeated with more records."""
MOST_LENGTHS = 3
LONGER = 4.0


def lengthen(measure: Callable[[Point], Measured], at: Callable[[float], Point], expected: float) -> Tuned:
    """Measures a number of records (`Point.batch`) that takes long enough: `at` gives that for an expected rate. Where
    the rate turns out to be higher, or the time too short for one, it measures more records; the last counts."""
    path: list[LimitStep] = []
    point = at(expected)
    while True:
        path.append(step_of(point, found := measure(point)))
        expected = found.records_per_second or LONGER * expected
        larger = at(expected)
        failed = found.problem not in (None, TOO_SHORT)
        if failed or len(path) == MOST_LENGTHS or point.batch >= LONG_ENOUGH * larger.batch:
            break
        point = larger
    path[-1] = path[-1].model_copy(update={"confirms": True})
    return Tuned(path[-1] if _rate(path[-1]) else None, path)


def step_of(point: Point, found: Measured) -> LimitStep:
    batch, rate = point.batch or None, found.records_per_second
    return LimitStep(batch=batch, connections=point.connections, records_per_second=rate, problem=found.problem)


def _rate(step: LimitStep) -> float:
    return step.records_per_second or 0.0


def with_costs(rate: float, before: Sample, after: Sample, records: int, clients_cpu: float | None = None) -> Measured:
    """Returns the rate with what it cost between two readings, in which `records` were written, and plain clients used
    `clients_cpu` seconds if there were any. The CPU time of a service that restarted in between is unknown."""
    had = before.cpu_seconds
    known = {name: used for name, used in after.cpu_seconds.items() if (used or 0) >= (had.get(name) or 0)}
    clients = {} if clients_cpu is None else {CLIENT: clients_cpu}
    samples = (
        replace(before, stored=0, cpu_seconds={**had, **dict.fromkeys(clients, 0.0)}),
        replace(after, stored=records, cpu_seconds={**known, **clients}),
    )
    share = compiling_share(samples, before.seconds, after.seconds)
    return Measured(rate, None, cpu_seconds_per_million(samples, records), share)
