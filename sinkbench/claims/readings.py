"""A figure of a cell as a range: the 95 % interval from five blocks on, else the lowest and the highest trial.

Fewer than three trials have no range, and without a range nothing is decided. What is counted is exact. The range of a
capacity goes from what was sustained to the next rate that was not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sinkbench.analysis.intervals import FEWEST_BLOCKS, ratio_by_block, spread_of
from sinkbench.analysis.latency import GROWING
from sinkbench.analysis.limits import KAFKA_ALONE
from sinkbench.analysis.words import counted
from sinkbench.claims.models import COUNTED, EXACT, STANDBY, CellOf
from sinkbench.metrics.cpu import total_cpu_seconds
from sinkbench.metrics.metric import find
from sinkbench.results import CellSummary, Limit, RunSummary, Spread, TrialRecord
from sinkbench.summary.thresholds import value_of, why_undecided

FEWEST_TRIALS = 3
Trials = Sequence[TrialRecord]
Stored = tuple[RunSummary, Trials]
"""A run, and its trials if they were read."""
# Where a cell has a figure with its range, and where a trial or a cell has one without.
_SPREADS = {
    "records_per_second": "records_per_second",
    "efficiency": "efficiency_by_block",
    "cpu_seconds_per_million": "total_cpu_seconds_per_million",
    "memory_mb": "total_peak_memory_bytes",
    "disk_bytes_per_record": "disk_bytes_per_record",
}
_PATHS = {
    **{f"{name}_ms": f"latency_ms.{name}" for name in ("p50", "p95", "p99")},
    **{name: f"figures.{name}" for name in STANDBY},
    "clients": "connections.clients_peak",
    "connections_left": "recovery.connections_left",
    "copies": "durability.nodes",
    "failed_tasks": "failed_tasks",
    "failed_in_fault": "recovery.failed_tasks",
}


class Untold(Exception):
    """Why a figure, or a cell, cannot be told."""


@dataclass(frozen=True)
class Range:
    """Where a figure lies."""

    estimate: float
    low: float
    high: float

    def times(self, factor: float) -> Range:
        return Range(self.estimate * factor, self.low * factor, self.high * factor)


def cell_of(run: RunSummary, wanted: CellOf) -> CellSummary:
    """The one cell that is meant; Untold if there is none, or several match, or it is not finished."""
    given = wanted.model_dump(exclude_none=True).items()
    found = [cell for cell in run.cells if all((getattr(cell, name) or 0) == value for name, value in given)]
    if len(found) != 1:
        raise Untold(f"{len(found)} cells are {wanted}" if found else f"the run has no cell {wanted}")
    if not run.complete or not found[0].trials:
        raise Untold(f"{wanted}: {found[0].verdict}" if run.complete else "the run is not finished")
    return found[0]


def load_of(run: RunSummary, wanted: CellOf) -> Limit | None:
    """The load on Kafka alone that is meant; None if it is a cell. Untold if the run is not finished."""
    found = next((each for each in run.limits if (each.sink, each.way) == (KAFKA_ALONE, wanted.label)), None)
    if found is not None and not run.complete:
        raise Untold("the run is not finished")
    return found


def range_of(stored: Stored, wanted: CellOf, figure: str) -> Range:
    """A figure of a cell; Untold if it is not final, or has no range."""
    spread = _spread(stored, wanted, figure)
    ends = spread.interval or spread
    return Range(spread.median, ends.low, ends.high).times(1e-6 if figure == "memory_mb" else 1)


def ratio_of(stored: Stored, pair: tuple[CellOf, CellOf], figure: str, *, per_task: bool = False) -> Range:
    """The first cell's figure divided by the second's: paired by block from five on, else of the furthest trials, since
    intervals of each are none of the quotient."""
    above, below = (_spread(stored, each, figure) for each in pair)
    factor = cell_of(stored[0], pair[1]).tasks / cell_of(stored[0], pair[0]).tasks if per_task else 1.0
    if len(above.by_block().keys() & below.by_block().keys()) >= FEWEST_BLOCKS:
        paired = ratio_by_block(pair[1].label, above.by_block(), below.by_block())
        if paired is not None and paired.interval is not None:
            return Range(paired.estimate, paired.interval.low, paired.interval.high).times(factor)
    if below.low <= 0:
        raise Untold(f"{figure} of {pair[1]} may be 0, and divides nothing")
    return Range(above.median / below.median, above.low / below.high, above.high / below.low).times(factor)


def _spread(stored: Stored, wanted: CellOf, figure: str) -> Spread:
    if (alone := load_of(stored[0], wanted)) is not None:
        return _of_kafka(alone, figure)
    cell = cell_of(stored[0], wanted)
    if figure in COUNTED:
        value = find(cell, _PATHS[figure]) if figure in _PATHS else value_of(cell, figure)
        spread = None if value is None else Spread(median=value, low=value, high=value, values=[value] * FEWEST_TRIALS)
    elif cell.mode == "capacity" and figure == "records_per_second":
        spread = _bracket(cell)
    elif figure in _SPREADS:
        spread = find(cell, _SPREADS[figure])
    else:
        spread = _over_trials(cell, figure, stored[1])
    why = why_undecided(stored[0], cell, figure, None if spread is None else spread.median)
    # What is counted does not hang on whether JVMs are warm, and tasks that FAILED make a cell invalid.
    if figure in ("failed_tasks", "copies") or (figure in EXACT and not cell.invalid):
        why = ""
    if why or spread is None:
        raise Untold(f"{figure} of {cell.cell}: {why or 'not measured'}")
    return _enough(spread, f"{figure} of {cell.cell}", "trial")


def _enough(spread: Spread, of: str, one: str) -> Spread:
    if (count := len(spread.values)) < FEWEST_TRIALS:
        raise Untold(f"{of}: {counted(count, one)}, of which nothing is told; race with --trials {FEWEST_BLOCKS}")
    return spread


def _of_kafka(alone: Limit, figure: str) -> Spread:
    """The rate, the CPU time, or one of `figures`, of a load on Kafka alone, over its blocks."""
    name = figure.removeprefix("cpu.")
    found = {
        each.block: value
        for each in alone.in_blocks
        if (value := {**each.cpu_seconds_per_million, **each.figures}.get(name)) is not None
    }
    spread = alone.spread if figure == "records_per_second" else spread_of(found)
    if spread is None:
        raise Untold(f"{figure} of {alone.way}: {alone.note or 'not measured'}")
    return _enough(spread, f"{figure} of {alone.way}", "block")


def _bracket(cell: CellSummary) -> Spread | None:
    """From what was sustained to the lowest rate above it that was not; None without either."""
    low = cell.offered_records_per_second
    above = [step.offered for step in cell.search if step.outcome == GROWING and low is not None and step.offered > low]
    return Spread(median=low, low=low, high=min(above), values=[low] * FEWEST_TRIALS) if low and above else None


def _over_trials(cell: CellSummary, figure: str, trials: Trials) -> Spread | None:
    """Of the trials that the cell's rate is of."""
    used = set(cell.records_per_second.blocks) if cell.records_per_second else set()
    own = [each for each in trials if each.cell == cell.cell and not each.pilot and not each.reasons]
    values = {each.block: _of_trial(each, figure) for each in own if not used or each.block in used}
    return spread_of({block: value for block, value in values.items() if value is not None})


def _of_trial(trial: TrialRecord, figure: str) -> float | None:
    name, _, service = figure.partition(".")
    of_services = trial.node_cpu_ratio if name == "node_cpu_ratio" else trial.cpu_seconds_per_million
    value: float | None = of_services.get(service) if service else find(trial, _PATHS.get(name, name))
    if name != "cpu_share" or value is None:
        return value
    total = total_cpu_seconds(trial)
    return value / total if total else None
