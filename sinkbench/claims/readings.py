"""A figure of a cell as a range: the 95 % interval from five blocks on, else the lowest and the highest trial.

One trial has no range, and without a range nothing is decided. What is counted is exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sinkbench.analysis.intervals import FEWEST_BLOCKS, ratio_by_block, spread_of
from sinkbench.claims.models import EXACT, CellOf
from sinkbench.metrics.cpu import total_cpu_seconds
from sinkbench.metrics.metric import find
from sinkbench.results import CellSummary, RunSummary, Spread, TrialRecord
from sinkbench.summary.thresholds import value_of, why_undecided

FEWEST_TRIALS = 2
Trials = Sequence[TrialRecord]

_SPREADS = {
    "records_per_second": "records_per_second",
    "efficiency": "efficiency_by_block",
    "cpu_seconds_per_million": "total_cpu_seconds_per_million",
    "memory_mb": "total_peak_memory_bytes",
    "disk_bytes_per_record": "disk_bytes_per_record",
}
_OF_TRIAL = {f"{name}_ms": f"latency_ms.{name}" for name in ("p50", "p95", "p99")}
_OF_TRIAL |= {name: name for name in ("records_per_write", "sent_share")}
_COUNTED = {
    "clients": "connections.clients_peak",
    "connections_left": "recovery.connections_left",
    "copies": "durability.nodes",
    "failed_tasks": "failed_tasks",
}


@dataclass(frozen=True)
class Stored:
    """A run, and its trials if they were read."""

    run: RunSummary
    trials: Trials = ()


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
    """The one cell that is meant; Untold if there is none, or several match."""
    asked = {
        "label": wanted.label,
        "tasks": wanted.tasks,
        "fault": wanted.fault,
        "offered_records_per_second": wanted.records_per_second,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    found = [cell for cell in run.cells if all(getattr(cell, name) == value for name, value in given.items())]
    if len(found) != 1:
        raise Untold(f"{len(found)} cells are {wanted}" if found else f"the run has no cell {wanted}")
    if not run.complete:
        raise Untold("the run is not finished")
    if not found[0].trials:
        raise Untold(f"no trial of {wanted} was taken")
    return found[0]


def range_of(stored: Stored, wanted: CellOf, figure: str) -> Range:
    """A figure of the cell that is meant; Untold if it is not final, or has no range."""
    return _range(stored, cell_of(stored.run, wanted), figure)


def _range(stored: Stored, cell: CellSummary, figure: str) -> Range:
    if figure in EXACT:
        value = _counted(stored.run, cell, figure)
        return Range(value, value, value)
    spread = _spread(stored, cell, figure)
    if len(spread.values) < FEWEST_TRIALS:
        raise Untold(f"{figure} of {cell.cell}: one trial has no range; race with --trials {FEWEST_BLOCKS}")
    ends = spread.interval or spread
    return Range(spread.median, ends.low, ends.high).times(1e-6 if figure == "memory_mb" else 1)


def ratio_of(stored: Stored, cells: tuple[CellSummary, CellSummary], figure: str) -> Range:
    """The first cell's figure divided by the second's: paired by block from five on, else of the furthest trials."""
    above, below = (_range(stored, cell, figure) for cell in cells)
    if figure not in EXACT:
        one, other = (_spread(stored, cell, figure) for cell in cells)
        if len(one.by_block().keys() & other.by_block().keys()) >= FEWEST_BLOCKS:
            found = ratio_by_block(cells[1].cell, one.by_block(), other.by_block())
            if found is not None and found.interval is not None:
                return Range(found.estimate, found.interval.low, found.interval.high)
        # Intervals of each are no interval of the quotient: their furthest trials are the safe side.
        above, below = (Range(each.median, each.low, each.high) for each in (one, other))
    if below.low <= 0:
        raise Untold(f"{figure} of {cells[1].cell} may be 0, and divides nothing")
    return Range(above.estimate / below.estimate, above.low / below.high, above.high / below.low)


def _counted(run: RunSummary, cell: CellSummary, figure: str) -> float:
    value = find(cell, _COUNTED[figure]) if figure in _COUNTED else value_of(cell, figure)
    # Tasks that FAILED make a cell invalid, and are counted all the same.
    why = "" if figure == "failed_tasks" else why_undecided(run, cell, figure, value)
    if why or value is None:
        raise Untold(f"{figure} of {cell.cell}: {why or 'not measured'}")
    return float(value)


def _spread(stored: Stored, cell: CellSummary, figure: str) -> Spread:
    kept = figure in _SPREADS
    spread: Spread | None = find(cell, _SPREADS[figure]) if kept else spread_of(_by_block(cell, figure, stored.trials))
    why = why_undecided(stored.run, cell, figure, None if spread is None else spread.median)
    if not why and cell.mode == "capacity" and figure == "records_per_second":
        why = "a capacity is one search, and has no range"
    if why or spread is None:
        raise Untold(f"{figure} of {cell.cell}: {why or 'no range was kept'}")
    return spread


def _by_block(cell: CellSummary, figure: str, trials: Trials) -> Mapping[int, float]:
    """The values of the trials that the cell's rate is of."""
    used = set(cell.records_per_second.blocks) if cell.records_per_second else set()
    own = [each for each in trials if each.cell == cell.cell and not each.pilot and not each.reasons]
    values = {each.block: _of_trial(each, figure) for each in own if not used or each.block in used}
    return {block: value for block, value in values.items() if value is not None}


def _of_trial(trial: TrialRecord, figure: str) -> float | None:
    name, _, service = figure.partition(".")
    if name in ("cpu", "cpu_share"):
        seconds, total = trial.cpu_seconds_per_million.get(service), total_cpu_seconds(trial)
        if name == "cpu" or seconds is None:
            return seconds
        return seconds / total if total else None
    value: float | None = find(trial, _OF_TRIAL[figure]) if figure in _OF_TRIAL else None
    return value
