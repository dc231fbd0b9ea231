"""Races what `sinkbench size` predicts and prints how wrong it was; figures: docs/studies/size-errors.md.

    .venv/bin/python -m benchmarks.size                   # races, then compares
    .venv/bin/python -m benchmarks.size RUN SOURCE ...    # what the sources predict of RUN, of runs that are there

Three workers from one and from two, twelve tasks from three and six, 4 KB from 512 bytes, a constant load of 8,000
records/s from drains and one of 2,000. About 45 minutes; the runs are kept in results/.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from sinkbench.analysis.words import percent, significant, whole
from sinkbench.errors import SizeError
from sinkbench.metrics.metric import find
from sinkbench.results import TrialRecord
from sinkbench.size.measured import Measured, Point, measured, stored_runs
from sinkbench.size.model import Curve, Figure, exactly, figure, resampled
from sinkbench.size.sizes import Load, cpu_of, loads_of, on_path, under_load

CHECKOUT = Path(__file__).resolve().parent.parent
SINKBENCH = CHECKOUT / ".venv" / "bin" / "sinkbench"
PLAN = {
    "pipelines": ["elasticsearch/reference-bulk", "postgres/reference-copy", "postgres/jdbc"],
    "drain": {"window_seconds": 5},
}
LOAD = {"mode": "sustain", "drain": {"pilot_seconds": 3}}


def race(name: str, results: Path, workers: int, content: dict[str, object]) -> str:
    """Races a plan with so many workers; returns its run."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / f"{name}.yaml"
        plan.write_text(yaml.safe_dump({**PLAN, **content}))
        environment = {**os.environ, "SINKBENCH_WORKERS": str(workers)}
        command = [str(SINKBENCH), "race", str(plan), "--results", str(results), "--quiet"]
        done = subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name} ended with exit code {done.returncode}")
    return (results / "latest").resolve().name


@dataclass(frozen=True)
class Prediction:
    """A figure of a cell: what was predicted, and what was then measured."""

    cell: str
    what: str
    predicted: Figure
    measured: Figure

    @property
    def error(self) -> float:
        """Share by which the prediction is too high; negative: too low."""
        return self.predicted.value / self.measured.value - 1

    @property
    def overlaps(self) -> bool:
        """Whether the two ranges have a value in common."""
        return self.predicted.low <= self.measured.high and self.measured.low <= self.predicted.high


RATE, CPU, DISK, P99 = "records/s", "CPU s a million", "disk bytes a record", "p99 ms"


def predictions(sources: Sequence[Measured], raced: Sequence[Measured]) -> list[Prediction]:
    """What the `sources` predict of each figure that was `raced`. Raises SizeError if they have no pipeline of it."""
    known = {one.key: one for one in sources if one.points or one.capacities}
    found = [each for one in raced if one.key in known for each in _of(known[one.key], one)]
    if not found:
        names = ", ".join(one.name for one in raced) or "no pipeline"
        raise SizeError(f"nothing to compare: the run has {names}, and no other run has a final rate of these")
    return found


