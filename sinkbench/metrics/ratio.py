"""The ratio of a cell's rate to that of the slowest cell of its run."""

from __future__ import annotations

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.analysis.rates import ratio_to_slowest, usable_median
from sinkbench.metrics.format import NOT_MEASURED, times
from sinkbench.metrics.metric import Column, Fields, Metric, View, bounds, number, words
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.taken import Taken
from sinkbench.results import CellSummary


def _of_cell(taken: Taken) -> Fields:
    rated = {
        key: each.median
        for key, each in taken.run.items()
        if each.cell.before is None and each.early is None and each.median is not None
    }
    slowest = min(rated, key=lambda key: rated[key], default=None)
    key = taken.cell.key
    if slowest is None or key == slowest or key not in rated or taken.cell.mode != "drain":
        return {}
    return {"ratio": ratio_by_block(slowest, taken.rates, taken.run[slowest].rates)}


def _ratio(cell: CellSummary, view: View) -> str:
    cells = [each for each in view.summary.cells if each.rescale is None]
    of_medians = dict(
        zip((each.cell for each in cells), ratio_to_slowest([usable_median(each) for each in cells]), strict=True)
    )
    ratio = of_medians.get(cell.cell)
    # The ratio paired by block is the better estimate, and the one in the answer.
    if ratio is not None and cell.ratio and cell.ratio.interval:
        ratio = cell.ratio.estimate
    return NOT_MEASURED if ratio is None else f"x{times(ratio)}"


METRICS = (
    Metric(
        "Ratio",
        "How many times as fast a cell is as the slowest cell of its run.",
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
