"""The answers of a run: which cells are compared, how much faster one is, and what is missing from the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.analysis.rates import usable_median, usable_rate
from sinkbench.metrics.queries import job_of
from sinkbench.results import CellSummary, RatePerSecond, RatioTo, RunSummary

BEST, EQUAL, PUBLISHED, ENDS = "best of each sink", "equal jobs", "as published", "fastest and slowest"
# The published comparison: one request per record with Elasticsearch, batches with PostgreSQL.
_PUBLISHED = ("elasticsearch/camel-index", "postgres/jdbc")


@dataclass(frozen=True)
class Answer:
    """Two compared cells, and why these (`about`). `ratio` is by block, None if no block has both; `least` is that
    of the faster's lowest to the slower's highest trial."""

    about: str
    faster: CellSummary
    slower: CellSummary
    ratio: RatioTo | None
    of_medians: float
    least: float
    jobs: tuple[frozenset[str], frozenset[str]] | None = None


def answers_of(summary: RunSummary) -> list[Answer]:
    """The comparisons between a run's cells that passed and have a quotable rate.

    The best cells of each two sinks, then the two published pipelines at equal tasks; with a single sink its fastest
    and slowest. Where queries were asked, only cells that answer the same ones are compared, a pair for each such job.
    Cells under a constant load store what is offered, so they have no answer.
    """
    cells = [cell for cell in compared_cells(summary) if is_usable(cell)]
    if len({cell.sink for cell in compared_cells(summary)}) < 2:
        return [_answer(ENDS, max(cells, key=_rate), min(cells, key=_rate))] if len(cells) > 1 else []
    if _was_asked(summary):
        alike = [[cell for cell in cells if job_of(cell) == job] for job in _jobs(cells)]
        found = [_answer(EQUAL, *pair) for those in alike for pair in _best(those)]
    else:
        found = [_answer(BEST, *pair) for pair in _best(cells)]
    named = {frozenset((each.faster.cell, each.slower.cell)) for each in found}
    published = [_answer(PUBLISHED, *pair) for pair in _published(cells)]
    return [*found, *(each for each in published if frozenset((each.faster.cell, each.slower.cell)) not in named)]


def unmatched(summary: RunSummary) -> list[CellSummary]:
    """The best quotable cell of each sink if queries were asked and no two sinks do the same job; else none."""
    cells = [cell for cell in compared_cells(summary) if job_of(cell) is not None]
    sinks: dict[frozenset[str] | None, set[str]] = {}
    for cell in cells:
        sinks.setdefault(job_of(cell), set()).add(cell.sink)
    best = {cell.sink: cell for cell in sorted(filter(is_usable, cells), key=_rate)}
    return list(best.values()) if len(best) > 1 and all(len(each) < 2 for each in sinks.values()) else []


def _was_asked(summary: RunSummary) -> bool:
    return any(cell.queries for cell in compared_cells(summary))


def _jobs(cells: Sequence[CellSummary]) -> list[frozenset[str]]:
    found = {job for cell in cells if (job := job_of(cell)) is not None}
    return sorted(found, key=lambda job: (-len(job), sorted(job)))


def _best(cells: Sequence[CellSummary]) -> list[tuple[CellSummary, CellSummary]]:
    best: dict[str, CellSummary] = {}
    for cell in sorted(cells, key=_rate, reverse=True):
        best.setdefault(cell.sink, cell)
    return list(combinations(best.values(), 2))


def left_out(summary: RunSummary) -> list[CellSummary]:
    """The cells in no answer: they did not pass, were not warm and steady, or their job is unknown."""
    asked = _was_asked(summary)
    return [cell for cell in compared_cells(summary) if not is_usable(cell) or (asked and job_of(cell) is None)]


def compared_cells(summary: RunSummary) -> list[CellSummary]:
    """The cells that answers can compare: no re-scales and no constant loads."""
    return [cell for cell in summary.cells if cell.rescale is None and cell.mode not in ("sustain", "faults")]


def is_usable(cell: CellSummary) -> bool:
    return cell.passed and bool(usable_median(cell))


def _rate(cell: CellSummary) -> float:
    return usable_median(cell) or 0.0


def _known(cell: CellSummary) -> RatePerSecond:
    found = usable_rate(cell)
    if found is None:
        raise ValueError(f"{cell.cell} has no rate that may be quoted")
    return found


def _published(cells: Sequence[CellSummary]) -> Iterator[tuple[CellSummary, CellSummary]]:
    """The published pipelines, unchanged, at the fewest tasks that both have."""
    published = (cell for cell in cells if cell.pipeline in _PUBLISHED)
    theirs = [cell for cell in published if not cell.overrides and not cell.settings and cell.target is None]
    pairs = [(one, two) for one, two in combinations(theirs, 2) if one.sink != two.sink and one.tasks == two.tasks]
    yield from sorted(pairs, key=lambda pair: pair[0].tasks)[:1]


def _answer(about: str, one: CellSummary, other: CellSummary) -> Answer:
    faster, slower = sorted((one, other), key=_rate, reverse=True)
    fast, slow = _known(faster), _known(slower)
    # A capacity is one search: its confirming rates are no sample of it.
    drained = faster.mode == "drain"
    ratio = ratio_by_block(slower.cell, fast.by_block(), slow.by_block()) if drained else None
    if drained and ratio is None and faster.ratio is not None and faster.ratio.to == slower.cell:
        # For a run that stored its rates without blocks.
        ratio = faster.ratio
    jobs = job_of(faster), job_of(slower)
    known = None if jobs[0] is None or jobs[1] is None else (jobs[0], jobs[1])
    return Answer(about, faster, slower, ratio, fast.median / slow.median, fast.low / slow.high, known)
