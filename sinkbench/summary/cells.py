"""From the trials of a run to one summary a cell, with a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sinkbench.analysis.scalability import scaling_of
from sinkbench.metrics import METRICS
from sinkbench.metrics.cpu import total_cpu_seconds
from sinkbench.metrics.metric import Metric, fields_of
from sinkbench.metrics.taken import Taken, quotable, valid_by_block
from sinkbench.plan.capacity import CapacitySearch
from sinkbench.plan.cells import Cell
from sinkbench.results import CellSummary, Limit, Prices, Scaling, TrialRecord

__all__ = ["cpu_by_block", "scalings", "summarize", "valid_by_block"]


def summarize(
    cells: Sequence[Cell],
    trials: Iterable[TrialRecord],
    searches: Mapping[str, CapacitySearch] | None = None,
    limits: Sequence[Limit] = (),
    prices: Prices | None = None,
    metrics: Sequence[Metric] = METRICS,
) -> list[CellSummary]:
    """One summary for each of the plan's cells, in their order; pilots are left out.

    Rates, records per write and CPU seconds are medians over the valid trials. Counts of what went wrong (lost,
    duplicated, failed tasks) and peaks of connections are taken over all trials, so that an invalid one hides none.
    A cell without a valid trial is invalid. Every cell but the slowest has its ratio to that one, from the blocks in
    which both are valid. ValueError if a trial is of none of the cells.

    Of a constant load there is no ratio, and no interval: what is stored of it follows from what was offered. Of a
    capacity that was searched, only the trials count that confirmed it; `searches` has the search of each cell's key.
    """
    trials, searches = list(trials), searches or {}
    taken: dict[str, Taken] = {}
    for cell, own in zip(cells, _by_cell(cells, trials).values(), strict=True):
        every = [trial for trial in trials if trial.cell == cell.key]
        taken[cell.key] = Taken(cell, own, every, taken, searches.get(cell.key), limits, prices)
    return [_summary(taken[cell.key], metrics) for cell in cells]


def scalings(cells: Sequence[Cell], trials: Iterable[TrialRecord]) -> list[Scaling]:
    """How each label that was measured at several numbers of tasks scales, in the plan's order."""
    taken = _by_cell(cells, trials)
    by_label: dict[str, list[Cell]] = {}
    for cell in (cell for cell in cells if cell.before is None):
        by_label.setdefault(cell.label, []).append(cell)
    return [
        scaling_of(label, each[0].workers, {cell.tasks: valid_by_block(taken[cell.key]) for cell in each})
        for label, each in by_label.items()
        if len({cell.tasks for cell in each}) > 1 and each[0].mode == "drain"
    ]


def cpu_by_block(trials: Iterable[TrialRecord]) -> dict[int, float]:
    """The CPU seconds of the `quotable` trials of one cell for a million records, by block."""
    found = ((trial.block, total_cpu_seconds(trial)) for trial in quotable(trials))
    return {block: seconds for block, seconds in found if seconds is not None}


def _summary(taken: Taken, metrics: Sequence[Metric]) -> CellSummary:
    fields = fields_of(metrics, lambda metric: metric.of_cell(taken))
    return CellSummary.model_validate({**taken.cell.identity(), **fields})


def _by_cell(cells: Sequence[Cell], trials: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    taken: dict[str, list[TrialRecord]] = {cell.key: [] for cell in cells}
    for trial in trials:
        if trial.pilot:
            continue
        if trial.cell not in taken:
            raise ValueError(f"trial {trial.trial} is of cell {trial.cell}, which is not in the plan")
        taken[trial.cell].append(trial)
    return taken
