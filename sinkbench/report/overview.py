"""The first screen of a report: the answer and what is missing, and at their side rates and costs as pictures."""

from __future__ import annotations

from collections.abc import Sequence

from sinkbench.analysis.rates import usable_median
from sinkbench.report.costs import cpu
from sinkbench.report.lead import answers_or_why_none, grounds, outcome
from sinkbench.report.missing import missing
from sinkbench.report.parts import Opening, PageSection
from sinkbench.report.throughput import overview
from sinkbench.results import CellSummary, RunSummary

MOST_CELLS = 16
"""Of one screen; more would push the costs below it."""


def opening(summary: RunSummary) -> Opening:
    """The first screen of a run."""
    cells = cells_shown(summary)
    of_all = len(cells) == len(summary.cells)
    rates, costs = overview(summary, cells), cpu(summary, cells, "costs")
    return Opening(
        lead=answers_or_why_none(summary),
        grounds=grounds(summary),
        outcome=outcome(summary),
        aside=[PageSection("missing", "What is missing", missing(summary))],
        pictures=[
            PageSection(
                "rates", "Rates" if of_all else "Rates, of each pipeline the fastest", [rates] if rates else []
            ),
            PageSection("costs", "CPU time" if of_all else "Their CPU time", [costs] if costs else []),
        ],
    )


def cells_shown(summary: RunSummary) -> Sequence[CellSummary]:
    """The cells that the first screen has room for: all, or of each label the one with the highest rate.

    At most 16, in the plan's order. A cell whose rate may not be quoted stands for its label only if it has no other.
    """
    if len(summary.cells) <= MOST_CELLS:
        return summary.cells
    best: dict[str, CellSummary] = {}
    for cell in summary.cells:
        if cell.rescale is None and _rate(cell) > _rate(best.get(cell.label)):
            best[cell.label] = cell
    return list(best.values())[:MOST_CELLS]


def _rate(cell: CellSummary | None) -> float:
    """For the order of cells alone: below 0 of none, 0 of one whose rate may not be quoted."""
    if cell is None:
        return -1.0
    return (usable_median(cell) or 0.0) if cell.passed else 0.0
