"""What stored runs have measured of each pipeline: drains by tasks, a capacity, constant loads."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path

from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.words import counted
from sinkbench.errors import SizeError
from sinkbench.metrics.metric import find
from sinkbench.metrics.taken import quotable
from sinkbench.results import CellSummary, RunSummary, Scaling, TrialRecord
from sinkbench.runs.reader import StoredRun, find_run, list_runs, load_run
from sinkbench.summary.answers import is_final
from sinkbench.tables.screen import loses_buffered, record_bytes

FEWEST_TRIALS = 3
COMMANDS = {
    "sinkbench size --rate R --race quick": "rates, then constant loads",
    "sinkbench race scaling": "rates by tasks",
    "sinkbench race capacity": "highest sustained rates",
    "sinkbench race sustain": "p99 under a constant load",
}
_MODES = ("drain", "capacity", "sustain")
# What a pipeline is measured on, by the path in the environment: no rate is compared with one from elsewhere.
_PLACE = {"cpu_count": "{} cores", "stack": "{}", "topology.name": "{}", "security": "security {}"}


@dataclass(frozen=True)
class Point:
    """A final cell, and the trials that it is of."""

    cell: CellSummary
    trials: Sequence[TrialRecord]

    @property
    def rates(self) -> list[float]:
        if (rate := usable_rate(self.cell)) is None:
            return []
        # What confirmed a capacity was offered at it.
        return [rate.median] * len(rate.values) if self.cell.mode == "capacity" else rate.values


@dataclass
class Measured:
    """A pipeline as it was configured and where (`key`), with records of one size. `points` has its drains by tasks, or
    if there are none its capacities; `loads` its constant loads; `broken` verdicts of cells not to use, by tasks."""

    name: str
    record_bytes: float | None
    cores: float | None
    key: str
    points: dict[int, Point] = field(default_factory=dict)
    capacities: dict[int, Point] = field(default_factory=dict)
    loads: list[CellSummary] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
    too_few: str = ""
    scaling: Scaling | None = None
    law_run: str = ""
    asked: list[CellSummary] = field(default_factory=list)
    loses: bool = False
    lost: int = 0
    runs: list[str] = field(default_factory=list)
    place: Sequence[str] = ()

    def nearest(self, tasks: int) -> Point:
        """The measured point with the nearest number of tasks, of two the lower."""
        points = self.points or self.capacities
        return points[min(points, key=lambda each: (abs(each - tasks), each))]


def stored_runs(names: Sequence[str], results: Path) -> list[StoredRun]:
    """The named runs; without names the newest finished ones that have a final cell of a pipeline, for each mode, and
    its scaling, and newer ones in which it failed. SizeError with what would measure it, if there are none."""
    wanted = list(dict.fromkeys(find_run(name, results) for name in names))
    seen: set[tuple[str, str]] = set()
    for row in [] if names or not results.exists() else list_runs(results):
        if row.summary is not None and row.summary.complete:
            usable = _usable(row.summary)
            place = _place(row.summary)
            laws = {(json.dumps([each.label, place]), "scaling") for each in row.summary.scaling if each.supported}
            final = laws | {(_key(cell, place), cell.mode) for cell in usable if is_final(cell)}
            failed = {(_key(cell, place), cell.mode) for cell in usable if not cell.passed}
            wanted += [results / row.run] if (final | failed) - seen else []
            # At another number of tasks it may not fail.
            seen |= final
    kept = [load_run(path) for path in wanted]
    if not any(_usable(each.summary) for each in kept):
        commands = "; ".join(f"`{command}` ({what})" for command, what in COMMANDS.items())
        where = ", ".join(names) or str(results)
        raise SizeError(f"{where}: no drain, capacity or constant load to size from; measure: {commands}")
    return kept


def measured(runs: Iterable[StoredRun], wanted_bytes: float | None) -> list[Measured]:
    """Each pipeline of the runs, the newest run of a figure first; of several sizes of record the nearest one. Names
    say where it was measured, if that is not the same for all."""
    found: dict[str, dict[float | None, Measured]] = {}
    for kept in runs:
        size, cores, place = record_bytes(kept), find(kept.summary.environment, "cpu_count"), _place(kept.summary)
        for cell in _usable(kept.summary):
            known = cores if isinstance(cores, int) else None
            new = Measured(cell.label, size, known, _key(cell, place), place=place)
            _add(found.setdefault(new.key, {}).setdefault(size, new), kept, cell)
    all_of = [min(each.values(), key=lambda one: _distance(one.record_bytes, wanted_bytes)) for each in found.values()]
    differs = [len(set(parts)) > 1 for parts in zip(*(one.place for one in all_of), strict=True)]
    for one in all_of if any(differs) else ():
        one.name += f" ({', '.join(filter(None, compress(one.place, differs)))})"
    return all_of


def _add(one: Measured, kept: StoredRun, cell: CellSummary) -> None:
    summary = kept.summary
    if summary.run not in one.runs:
        one.runs.append(summary.run)
        law = next((each for each in summary.scaling if each.label == cell.label and each.supported), None)
        if law is not None and one.scaling is None:
            # A law is of one run's rates.
            one.scaling, one.law_run, one.points = law, summary.run, {}
    one.loses = one.loses or loses_buffered(kept, cell)
    one.lost += find(cell, "audit.lost") or 0
    one.asked += [cell] if cell.queries else []
    count = len(rate.values) if (rate := usable_rate(cell)) else 0
    if cell.mode == "sustain" or (cell.mode == "capacity" and is_final(cell)):
        one.loads += [cell] if count >= FEWEST_TRIALS or not cell.passed else []
    if cell.mode == "sustain":
        return
    points = one.points if cell.mode == "drain" else one.capacities
    # What is newer decides, whether it is a rate or a failure.
    if cell.tasks in points or (cell.mode == "drain" and cell.tasks in one.broken):
        return
    if not cell.passed and cell.mode == "drain":
        one.broken[cell.tasks] = cell.verdict
    elif not cell.passed:
        one.too_few = one.too_few or cell.verdict
    elif cell.at_least is not None:
        one.too_few = one.too_few or f"not final: {cell.at_least.text}"
    elif count < FEWEST_TRIALS:
        more = f"sinkbench race {summary.plan.name} --trials 5"
        more = more if summary.complete else f"sinkbench resume {summary.run}"
        one.too_few = one.too_few or f"{counted(count, 'final trial')}, {FEWEST_TRIALS} are needed: {more}"
    elif cell.mode == "capacity" or one.law_run in ("", summary.run):
        # The other steps of a search are of the same cell.
        offered = {None, cell.offered_records_per_second}
        own = (each for each in kept.trials if each.cell == cell.cell and each.offered_records_per_second in offered)
        points[cell.tasks] = Point(cell, quotable(own))


def _usable(summary: RunSummary) -> list[CellSummary]:
    """Cells of pipelines alone: without faults, queries meanwhile, or a change of tasks."""
    cells = (cell for cell in summary.cells if cell.mode in _MODES and cell.trials)
    return [cell for cell in cells if cell.rescale is None and cell.reads_per_second is None and not cell.readers]


def _place(summary: RunSummary) -> list[str]:
    """What is known of it, as words; "" for what is not, and for no security."""
    found = {path: find(summary.environment, path) for path in _PLACE}
    return ["" if found[path] in (None, "off") else words.format(found[path]) for path, words in _PLACE.items()]


def _key(cell: CellSummary, place: Sequence[str]) -> str:
    return json.dumps([cell.label, cell.target, cell.form, cell.overrides, cell.settings, place], sort_keys=True)


def _distance(size: float | None, wanted: float | None) -> float:
    if wanted is None:
        # The newest run's, since a minimum is the first one.
        return 0.0
    return math.inf if size is None else abs(math.log(size / wanted))
