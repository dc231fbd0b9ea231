"""The first screen of a report: the answer and what is missing, with rates and costs as pictures at the side."""

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
"""More would push the costs off the first screen."""


def opening(summary: RunSummary) -> Opening:
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
    """The cells that fit on the first screen, at most 16, in the plan's order: all, or the fastest of each label. A
    cell without a quotable rate represents its label only if there is no other."""
    if len(summary.cells) <= MOST_CELLS:
        return summary.cells
    best: dict[str, CellSummary] = {}
    for cell in summary.cells:
        if cell.rescale is None and _rate(cell) > _rate(best.get(cell.label)):
            best[cell.label] = cell
    return list(best.values())[:MOST_CELLS]


def _rate(cell: CellSummary | None) -> float:
    """Only for sorting: below 0 without a cell, 0 if its rate is not quotable."""
    if cell is None:
        return -1.0
    return (usable_median(cell) or 0.0) if cell.passed else 0.0
