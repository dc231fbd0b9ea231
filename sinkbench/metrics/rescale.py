"""The time and effect of changing the number of tasks of a running connector."""

from __future__ import annotations

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.analysis.rates import median_known, usable_median
from sinkbench.analysis.words import NOT_MEASURED, formatted, tenths, whole
from sinkbench.metrics.audit import count_columns
from sinkbench.metrics.metric import Column, Fields, Metric, View, column, find
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary, Rescale

RESCALES = "rescales"
_MEDIANS = ("rebalance_seconds", "standstill_seconds", "before_records_per_second")


def _of_cell(taken: Taken) -> Fields:
    """Medians over the valid trials' changes of tasks, and the ratio to the cold start."""
    if taken.cell.tasks_before is None:
        return {}
    done = [trial.rescale for trial in taken.valid if trial.rescale is not None]
    medians = {name: median_known(getattr(each, name) for each in done) for name in _MEDIANS}
    colds = [each for each in taken.run.values() if each.cell.before is None and each.cell.place == taken.cell.place]
    ratio = ratio_by_block(colds[-1].cell.key, taken.rates, colds[-1].rates) if colds else None
    return {"rescale": Rescale(tasks_before=taken.cell.tasks_before, to_cold=ratio, **medians)}


def _interval(cell: CellSummary, _: View) -> str:
    interval = find(cell, "rescale.to_cold.interval")
    return NOT_MEASURED if interval is None else f"{interval.low:.2f}-{interval.high:.2f}"


METRICS = (
    Metric(
        "Rebalance",
        "The time from the request for another number of tasks until all new tasks run.",
        of_cell=_of_cell,
        columns=[
            Column(RESCALES, 10, "tasks", lambda cell, _: f"{find(cell, 'rescale.tasks_before')} to {cell.tasks}"),
            column(RESCALES, 20, "rebalance\ns", "rescale.rebalance_seconds", tenths),
        ],
    ),
    Metric(
        "Standstill",
        "The longest time after that request in which nothing was stored.",
        columns=[column(RESCALES, 30, "stand-\nstill s", "rescale.standstill_seconds", tenths)],
    ),
    Metric(
        "Rate before and after",
        "Records stored per second before the request for other tasks, and after the rebalance.",
        columns=[
            column(RESCALES, 40, "before\nrecords/s", "rescale.before_records_per_second", whole),
            Column(RESCALES, 50, "after\nrecords/s", lambda cell, _: whole(usable_median(cell))),
        ],
    ),
    Metric(
        "Ratio to a cold start",
        "The rate after the rebalance, divided by that of a connector started with as many tasks.",
        columns=[
            column(RESCALES, 60, "after/\ncold", "rescale.to_cold.estimate", lambda ratio: formatted(ratio, ".2f")),
            Column(RESCALES, 70, "95 %\ninterval", _interval),
            *count_columns(RESCALES, "twice", 80),
        ],
    ),
)
