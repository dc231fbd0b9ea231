"""The shares of sink and connector in the difference between two pipelines, by a third pipeline with the connector
of one and the sink of the other: each step changes only one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.shares import Share, share_of_first
from sinkbench.results import CellSummary, RatioTo, RunSummary
from sinkbench.summary.answers import ONE_BY_ONE, compared_cells, fastest_trial, is_final, pair_of

Way = tuple[CellSummary, CellSummary, CellSummary]


@dataclass(frozen=True)
class Step:
    """From one cell to another that differs only in the sink, or only in the connector; `ratio` is the second's rate
    to the first's."""

    first: CellSummary
    second: CellSummary
    ratio: RatioTo


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
    def cells(self) -> Way:
        """The slowest first."""
        return self.first.first, self.first.second, self.second.second


def attributions_of(summary: RunSummary) -> list[Attribution]:
    """The attributions between a run's final drains; those that write record by record first. All three cells write
    in the same way and have equally many tasks, the fewest possible; the fastest cell of each connector and sink
    counts, and if it is not final, there is none."""
    ways = [(batched, way) for batched in (False, True) for way in _ways_of(summary, batched)]
    return [found for batched, way in ways if (found := _attribution(batched, *way)) is not None]


def unattributed(summary: RunSummary) -> list[tuple[bool, list[CellSummary]]]:
    """For each way of writing (batched or not) without an attribution, the cells that it lacks, since they are not
    final."""
    done = {each.batched for each in attributions_of(summary)}
    found = []
    for batched in sorted({False, True} - done):
        missing = [[cell for cell in way if not is_final(cell)] for way in _ways_of(summary, batched)]
        if missing:
            found.append((batched, min(missing, key=len)))
    return found


def _ways_of(summary: RunSummary, batched: bool) -> list[Way]:
    """Each pair of cells that write alike and differ in sink and connector, the slower one first, with the cell in
    between; at the fewest tasks at which all are final, else at the fewest that have any."""
    drains = [cell for cell in compared_cells(summary) if cell.mode == "drain" and cell.connector is not None]
    # How a cell without a valid trial writes is unknown.
    wanted = [cell for cell in drains if _is_batched(cell) in (batched, None)]
    if all(_is_batched(cell) is None for cell in wanted):
        return []
    every = []
    for tasks in sorted({cell.tasks for cell in wanted}):
        corners: dict[tuple[str, str | None], CellSummary] = {}
        for cell in sorted((each for each in wanted if each.tasks == tasks), key=_rate, reverse=True):
            corners.setdefault((cell.sink, cell.connector), cell)
        if ways := list(_ways(corners)):
            every.append(ways)
    final = [ways for ways in every if any(all(map(is_final, way)) for way in ways)]
    return [*final, *every, []][0]


def _is_batched(cell: CellSummary) -> bool | None:
    return None if cell.records_per_write is None else cell.records_per_write >= ONE_BY_ONE


def _ways(corners: dict[tuple[str, str | None], CellSummary]) -> Iterator[Way]:
    for pair in combinations(corners.values(), 2):
        slower, faster = sorted(pair, key=_rate)
        if slower.sink == faster.sink or slower.connector == faster.connector:
            continue
        over_sink = corners.get((faster.sink, slower.connector))
        between = over_sink or corners.get((slower.sink, faster.connector))
        if between is not None:
            yield slower, between, faster


def _attribution(batched: bool, slower: CellSummary, between: CellSummary, faster: CellSummary) -> Attribution | None:
    first, second = _step(slower, between), _step(between, faster)
    if first is None or second is None:
        return None
    rates = [rate for cell in (slower, between, faster) if (rate := usable_rate(cell)) is not None]
    by_block = [rate.by_block() for rate in rates]
    share = share_of_first(*(by_block if all(by_block) else [{1: rate.median} for rate in rates]))
    sink_first = between.sink != slower.sink
    return Attribution(batched, first, second, sink_first, share if sink_first or share is None else share.rest)


def _step(first: CellSummary, second: CellSummary) -> Step | None:
    pair = pair_of(first, second)
    if pair is None:
        return None
    ratio = pair.ratio
    if pair.faster is first:
        turned = ratio.interval
        if turned is not None:
            turned = turned.model_copy(update={"low": 1 / turned.high, "high": 1 / turned.low})
        ratio = RatioTo(to=first.cell, estimate=1 / ratio.estimate, blocks=ratio.blocks, interval=turned)
    return Step(first, second, ratio)


def _rate(cell: CellSummary) -> float:
    """What a cell may reach: of one that is not final its fastest trial, and any rate if nothing is known."""
    if (rate := usable_rate(cell)) is not None and cell.passed:
        return rate.median
    fastest = fastest_trial(cell)
    return math.inf if fastest is None else fastest
