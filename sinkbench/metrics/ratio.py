"""The ratio of a cell's rate to that of the slowest cell of its run that does the same job."""

from __future__ import annotations

from sinkbench.analysis.intervals import ratio_of
from sinkbench.metrics.format import NOT_MEASURED, times
from sinkbench.metrics.metric import Column, Fields, Metric, View, bounds, number, words
from sinkbench.metrics.queries import same_job
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary


def _of_cell(taken: Taken) -> Fields:
    # A constant load is stored at the rate at which it is offered.
    if not taken.median or taken.cell.before is not None or taken.cell.mode not in ("drain", "capacity"):
        return {}
    rated = [each for each in same_job(taken) if each.cell.before is None and each.median is not None]
    slowest = min(rated, key=lambda each: each.median or 0.0, default=taken)
    if slowest is taken or not slowest.median:
        return {}
    # A capacity is one search: its confirming rates are no sample of it.
    rates = [each.rates if taken.cell.mode == "drain" else {} for each in (taken, slowest)]
    return {"ratio": ratio_of(slowest.cell.key, rates[0], rates[1], taken.median / slowest.median)}


def _ratio(cell: CellSummary, view: View) -> str:
    if cell.ratio is not None:
        return f"x{times(cell.ratio.estimate)}"
    is_slowest = view.any(lambda each: each.ratio is not None and each.ratio.to == cell.cell)
    return f"x{times(1.0)}" if is_slowest else NOT_MEASURED


METRICS = (
    Metric(
        "Ratio",
        "How many times as fast a cell is as the slowest cell of its run that does the same job.",
        of_cell=_of_cell,
        columns=[Column(CELLS, 40, "ratio", _ratio)],
        place=130,
        exports=[
            words("ratio_to", "ratio.to"),
            number("ratio", "ratio.estimate"),
            *bounds("ratio", lambda cell, _: cell.ratio),
        ],
    ),
)
