"""Whether each pipeline meets a requirement, and what it takes then."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sinkbench.analysis.samples import CONTROLLER
from sinkbench.analysis.words import milliseconds, percent, whole
from sinkbench.errors import ReasonCode
from sinkbench.metrics.metric import find
from sinkbench.metrics.queries import job_of
from sinkbench.results import CellSummary, TrialRecord
from sinkbench.size.asked import ALL, Asked
from sinkbench.size.measured import Measured, Point
from sinkbench.size.model import TWICE, Curve, Figure, Rows, fewest, figure, resampled

MOST_TASKS = 1_000
OUTAGE_SECONDS = 3_600
_DAY = 86_400
# Services that use less of the CPU time are no part of the path.
_LEAST_SHARE = 0.01


@dataclass
class Size:
    """A pipeline: the requirements that it `fails`, those that are `unknown`, and what it takes by the figure's name;
    `binds` is what is exhausted first where it was measured."""

    measured: Measured
    fails: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    binds: str = ""
    curve: str = ""

    @property
    def state(self) -> str:
        return "fails" if self.fails else "not decided" if self.unknown else "qualifies"


def sizes(pipelines: Sequence[Measured], asked: Asked) -> list[Size]:
    """Those that qualify first, and among these the one that needs fewest cores."""
    order = ("qualifies", "not decided", "fails")

    def place(each: Size) -> tuple[int, float, str]:
        cores = each.figures.get("cores")
        return order.index(each.state), math.inf if cores is None else cores.value, each.measured.name

    return sorted((size_of(each, asked) for each in pipelines), key=place)


def size_of(one: Measured, asked: Asked) -> Size:
    """What one pipeline takes."""
    found = Size(one)
    _check_queries(found, asked)
    if one.loses:
        found.fails.append("loss: loses buffered records when a task stops")
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
            self._fail_rate()
            return
        workers = self._workers(self._nearest(int(start[0])))
        rows = self._tasks(workers)
        if math.isinf(rows[0]):
            # The law falls again before so many.
            rows = start
        tasks = int(rows[0])
        point = self._nearest(tasks)
        figures, beyond = self.found.figures, self.curve.beyond(tasks)
        figures["tasks"] = figures["partitions"] = figure(rows, self.curve.trials, beyond)
        figures["workers"] = Figure(workers, workers, workers, self.far)
        rates = self._rates([tasks])[:, 0]
        self._check_broken(tasks)
        self._check_p99(self.asked.rate / float(rates[0]))
        self._connections(point, tasks, beyond)
        self._resources(point)
        spare = rates - self.asked.rate
        behind = np.where(spare > 0, OUTAGE_SECONDS * self.asked.rate / np.where(spare > 0, spare, 1), math.inf)
        figures["catch_up_seconds"] = figure(behind, self.curve.trials, max(beyond, self.distance))
        self.found.binds = self._first_bound(point)

    def _rates(self, tasks: Sequence[int]) -> Rows:
        return self.curve.at(tasks) / self.larger

    def _tasks(self, step: int) -> Rows:
        steps = range(step, MOST_TASKS + 1, step)
        return fewest(self._rates(steps), steps, self.asked.needed)

    def _fail_rate(self) -> None:
        steps = range(1, MOST_TASKS + 1)
        rates = self._rates(steps)[0]
        best = int(np.argmax(rates))
        where = "by the fitted law" if self.curve.has_law else "on from the measured rates"
        text = f"rate: needs {whole(self.asked.needed)}, at most {whole(rates[best])} with {steps[best]} tasks {where}"
        self.found.fails.append(text)

    def _nearest(self, tasks: int) -> Point:
        points = self.one.points or self.one.capacities
        return points[min(points, key=lambda each: (abs(each - tasks), each))]

    def _workers(self, point: Point) -> int:
        seconds = point.cell.cpu_seconds_per_million.get("connect") or 0.0
        cores = seconds * self.larger * self.asked.needed / 1e6
        return max(1, math.ceil(cores / self.asked.cores_per_worker)) + self.asked.may_fail

    def _check_broken(self, tasks: int) -> None:
        working = max(self.curve.tasks)
        for count, verdict in sorted(self.one.broken.items()):
            if working < count <= tasks:
                self.found.fails.append(f"tasks: {tasks} are needed, with {count}: {verdict}")
                return

    def _check_p99(self, share: float) -> None:
        """From constant loads: the lowest at this share of its capacity or above. One below that is too slow, or is not
        sustained, decides, too; one above that is too slow does not."""
        wanted, nearest = self.asked.p99_ms, None
        for at, cell in sorted(((self._share(cell), cell) for cell in self.one.loads), key=lambda each: each[0]):
            p99, where = find(cell, "latency_ms.p99"), f"at {percent(at)} of its capacity"
            if not cell.passed:
                if at <= share and ReasonCode.NOT_SUSTAINED in {fault.code for fault in cell.faults}:
                    self.found.fails.append(
                        f"rate: {whole(cell.offered_records_per_second)} is not sustained ({where})"
                    )
                continue
            if nearest is not None or p99 is None:
                continue
            if at >= share:
                nearest = Figure(p99, p99, p99, self.distance)
            if wanted is not None and p99 > wanted:
                (self.found.fails if at <= share else self.found.unknown).append(f"p99: {milliseconds(p99)} ms {where}")
        if nearest is not None:
            self.found.figures["p99_ms"] = nearest
        elif wanted is not None and not any(text.startswith("p99") for text in self.found.fails):
            tasks = self.curve.tasks[-1]
            least = whole(share * float(self.curve.at([tasks])[0, 0]))
            self.found.unknown.append(
                f"p99: no constant load of {least}/s or more with {tasks} tasks ({percent(share)} of their capacity)"
            )

    def _share(self, cell: CellSummary) -> float:
        return (cell.offered_records_per_second or 0.0) / float(self.curve.at([cell.tasks])[0, 0])

    def _connections(self, point: Point, tasks: int, beyond: float) -> None:
        seen, pooled = point.cell.connections, point.cell.pool is not None
        for name, count in (("connections", seen.clients_peak), ("server_connections", seen.server_peak)):
            if count is None or (name == "server_connections" and not pooled):
                continue
            # A pooler opens as many as its pool has, for any number of tasks.
            value = count if name == "server_connections" else math.ceil(count / point.cell.tasks * tasks)
            self.found.figures[name] = Figure(value, value, value, beyond)

    def _resources(self, point: Point) -> None:
        """Cores of each service on the path, disk and network, at the rate."""
        figures, rate = self.found.figures, self.asked.rate
        put = partial(self._per_record, point)
        services = services_of(point)
        for name in services:
            found = put(lambda trial, name=name: trial.cpu_seconds_per_million.get(name), self.larger * rate / 1e6)
            if found is not None:
                figures[f"cores.{name}"] = found
        total = put(lambda trial: _sum(trial, services), self.larger * rate / 1e6)
        disk = put(lambda trial: trial.disk_bytes_per_record, self.scale * rate * _DAY / 1e9)
        network = put(lambda trial: trial.fetched_bytes_per_record, self.scale * rate / 1e6)
        for name, value in (("cores", total), ("disk_gb_a_day", disk), ("network_mb", network)):
            if value is not None:
                figures[name] = value
        if disk is not None and (days := self.asked.keep_days) is not None:
            figures["disk_gb_kept"] = Figure(disk.value * days, disk.low * days, disk.high * days, disk.times)

    def _per_record(self, point: Point, of: Callable[[TrialRecord], float | None], factor: float) -> Figure | None:
        values = [value for trial in point.trials if (value := of(trial)) is not None]
        return figure(resampled(values) * factor, len(values), self.far) if values else None

    def _first_bound(self, point: Point) -> str:
        """What is exhausted first if the rate grows, by what the machine and the services of the run had."""
        cell, bounds = point.cell, {}
        cores = self.found.figures.get("cores")
        if cores is not None and cores.value > 0 and self.one.cores:
            bounds[f"CPU ({self.one.cores:g} cores)"] = self.one.cores * self.asked.rate / cores.value
        limit, seen = cell.connections.server_limit, cell.connections.server_peak
        if limit and seen and cell.pool is None and (tasks := int(limit / (seen / cell.tasks))):
            bounds[f"{limit} server connections"] = float(self._rates([tasks])[0, 0])
        if cell.limit_records_per_second is not None:
            bounds["the sink alone"] = cell.limit_records_per_second / self.larger
        if self.curve.has_law:
            bounds["the law's peak"] = float(self._rates(range(1, MOST_TASKS + 1))[0].max())
        first = min(bounds, key=lambda name: bounds[name], default=None)
        return "" if first is None else f"{first} at {whole(bounds[first])}/s"


def services_of(point: Point) -> list[str]:
    """The services that take a hundredth of the CPU time or more, without load generators."""
    used = {
        name: seconds or 0.0
        for name, seconds in point.cell.cpu_seconds_per_million.items()
        if name != CONTROLLER and not name.startswith("loadgen")
    }
    return [name for name, seconds in used.items() if seconds > _LEAST_SHARE * sum(used.values())]


def _sum(trial: TrialRecord, services: Sequence[str]) -> float | None:
    found = [trial.cpu_seconds_per_million.get(name) for name in services]
    return None if None in found or not found else sum(seconds or 0.0 for seconds in found)
