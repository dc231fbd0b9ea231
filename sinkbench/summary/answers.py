"""What a run answers: which of its cells are compared, how much faster one is, and what is missing from the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.analysis.rates import usable_median, usable_rate
from sinkbench.results import CellSummary, RatePerSecond, RatioTo, RunSummary

__all__ = ["BEST", "ENDS", "PUBLISHED", "Answer", "answers_of", "left_out"]

BEST, PUBLISHED, ENDS = "best of each sink", "as published", "fastest and slowest"
# The pipelines of the published comparison: one request a record there, batches here.
_PUBLISHED = ("elasticsearch/camel-index", "postgres/jdbc")


@dataclass(frozen=True)
class Answer:
    """Two cells that are compared.

    Attributes:
        about: `BEST`, `PUBLISHED` or `ENDS`: why these two.
        ratio: of the faster to the slower by block, which is None if no block has both.
        of_medians, least: the ratio of the medians, and of the lowest trial of the faster to the highest of the slower.
    """

    about: str
    faster: CellSummary
    slower: CellSummary
    ratio: RatioTo | None
    of_medians: float
    least: float


def answers_of(summary: RunSummary) -> list[Answer]:
    """What can be said of a run's cells that passed and have a rate that may be quoted.

    The best cell of each sink against each other's best, then the two pipelines of the published comparison at as many
    tasks; with a single sink its fastest against its slowest. Under a constant load a cell stores what is offered, not
    what it could, so there is nothing to say.
    """
    cells = [cell for cell in _compared(summary) if _usable(cell)]
    best: dict[str, CellSummary] = {}
    for cell in sorted(cells, key=_rate, reverse=True):
        best.setdefault(cell.sink, cell)
    if len({cell.sink for cell in _compared(summary)}) < 2:
        return [_answer(ENDS, max(cells, key=_rate), min(cells, key=_rate))] if len(cells) > 1 else []
    found = [_answer(BEST, one, other) for one, other in combinations(best.values(), 2)]
    named = {frozenset((each.faster.cell, each.slower.cell)) for each in found}
    published = [_answer(PUBLISHED, *pair) for pair in _published(cells)]
    return [*found, *(each for each in published if frozenset((each.faster.cell, each.slower.cell)) not in named)]


def left_out(summary: RunSummary) -> list[CellSummary]:
    """The cells that are in no answer: they did not pass, or were not warm and steady."""
    return [cell for cell in _compared(summary) if not _usable(cell)]


def _compared(summary: RunSummary) -> list[CellSummary]:
    return [cell for cell in summary.cells if cell.rescale is None and cell.mode != "sustain"]


def _usable(cell: CellSummary) -> bool:
    return cell.passed and bool(usable_median(cell))


def _rate(cell: CellSummary) -> float:
    return usable_median(cell) or 0.0


def _known(cell: CellSummary) -> RatePerSecond:
    found = usable_rate(cell)
    if found is None:
        raise ValueError(f"{cell.cell} has no rate that may be quoted")
    return found


def _published(cells: Sequence[CellSummary]) -> Iterator[tuple[CellSummary, CellSummary]]:
    """The pair of the published pipelines at the fewest tasks that both have, unchanged."""
    theirs = [cell for cell in cells if cell.pipeline in _PUBLISHED and not cell.overrides and cell.target is None]
    pairs = [(one, two) for one, two in combinations(theirs, 2) if one.sink != two.sink and one.tasks == two.tasks]
    yield from sorted(pairs, key=lambda pair: pair[0].tasks)[:1]


def _answer(about: str, one: CellSummary, other: CellSummary) -> Answer:
    faster, slower = sorted((one, other), key=_rate, reverse=True)
    fast, slow = _known(faster), _known(slower)
    # A capacity is one search: the rates that confirm it do not scatter.
    drained = faster.mode == "drain"
    ratio = ratio_by_block(slower.cell, fast.by_block(), slow.by_block()) if drained else None
    if drained and ratio is None and faster.ratio is not None and faster.ratio.to == slower.cell:
        # Of a run that kept its rates without their blocks.
        ratio = faster.ratio
    return Answer(about, faster, slower, ratio, fast.median / slow.median, fast.low / slow.high)
