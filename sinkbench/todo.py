"""What of a plan is taken and what is left, told by the trials that there are: pure decisions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sinkbench.cells import Cell, blocks
from sinkbench.lag import GROWING
from sinkbench.limits.efficiency import GENERATOR, best
from sinkbench.plan import Plan
from sinkbench.results import Limit, TrialRecord
from sinkbench.search import INVALID, CapacitySearch
from sinkbench.until import is_enough, most_blocks, valid_rates
from sinkbench.watch import NOT_DONE

__all__ = ["BlockLeft", "block_of", "blocks_left", "cells_left", "feed", "is_over", "new_search", "searches_of"]

# The generator was alone when it was measured; beside a pipeline it has less of the machine.
GENERATOR_SHARE = 0.8
LEAST_OFFER = 0.1


@dataclass(frozen=True)
class BlockLeft:
    """A block of which trials are left: its number, from 1, and their cells in the order in which they are taken."""

    number: int
    cells: list[Cell]
    begun: bool
    """Whether a trial of it is taken, so that the others belong to the run, too, however sure its figures are."""


def blocks_left(plan: Plan, cells: Sequence[Cell], trials: Sequence[TrialRecord]) -> list[BlockLeft]:
    """All trials that a plan in blocks may still take, at most; `plan` has its seed.

    A trial that was invalid is taken. One that was too short, and is marked as a pilot, is not; its block has begun.
    """
    taken = {(trial.block, trial.cell) for trial in trials if not trial.pilot}
    begun = {trial.block for trial in trials}
    found = []
    for number, block in enumerate(blocks(cells, most_blocks(plan), plan.seed or 0), start=1):
        left = [cell for cell in block if (number, cell.key) not in taken]
        if left:
            found.append(BlockLeft(number, left, number in begun))
    return found


def is_over(plan: Plan, cells: Sequence[Cell], trials: Iterable[TrialRecord], block: BlockLeft) -> bool:
    """Whether that block is not to be taken, since the run is sure enough of its figures."""
    rates = valid_rates([cell.key for cell in cells], trials)
    return not block.begun and is_enough(plan, block.number - 1, rates)


def cells_left(
    plan: Plan, cells: Sequence[Cell], trials: Sequence[TrialRecord], limits: Iterable[Limit] = ()
) -> list[Cell]:
    """The cells of which trials are still to be taken, in their order; none if the run has all of its trials.

    ValueError as of `searches_of`.
    """
    if plan.mode == "capacity":
        searches = searches_of(plan, cells, trials, limits)
        return [cell for cell in cells if cell.key not in searches or searches[cell.key].next() is not None]
    left = blocks_left(plan, cells, trials)
    if not left or is_over(plan, cells, trials, left[0]):
        return []
    keys = {cell.key for block in left for cell in block.cells}
    return [cell for cell in cells if cell.key in keys]


def new_search(plan: Plan, start: float, limits: Iterable[Limit]) -> CapacitySearch:
    """The search for a cell's capacity that offers `start` records per second first, or what the generator can do.

    Both are rounded as they are in a trial's record, so that the search can be taken up again from its trials.
    """
    most = GENERATOR_SHARE * (best(limits, GENERATOR) or math.inf)
    first, last = (max(round(rate, 1), LEAST_OFFER) for rate in (start, most))
    return CapacitySearch(first, last, plan.capacity.precision_percent / 100, plan.trials)


def block_of(search: CapacitySearch) -> int:
    """The number of the trial that takes the search's next offer: of a candidate's confirmations from 1, else 0."""
    offer = search.next()
    if offer is None or not offer.confirms:
        return 0
    rate = round(offer.records_per_second, 1)
    return 1 + sum(step.confirms and step.offered == rate for step in search.path)


def feed(search: CapacitySearch, trial: TrialRecord) -> None:
    """Tells a search what came of the load that it offered last.

    A trial that is invalid only since too much was left to be stored in time has told enough, if its lag grew.
    """
    overloaded = trial.lag is not None and trial.lag.verdict == GROWING
    late = all(reason.startswith(NOT_DONE) for reason in trial.invalid)
    if trial.lag is None or (trial.invalid and not (overloaded and late)):
        search.take(INVALID, problem="; ".join(trial.invalid))
    else:
        search.take(trial.lag.verdict, trial.lag.growth_per_second)


def searches_of(
    plan: Plan, cells: Iterable[Cell], trials: Iterable[TrialRecord], limits: Iterable[Limit]
) -> dict[str, CapacitySearch]:
    """The search of each cell that has trials, by its key, as far as they lead; none unless the plan searches.

    ValueError if a trial offered what the search would not have: it is of another sinkbench, or a line is missing.
    """
    if plan.mode != "capacity":
        return {}
    by_cell: dict[str, list[TrialRecord]] = {cell.key: [] for cell in cells}
    for trial in trials:
        by_cell.setdefault(trial.cell, []).append(trial)
    limits = list(limits)
    return {key: _replayed(plan, taken, limits) for key, taken in by_cell.items() if taken}


def _replayed(plan: Plan, trials: Sequence[TrialRecord], limits: Sequence[Limit]) -> CapacitySearch:
    search = new_search(plan, trials[0].offered_records_per_second or LEAST_OFFER, limits)
    for trial in trials:
        offer = search.next()
        wanted = None if offer is None else (round(offer.records_per_second, 1), not offer.confirms)
        if wanted != (trial.offered_records_per_second, trial.pilot):
            raise ValueError(f"trial {trial.trial} of {trial.cell} is not what the search offers after those before it")
        feed(search, trial)
    return search
