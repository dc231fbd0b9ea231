"""The search for the batch size and number of connections at which a client is fastest, and what that costs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sinkbench.analysis.limits import CLIENT
from sinkbench.analysis.samples import Sample, compiling_share, cpu_seconds_per_million
from sinkbench.analysis.words import percent

GAIN = 0.05
"""The search continues in a direction while each step gains more than this share."""


@dataclass(frozen=True)
class Point:
    """A client's setting: records per batch, and concurrent connections."""

    batch: int
    connections: int


@dataclass(frozen=True)
class Costs:
    """CPU seconds per million records by service, with sinkbench itself, and the clients as `CLIENT` (None is unknown);
    and the JIT compilers' share of all that CPU time."""

    cpu_seconds_per_million: Mapping[str, float | None] = field(default_factory=dict)
    compiling_share: float | None = None


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

    @property
    def rate(self) -> float:
        return self.measured.records_per_second or 0.0


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
    too high by chance. If it then has no rate, the next fastest point is confirmed, and so on."""
    seen: dict[Point, Measured] = {}

    def rate(point: Point) -> float:
        if point not in seen:
            seen[point] = measure(point, False)
        return seen[point].records_per_second or 0.0

    def climb(at: Point, batch: int, connections: int) -> Point:
        while True:
            following = Point(batch * at.batch, connections * at.connections)
            within = following.batch <= largest.batch and following.connections <= largest.connections
            if not within or rate(following) <= rate(at) * (1 + GAIN):
                return at
            at = following

    begun: Point | None = None
    at = first
    while at != begun and rate(at) > 0:
        begun = at
        at = climb(climb(at, 2, 1), 1, 2)
    path = [Attempt(point, measured) for point, measured in seen.items()]
    # The last point of a climb may be the fastest although it gained too little to go on.
    for attempt in sorted((each for each in path if each.rate), key=lambda each: each.rate, reverse=True):
        confirmed = Attempt(attempt.point, measure(attempt.point, True), confirms=True)
        path.append(confirmed)
        if confirmed.rate:
            return Tuned(confirmed, tuple(path))
    return Tuned(None, tuple(path))


def step_up(measure: Callable[[int], Measured], numbers: Sequence[int]) -> Tuned:
    """Measures `numbers` of connections in order while each gains more than `GAIN`; a point's batch is 0."""
    path: list[Attempt] = []
    for number in numbers:
        path.append(Attempt(Point(0, number), measure(number)))
        if len(path) > 1 and path[-1].rate <= path[-2].rate * (1 + GAIN):
            break
    best = max(path, key=lambda each: each.rate)
    return Tuned(best if best.rate > 0 else None, tuple(path))


def costs_between(before: Sample, after: Sample, records: int, clients_seconds: float) -> Costs:
    """Costs between two readings, in which `records` were stored and the clients used `clients_seconds` of CPU. The CPU
    time of a service that restarted in between is unknown."""
    had = before.cpu_seconds
    known = {name: used for name, used in after.cpu_seconds.items() if (used or 0) >= (had.get(name) or 0)}
    samples = (
        replace(before, stored=0, cpu_seconds={**before.cpu_seconds, CLIENT: 0.0}),
        replace(after, stored=records, cpu_seconds={**known, CLIENT: clients_seconds}),
    )
    share = compiling_share(samples, before.seconds, after.seconds)
    return Costs(cpu_seconds_per_million(samples, records), share)


def disturbance(costs: Costs, most_compiling: float) -> str | None:
    """Why a measurement does not count; None if it does. `most_compiling` is the largest allowed `compiling_share`."""
    share = costs.compiling_share
    cold = share is not None and share > most_compiling
    return f"not warm: {percent(share or 0.0)} of the CPU time went into compiling" if cold else None