def _of(source: Measured, raced: Measured) -> Iterator[Prediction]:
    curve, scale = Curve(source), (raced.record_bytes or 1.0) / (source.record_bytes or raced.record_bytes or 1.0)
    larger, distance = max(1.0, scale), max(scale, 1 / scale)
    points = raced.points or raced.capacities
    for tasks, point in sorted(points.items()):
        far, cell = max(curve.beyond(tasks), distance), point.cell.cell
        rates = figure(curve.at([tasks])[:, 0] / larger, curve.trials, far)
        yield Prediction(cell, RATE, rates, figure(resampled(point.rates), len(point.rates)))
        near = source.nearest(tasks)
        of: dict[str, tuple[Callable[[TrialRecord], float | None], float]] = {
            CPU: (partial(cpu_of, on_path(near.cell)), larger),
            DISK: (lambda trial: trial.disk_bytes_per_record, scale),
        }
        for what, (value, factor) in of.items():
            made, seen = _figure(near, value, factor, far), _figure(point, value, 1.0, 1.0)
            if made is not None and seen is not None:
                yield Prediction(cell, what, made, seen)
    loads = loads_of(source, curve)
    for load in (each for each in raced.loads if each.passed and each.mode == "sustain"):
        near = source.nearest(load.tasks)
        services = on_path(near.cell)
        share = (load.offered_records_per_second or 0.0) * larger / float(curve.at([load.tasks])[0, 0])
        offered = Load((load.offered_records_per_second or 0.0) * larger, load.tasks)
        more = under_load(source, curve, near.cell, services, offered)
        made = _figure(near, partial(cpu_of, services), larger * (1.0 if more is None else more.value), distance)
        used = sum(load.cpu_seconds_per_million.get(name) or 0.0 for name in services)
        if made is not None and used:
            yield Prediction(load.cell, CPU, made, exactly(used, 1.0))
        above = [p99 for at, cell in loads if at >= share and cell.passed and (p99 := find(cell, "latency_ms.p99"))]
        if above and (seen_p99 := find(load, "latency_ms.p99")):
            yield Prediction(load.cell, P99, exactly(above[0], distance), exactly(seen_p99, 1.0))


def _figure(point: Point, of: Callable[[TrialRecord], float | None], factor: float, times: float) -> Figure | None:
    values = [value for trial in point.trials if (value := of(trial)) is not None]
    return figure(resampled(values) * factor, len(values), times) if values else None


def error_lines(found: Sequence[Prediction]) -> list[str]:
    """A line for each prediction, then the worst one of each figure."""
    rows = [["", "", "predicted", "measured", "error", ""]]
    for each in found:
        apart, ranged = "" if each.overlaps else "ranges apart", map(_ranged, (each.predicted, each.measured))
        rows.append([each.cell, each.what, *ranged, _signed(each.error), apart])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    body = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    whats = dict.fromkeys(each.what for each in found)
    worst = [max((each for each in found if each.what == what), key=lambda each: abs(each.error)) for what in whats]
    return [
        *body,
        "",
        "Furthest off: " + ", ".join(f"{each.what} {_signed(each.error)} ({each.cell})" for each in worst),
    ]


def _signed(error: float) -> str:
    return ("+" if error >= 0 else "-") + percent(abs(error))


def _ranged(value: Figure) -> str:
    def short(number: float) -> str:
        return whole(number) if number >= 100 else significant(number, 2)

    ends = f" ({short(value.low)}-{short(value.high)})" if value.low < value.high else ""
    return f"{short(value.value)}{ends}" + ("" if value.times <= 1 else f" {significant(value.times, 2)}x")


def compare(run: str, sources: Sequence[str], results: Path) -> None:
    """Prints what the sources predict of a run."""
    raced = measured(stored_runs([run], results), None)
    of_size = next((one.record_bytes for one in raced), None)
    print(f"\n{run} from {', '.join(sources)}")
    print("\n".join(error_lines(predictions(measured(stored_runs(sources, results), of_size), raced))), flush=True)


def main() -> None:
    results = CHECKOUT / "results"
    if len(sys.argv) > 2:
        compare(sys.argv[1], sys.argv[2:], results)
        return
    one, two = (race(f"workers-{workers}", results, workers, {}) for workers in (1, 2))
    tasks = race("tasks", results, 3, {"multiples": [1, 2]})
    twelve = race("tasks-12", results, 3, {"multiples": [4]})
    large = race("bytes-4096", results, 3, {"load": {"record_bytes": 4096}})
    low, load = (
        race(f"load-{rate}", results, 3, {**LOAD, "sustain": {"records_per_second": [rate], "seconds": 20}})
        for rate in (2_000, 8_000)
    )
    for raced, sources in ((tasks, (one, two)), (twelve, (tasks,)), (large, (tasks,)), (load, (tasks, low))):
        compare(raced, sources, results)


if __name__ == "__main__":
    main()
