"""What is asked of pipelines, whether each meets it, and what it takes then."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sinkbench.analysis.samples import CONTROLLER
from sinkbench.analysis.words import milliseconds, percent, whole
from sinkbench.errors import ReasonCode, SizeError
from sinkbench.metrics.metric import find
from sinkbench.metrics.queries import job_of
from sinkbench.results import CellSummary, TrialRecord
from sinkbench.size.measured import Measured, Point
from sinkbench.size.model import TWICE, Curve, Figure, Rows, exactly, fewest, figure, resampled

ALL = "all"
_UNITS_MS = {"ms": 1.0, "s": 1_000.0, "min": 60_000.0}
# A poll, a write and its commit take longer on any network.
LEAST_P99_MS = 1.0
MOST_TASKS = 1_000
OUTAGE_SECONDS = 3_600
_DAY = 86_400
# Services that use less of the CPU time are no part of the path.
_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Asked:
    """A rate in records/s, and what else must hold; None is not asked, `record_bytes` None is as measured.

    `queries` is how many test queries an index must answer, or `all`; `headroom` the share of the rate left free."""

    rate: float
    record_bytes: float | None = None
    p99_ms: float | None = None
    queries: int | str = 0
    headroom: float = 0.3
    keep_days: float | None = None
    may_fail: int = 1
    cores_per_worker: float = 2.0

    @property
    def needed(self) -> float:
        """The rate that a pipeline must be able to store, in records/s."""
        return self.rate / (1 - self.headroom)


def p99_of(p99: str) -> float:
    """`1s` or `500ms` in milliseconds; SizeError otherwise, and below a millisecond."""
    if (found := re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|s|min)", p99.strip())) is None:
        raise SizeError(f"--p99 {p99}: must be a time with its unit, as 500ms or 1s")
    value = float(found[1]) * _UNITS_MS[found[2]]
    if value < LEAST_P99_MS:
        raise SizeError(f"--p99 {p99}: is below what a poll of Kafka and a write take; give {LEAST_P99_MS:g}ms or more")
    return value


def queries_of(text: str) -> int | str:
    """`all`, `none` or a number."""
    if text == ALL:
        return ALL
    if text != "none" and not re.fullmatch(r"\d{1,4}", text):
        raise SizeError(f"--queries {text}: must be all, none, or how many")
    return 0 if text == "none" else int(text)


@dataclass
class Size:
    """A pipeline: the requirements that it `fails`, those that are `unknown`, and what it takes by the figure's name;
    `binds` is what is exhausted first where it was measured. `loaded`: its cores are of constant loads, too; those of
    drains alone are the fewest. `offer` is the constant load, in records/s, that decides on its p99."""

    measured: Measured
    fails: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    binds: str = ""
    curve: str = ""
    loaded: bool = False
    offer: int | None = None

    @property
    def state(self) -> str:
        return "fails" if self.fails else "not decided" if self.unknown else "qualifies"


def sizes(pipelines: Sequence[Measured], asked: Asked) -> list[Size]:
    """Those that qualify first, and among these those whose cores are known under load, the fewest first."""
    order = ("qualifies", "not decided", "fails")

    def place(each: Size) -> tuple[int, bool, float, str]:
        cores = each.figures.get("cores")
        return order.index(each.state), not each.loaded, math.inf if cores is None else cores.value, each.measured.name

    return sorted((size_of(each, asked) for each in pipelines), key=place)


def size_of(one: Measured, asked: Asked) -> Size:
    found = Size(one)
    _check_queries(found, asked)
    if one.loses:
        found.fails.append("loss: loses buffered records when a task stops")
    if one.lost:
        found.fails.append(f"loss: {whole(one.lost)} records in these runs")
    scale = 1.0 if asked.record_bytes is None or one.record_bytes is None else asked.record_bytes / one.record_bytes
    if max(scale, 1 / scale) > TWICE or (asked.record_bytes is not None and one.record_bytes is None):
        size = "of unknown size" if one.record_bytes is None else f"of {whole(one.record_bytes)} bytes"
        found.unknown.append(f"bytes: measured with records {size}; race with `load: {{record_bytes: N}}`")
        return found
    if not one.points and not one.capacities:
        if one.broken and not one.too_few:
            found.fails.append(f"rate: {next(iter(one.broken.values()))}")
        else:
            found.unknown.append(f"rate: {one.too_few or 'no drain or capacity measured'}")
        return found
    _Sizing(found, asked, scale).run()
    return found


def _check_queries(found: Size, asked: Asked) -> None:
    if not asked.queries:
        return
    cell = next(iter(found.measured.asked), None)
    job = None if cell is None else job_of(cell)
    if cell is None or job is None:
        found.unknown.append("queries: not checked; race with `queries: queries`")
        return
    wanted = len(cell.queries) if asked.queries == ALL else int(asked.queries)
    if len(job) < wanted:
        found.fails.append(f"queries: {len(job)} of {len(cell.queries)} from an index")


class _Sizing:
    """The steps for a pipeline that has a curve. `scale` is how large a record is to the measured ones: a larger one is
    stored as many times more slowly and takes as many times the CPU time, a smaller one as one that was measured."""

    def __init__(self, found: Size, asked: Asked, scale: float) -> None:
        self.found, self.asked, self.scale, self.one = found, asked, scale, found.measured
        self.curve = Curve(self.one)
        self.larger, self.distance = max(1.0, scale), max(scale, 1 / scale)
        # How far figures of a record are from where they were measured.
        self.far = max(asked.rate * self.larger / self.curve.highest, self.distance)
        found.curve = "law" if self.curve.has_law else "line"

    def run(self) -> None:
        start = self._tasks(1)
        if math.isinf(start[0]):
            rates = self._rates(range(1, MOST_TASKS + 1))[0]
            most = f"at most {whole(rates.max())} with {int(np.argmax(rates)) + 1} tasks"
            where = "by the fitted law" if self.curve.has_law else "on from the measured rates"
            self.found.fails.append(f"rate: needs {whole(self.asked.needed)}, {most} {where}")
            return
        workers = self._workers(int(start[0]))
        rows = self._tasks(workers)
        # By a law the rate may have fallen again with so many.
        rows = start if math.isinf(rows[0]) else rows
        tasks = int(rows[0])
        rates, point, beyond = self._rates([tasks])[:, 0], self.one.nearest(tasks), self.curve.beyond(tasks)
        figures = self.found.figures
        figures["tasks"] = figures["partitions"] = figure(rows, self.curve.trials, beyond)
        figures["workers"] = exactly(workers, self.far)
        cell, seen = point.cell, point.cell.connections
        if seen.clients_peak is not None:
            needed = math.ceil(seen.clients_peak / cell.tasks * tasks)
            figures["connections"] = exactly(needed, beyond)
            if cell.pool is None and seen.server_limit is not None and needed > seen.server_limit:
                self.found.fails.append(f"connections: {needed} are needed, the server accepts {seen.server_limit}")
        if seen.server_peak is not None and cell.pool is not None:
            # Tasks open as many as its pool has, at most.
            more = math.ceil(seen.server_peak / cell.tasks * tasks)
            figures["server_connections"] = exactly(min(more, cell.pool.size or more), beyond)
        if (heap := find(cell, "peak_memory.connect.heap_bytes")) is not None:
            figures["heap_mb"] = exactly(heap / cell.workers / 1e6, self.far)
        share = self.asked.rate / float(rates[0])
        self._resources(point, tasks)
        spare = rates - self.asked.rate
        behind = np.where(spare > 0, OUTAGE_SECONDS * self.asked.rate / np.where(spare > 0, spare, 1), math.inf)
        figures["catch_up_seconds"] = figure(behind, self.curve.trials, max(beyond, self.distance))
        broken = min((count for count in self.one.broken if self.curve.tasks[-1] < count <= tasks), default=None)
        if broken is not None:
            self.found.fails.append(f"tasks: {tasks} are needed, with {broken}: {self.one.broken[broken]}")
        self._check_p99(round(share, 9), cell.tasks)
        self.found.binds = self._first_bound(cell)

    def _rates(self, tasks: Sequence[int]) -> Rows:
        return self.curve.at(tasks) / self.larger

    def _tasks(self, step: int) -> Rows:
        steps = range(step, MOST_TASKS + 1, step)
        return fewest(self._rates(steps), steps, self.asked.needed)

    def _workers(self, tasks: int) -> int:
        cell = self.one.nearest(tasks).cell
        if (seconds := cell.cpu_seconds_per_million.get("connect")) is None:
            self.found.unknown.append("workers: the CPU time of Connect was not measured")
            return 1 + self.asked.may_fail
        load = Load(self.asked.needed * self.larger, tasks)
        more = under_load(self.one, self.curve, cell, ["connect"], load)
        seconds *= 1.0 if more is None else more.value
        cores = seconds * self.larger * self.asked.needed / 1e6
        return max(1, math.ceil(cores / self.asked.cores_per_worker)) + self.asked.may_fail

    def _resources(self, point: Point, tasks: int) -> None:
        """Cores of each service on the path, disk and network, at the rate."""
        services = on_path(point.cell)
        cores, written = self.larger * self.asked.rate / 1e6, self.scale * self.asked.rate / 1e6
        load = Load(self.asked.rate * self.larger, tasks)
        wanted: dict[str, tuple[Callable[[TrialRecord], float | None], float]] = {}
        reach = dict[str, float]()
        for name, these in {**{f"cores.{name}": [name] for name in services}, "cores": services}.items():
            more = under_load(self.one, self.curve, point.cell, these, load)
            self.found.loaded = more is not None
            wanted[name] = partial(cpu_of, these), cores * (1.0 if more is None else more.value)
            reach[name] = self.far if more is None else more.times * self.distance
        wanted |= {
            "disk_gb_a_day": (lambda trial: trial.disk_bytes_per_record, written * _DAY / 1e3),
            "disk_gb_kept": (
                lambda trial: trial.disk_bytes_per_record,
                written * _DAY / 1e3 * (self.asked.keep_days or 0),
            ),
            "network_mb": (lambda trial: trial.fetched_bytes_per_record, written),
        }
        for name, (of, factor) in wanted.items():
            values = [value for trial in point.trials if (value := of(trial)) is not None]
            if values and factor:
                far = reach.get(name, self.far)
                self.found.figures[name] = figure(resampled(values) * factor, len(values), far)

    def _check_p99(self, share: float, tasks: int) -> None:
        """From constant loads: the lowest at this share of its capacity or above. One below that is too slow, or is not
        sustained, decides, too; one above that is too slow does not. `tasks` are those to measure it with."""
        wanted, fails, unknown = self.asked.p99_ms, self.found.fails, self.found.unknown
        # A load of just that share is one, in spite of rounding.
        self.found.offer = math.ceil(round(share * float(self.curve.at([tasks])[0, 0]), 6))
        known = self.found.figures
        for at, cell in loads_of(self.one, self.curve):
            p99, where = find(cell, "latency_ms.p99"), f"at {percent(at)} of its capacity"
            if at <= share and ReasonCode.NOT_SUSTAINED in {fault.code for fault in cell.faults}:
                fails.append(f"rate: {whole(cell.offered_records_per_second)} is not sustained ({where})")
            if not cell.passed or p99 is None or "p99_ms" in known:
                continue
            if at >= share:
                known["p99_ms"] = exactly(p99, self.distance)
            if wanted is not None and p99 > wanted:
                (fails if at <= share else unknown).append(f"p99: {milliseconds(p99)} ms {where}")
        if wanted is not None and "p99_ms" not in known and not any(text.startswith("p99") for text in fails):
            least = f"{whole(self.found.offer)}/s or more with {tasks} tasks ({percent(share)} of their rate)"
            unknown.append(f"p99: no constant load of {least}")

    def _first_bound(self, cell: CellSummary) -> str:
        """What is exhausted first if the rate grows, by what the machine and the services of the run had."""
        bounds, seconds, seen = {}, cpu_of(on_path(cell), cell), cell.connections
        if seconds and self.one.cores:
            bounds[f"CPU ({self.one.cores:g} cores)"] = self.one.cores * 1e6 / seconds / self.larger
        if seen.server_limit and seen.server_peak and cell.pool is None:
            tasks = seen.server_limit * cell.tasks // seen.server_peak
            bounds[f"{seen.server_limit} connections"] = float(self._rates([tasks])[0, 0])
        if cell.limit_records_per_second is not None:
            bounds["the sink alone"] = cell.limit_records_per_second / self.larger
        if self.curve.has_law:
            bounds["the law's peak"] = float(self._rates(range(1, MOST_TASKS + 1))[0].max())
        first = min(bounds, key=lambda name: bounds[name], default=None)
        return "" if first is None else f"{first} at {whole(bounds[first])}/s"


def loads_of(one: Measured, curve: Curve) -> list[tuple[float, CellSummary]]:
    """Its constant loads, each with its share of the rate with as many tasks, the lowest share first."""
    loads = [
        (round((cell.offered_records_per_second or 0.0) / float(curve.at([cell.tasks])[0, 0]), 9), cell)
        for cell in one.loads
    ]
    return sorted(loads, key=lambda each: each[0])


@dataclass(frozen=True)
class Load:
    """So many records/s, of the size that was measured, to be stored by so many tasks."""

    rate: float
    tasks: int


def under_load(one: Measured, curve: Curve, cell: CellSummary, services: Sequence[str], load: Load) -> Figure | None:
    """How many times the CPU time of a record in the drain of `cell` one takes in this load. More tasks are copies of
    those of the drain. Their cores lie on straight lines, by the rate, between the constant loads and the drain, and on
    along the first one below the lowest load, where a record takes no less than there. None without loads."""
    drain, highest = cpu_of(services, cell), float(curve.at([cell.tasks])[0, 0])
    copies = max(1.0, load.tasks / cell.tasks)
    # Equal shares are equal in spite of rounding.
    share = round(load.rate / highest / copies, 9)
    loads = [(round((each.offered_records_per_second or 0) / highest, 9), each) for each in one.loads if each.passed]
    known = {
        at: at * seconds / drain
        for at, each in sorted(loads, key=lambda load: load[0])
        if 0 < at < 1 and drain and (seconds := cpu_of(services, each))
    }
    if not known:
        return None
    shares, cores = [*known, 1.0], [*known.values(), 1.0]
    slope = np.clip((cores[1] - cores[0]) / (shares[1] - shares[0]), 0, cores[0] / shares[0])
    # Above the drain's rate a record takes what it took there.
    taken = float(np.interp(share, shares, cores) * max(1.0, share) - slope * max(shares[0] - share, 0))
    # Between two loads it is within what was measured.
    times = shares[0] / share if share < shares[0] else share / min((at for at in shares if at >= share), default=1.0)
    return exactly(taken / share, max(times, copies) if copies > 1 else times)


def on_path(cell: CellSummary) -> list[str]:
    """The services that take part in storing, by their CPU time."""
    cpu = cell.cpu_seconds_per_million.items()
    used = {name: seconds or 0.0 for name, seconds in cpu if name != CONTROLLER and not name.startswith("loadgen")}
    return [name for name, seconds in used.items() if seconds > _LEAST_SHARE * sum(used.values())]


def cpu_of(services: Sequence[str], measured: TrialRecord | CellSummary) -> float | None:
    found = [measured.cpu_seconds_per_million.get(name) for name in services]
    return sum(seconds or 0.0 for seconds in found) if found and None not in found else None
