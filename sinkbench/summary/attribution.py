"""The shares of sink and connector in the difference between two pipelines, by a third pipeline with the connector
of one and the sink of the other: each step changes only one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.analysis.rates import usable_median, usable_rate
from sinkbench.analysis.shares import Share, share_of_first
from sinkbench.results import CellSummary, RatioTo, RunSummary
from sinkbench.summary.answers import compared_cells, is_usable

# A connector that writes record by record shows slightly more or fewer than one, because of other writes.
_ONE_BY_ONE = 1.5


@dataclass(frozen=True)
class Step:
    """From one cell to another that differs only in the sink, or only in the connector; `ratio` is by block."""

    first: CellSummary
    second: CellSummary
    ratio: RatioTo | None
    of_medians: float


@dataclass(frozen=True)
class Attribution:
    """The two steps from a cell to a faster one with another sink and connector. `share` is the sink's, the rest the
    connector's; None without a clear difference."""

    batched: bool
    first: Step
    second: Step
    sink_first: bool
    share: Share | None

    @property
    def cells(self) -> tuple[CellSummary, CellSummary, CellSummary]:
        """The slowest first."""
        return self.first.first, self.first.second, self.second.second


def attributions_of(summary: RunSummary) -> list[Attribution]:
    """The attributions between a run's quotable drains; those that write record by record first. All three cells
    write in the same way and have equally many tasks, the fewest possible; the fastest cell of each connector and
    sink counts."""
    usable = [cell for cell in _drains(summary) if is_usable(cell)]
    return [
        _attribution(batched, *way)
        for batched in (False, True)
        for way in _at_fewest_tasks([cell for cell in usable if _is_batched(cell) is batched])
    ]


def unattributed(summary: RunSummary) -> list[tuple[bool, list[CellSummary]]]:
    """For each way of writing (batched or not) without an attribution, the run's cells that it lacks because they
    did not pass or have no quotable rate."""
    cells = _drains(summary)
    done = {each.batched for each in attributions_of(summary)}
    found = []
    for batched in {False, True} - done:
        # How a cell without a valid trial writes is unknown.
        wanted = [cell for cell in cells if _is_batched(cell) in (batched, None)]
        known = any(_is_batched(cell) is batched for cell in wanted)
        ways = _at_fewest_tasks(wanted) if known else []
        missing = [[cell for cell in way if not is_usable(cell)] for way in ways]
        if missing:
            found.append((batched, min(missing, key=len)))
    return sorted(found, key=lambda each: each[0])


def _drains(summary: RunSummary) -> list[CellSummary]:
    return [cell for cell in compared_cells(summary) if cell.mode == "drain" and cell.connector is not None]


def _is_batched(cell: CellSummary) -> bool | None:
    return None if cell.records_per_write is None else cell.records_per_write >= _ONE_BY_ONE


def _at_fewest_tasks(cells: Sequence[CellSummary]) -> list[tuple[CellSummary, CellSummary, CellSummary]]:
    """The triples among cells that write alike, at the fewest tasks that have any."""
    for tasks in sorted({cell.tasks for cell in cells}):
        corners: dict[tuple[str, str | None], CellSummary] = {}
        for cell in sorted((each for each in cells if each.tasks == tasks), key=_rate, reverse=True):
            corners.setdefault((cell.sink, cell.connector), cell)
        if ways := list(_ways(corners)):
            return ways
    return []


def _ways(
    corners: Mapping[tuple[str, str | None], CellSummary],
) -> Iterator[tuple[CellSummary, CellSummary, CellSummary]]:
    """Each pair of cells that differ in sink and connector, the slower one first, with the cell in between."""
    for pair in combinations(corners.values(), 2):
        slower, faster = sorted(pair, key=_rate)
        if slower.sink == faster.sink or slower.connector == faster.connector:
            continue
        over_sink = corners.get((faster.sink, slower.connector))
        between = over_sink or corners.get((slower.sink, faster.connector))
        if between is not None:
            yield slower, between, faster


def _attribution(batched: bool, slower: CellSummary, between: CellSummary, faster: CellSummary) -> Attribution:
    sink_first = between.sink != slower.sink
    share = share_of_first(*_by_block(slower, between, faster))
    if share is not None and not sink_first:
        share = share.rest
    return Attribution(batched, _step(slower, between), _step(between, faster), sink_first, share)


def _by_block(*cells: CellSummary) -> list[dict[int, float]]:
    found = [rate.by_block() for cell in cells if (rate := usable_rate(cell)) is not None]
    return found if all(found) else [{1: _rate(cell)} for cell in cells]


def _step(first: CellSummary, second: CellSummary) -> Step:
    below, above = _by_block(first, second)
    return Step(first, second, ratio_by_block(first.cell, above, below), _rate(second) / _rate(first))


def _rate(cell: CellSummary) -> float:
    return usable_median(cell) or 0.0
