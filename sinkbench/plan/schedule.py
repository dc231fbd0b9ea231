"""Decides which trials and limits of a plan are left, from the existing ones. Pure.

The search for a capacity: the rate rises until it is not sustained, or falls until it is; then it bisects on the log
scale; then several fresh trials must all sustain the candidate, else it falls by the precision, a few times at most."""

import math
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sinkbench.analysis.intervals import interval_of_median, relative_width
from sinkbench.analysis.latency import BOUNDED, GROWING
from sinkbench.analysis.limits import CONNECTOR, GENERATOR, KAFKA_ALONE, best
from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import Cell, blocks
from sinkbench.plan.plan import BlocksPlan, CapacityPlan, Plan, kafka_loads
from sinkbench.results import Limit, SearchStep, TrialRecord

# The generator was measured alone; during a trial it has less of the machine.
GENERATOR_SHARE = 0.8
LEAST_OFFER = 0.1


class LimitOf(NamedTuple):
    sink: str
    way: str

    def needs(self, cell: Cell) -> bool:
        """Whether it is measured with that cell's connector, is its sink's, or that of Kafka alone."""
        return cell.key == self.way if self.sink == CONNECTOR else self.sink in (cell.sink, KAFKA_ALONE)


def are_in_blocks(plan: Plan) -> bool:
    """Whether limits are measured in each block: a plan with several blocks, and rates to divide by limits."""
    return bool(plan.limits or kafka_loads(plan)) and plan.drains and plan.most_blocks > 1


def limits_in_blocks(plan: Plan, limits: Iterable[Limit]) -> list[LimitOf]:
    """Returns the sinks' limits that are measured in each block, once their search has settled the method.

    Those of a consumer group and of Connect are not: they are in no efficiency, and each needs a loaded topic."""
    if not are_in_blocks(plan):
        return []
    return [LimitOf(limit.sink, limit.way) for limit in limits if limit.batch and limit.connections]


@dataclass(frozen=True)
class BlockLeft:
    """The rest of a block, in order; `number` counts from 1."""

    number: int
    steps: list[Cell | LimitOf]
    begun: bool
    """A begun block is completed, however precise the figures are."""

    @property
    def cells(self) -> list[Cell]:
        return [step for step in self.steps if isinstance(step, Cell)]

    @property
    def limits(self) -> list[LimitOf]:
        return [step for step in self.steps if isinstance(step, LimitOf)]


def blocks_left(
    plan: Plan, cells: Sequence[Cell], trials: Sequence[TrialRecord], limits: Sequence[Limit] = ()
) -> list[BlockLeft]:
    """Returns all that a plan in blocks may still take; `plan` has its seed.

    Invalid trials and limits without a rate count as taken; a trial that was too short, and is a pilot, does not."""
    replaced = {trial.replaces for trial in trials}
    taken = {(trial.block, trial.cell) for trial in trials if not trial.pilot or trial.trial in replaced}
    measured = {(each.block, LimitOf(limit.sink, limit.way)) for limit in limits for each in limit.in_blocks}
    begun = {trial.block for trial in trials} | {block for block, _ in measured}
    beside = limits_in_blocks(plan, limits)
    found = []
    for number, block in enumerate(blocks(cells, plan.most_blocks, plan.seed or 0), start=1):
        # Each limit at a place that is drawn; the cells keep their order.
        draw = random.Random(f"{plan.seed or 0} {number}")
        every: list[Cell | LimitOf] = list(block)
        for limit in beside:
            every.insert(draw.randint(0, len(every)), limit)
        steps = [
            step
            for step in every
            if ((number, step.key) not in taken if isinstance(step, Cell) else (number, step) not in measured)
        ]
        if steps:
            found.append(BlockLeft(number, steps, number in begun))
    return found


def is_over(plan: Plan, cells: Sequence[Cell], trials: Iterable[TrialRecord], block: BlockLeft) -> bool:
    """Whether to skip that block, since the figures are precise enough."""
    rates: dict[str, list[float]] = {cell.key: [] for cell in cells}
    for trial in trials:
        usable = not trial.pilot and not trial.invalid and trial.warm is not False
        if usable and trial.records_per_second is not None:
            rates[trial.cell].append(trial.records_per_second)
    return not block.begun and is_enough(plan, block.number - 1, rates)


def cells_left(
    plan: Plan, cells: Sequence[Cell], trials: Sequence[TrialRecord], limits: Sequence[Limit] = ()
) -> list[Cell]:
    """Returns the cells with trials or a limit left, in order. Raises ValueError; see `searches_of`."""
    if isinstance(plan, CapacityPlan):
        searches = searches_of(plan, cells, trials, limits)
        ended = {key for key, search in searches.items() if search.next() is None}
        shares = {cell.key for cell, _, _ in shares_left(plan, cells, trials, searches)}
        # A cell's key without a share is that of its place and readers.
        return [cell for cell in cells if cell.beside not in ended or cell.key in shares]
    left = blocks_left(plan, cells, trials, limits)
    if not left or is_over(plan, cells, trials, left[0]):
        return []
    keys = {cell.key for block in left for cell in block.cells}
    limited = {limit for block in left for limit in block.limits}
    return [cell for cell in cells if cell.key in keys or any(limit.needs(cell) for limit in limited)]


def shares_left(
    plan: CapacityPlan, cells: Sequence[Cell], trials: Iterable[TrialRecord], searches: Mapping[str, "CapacitySearch"]
) -> list[tuple[Cell, int, float]]:
    """The trials at shares of the capacities found so far, in order: the cell, the block, and records per second."""
    taken = {(trial.cell, trial.block) for trial in trials}
    found = {key: search.capacity for key, search in searches.items() if search.capacity is not None}
    shares = {
        cell.key: cell.of_capacity * found[cell.beside] for cell in cells if cell.of_capacity and cell.beside in found
    }
    return [
        (cell, number, shares[cell.key])
        for number, block in enumerate(blocks(cells, plan.trials, plan.seed or 0), start=1)
        for cell in block
        if cell.key in shares and (cell.key, number) not in taken
    ]


def new_search(plan: CapacityPlan, start: float, limits: Iterable[Limit]) -> "CapacitySearch":
    """Returns a search that starts at `start` records per second, or at the generator's maximum.

    Both are rounded as in a trial's record, so that a search can be resumed from its trials."""
    most = GENERATOR_SHARE * (best(limits, GENERATOR) or math.inf)
    first, last = (max(round(rate, 1), LEAST_OFFER) for rate in (start, most))
    return CapacitySearch(first, last, plan.capacity.precision_percent / 100, plan.trials)


def block_of(search: "CapacitySearch") -> int:
    """Returns the number of the trial for the search's next offer: confirmations count from 1, others are 0."""
    offer = search.next()
    if offer is None or not offer.confirms:
        return 0
    rate = round(offer.records_per_second, 1)
    return 1 + sum(step.confirms and step.offered == rate for step in search.path)


def feed(search: "CapacitySearch", trial: TrialRecord) -> None:
    """Passes a trial's outcome to its search. A trial that is invalid only for its time counts if its lag grew."""
    overloaded = trial.lag is not None and trial.lag.verdict == GROWING
    late = all(reason.code == ReasonCode.TIMED_OUT for reason in trial.reasons)
    if trial.lag is None or (trial.reasons and not (overloaded and late)):
        search.take(INVALID, problem="; ".join(trial.invalid))
    else:
        search.take(trial.lag.verdict, trial.lag.growth_per_second)


def searches_of(
    plan: Plan, cells: Iterable[Cell], trials: Iterable[TrialRecord], limits: Iterable[Limit]
) -> "dict[str, CapacitySearch]":
    """Returns the search of each cell that has trials of one, by key. Raises ValueError if a trial does not fit it."""
    if not isinstance(plan, CapacityPlan):
        return {}
    by_cell: dict[str, list[TrialRecord]] = {cell.key: [] for cell in cells}
    for trial in (trial for trial in trials if trial.of_capacity is None):
        by_cell.setdefault(trial.cell, []).append(trial)
    limits = list(limits)
    return {key: _replayed(plan, taken, limits) for key, taken in by_cell.items() if taken}


def _replayed(plan: CapacityPlan, trials: Sequence[TrialRecord], limits: Sequence[Limit]) -> "CapacitySearch":
    search = new_search(plan, trials[0].offered_records_per_second or LEAST_OFFER, limits)
    for trial in trials:
        offer = search.next()
        wanted = None if offer is None else (round(offer.records_per_second, 1), not offer.confirms)
        if wanted != (trial.offered_records_per_second, trial.pilot):
            raise ValueError(f"trial {trial.trial} of {trial.cell} is not what the search offers after those before it")
        feed(search, trial)
    return search


def is_enough(plan: Plan, blocks_done: int, rates: Mapping[str, Sequence[float]]) -> bool:
    """Whether no further block is needed.

    True after the most blocks, or when `trials` blocks are done and every cell's interval, which needs 5 valid rates,
    is at most `until.interval_percent` of its median."""
    if blocks_done >= plan.most_blocks:
        return True
    until = plan.until if isinstance(plan, BlocksPlan) else None
    if until is None or blocks_done < plan.trials:
        return False
    intervals = [(interval_of_median(values), statistics.median(values or [0.0])) for values in rates.values()]
    widths = [None if found is None else relative_width(found, median) for found, median in intervals]
    return all(width is not None and 100 * width <= until.interval_percent for width in widths)


INVALID = "invalid"
BRACKET_FACTOR = 1.4
# Down to a sixtieth of the first offer: a slower pipeline does not run.
MOST_BRACKET_STEPS = 12
MOST_CANDIDATES = 4
# An invalid trial is repeated once.
MOST_INVALID = 2
LEAST_RATE = 1.0


@dataclass(frozen=True)
class Offer:
    """The next rate to offer, and whether its trial confirms a candidate."""

    records_per_second: float
    confirms: bool = False


class CapacitySearch:
    """One search. Call `next` and `take` in turn until `next` returns None."""

    def __init__(self, start: float, most: float, precision: float, confirmations: int) -> None:
        """Searches from `start` up to `most`, the generator's maximum, in records per second.

        Bisection ends at the relative distance `precision`; `confirmations` trials must sustain the result."""
        self._most = most
        self._precision = precision
        self._confirmations = confirmations
        self._rate = min(start, most)
        self._low: float | None = None
        self._high: float | None = None
        self._candidate: float | None = None
        self._confirmed = 0
        self._ended = False
        self.path: list[SearchStep] = []
        """Every offer so far, in order, with its outcome."""
        self.problem: str | None = None
        """Why the search ended without a capacity."""

    @property
    def capacity(self) -> float | None:
        """The confirmed rate in records per second; None if there is none yet."""
        return self._candidate if self._ended and self.problem is None else None

    @property
    def at_most_of_generator(self) -> bool:
        """Whether the load generator, not the pipeline, limits the capacity."""
        return self.capacity is not None and self._high is None

    def next(self) -> Offer | None:
        return None if self._ended else Offer(self._rate, confirms=self._candidate is not None)

    def take(self, outcome: str, growth: float | None = None, problem: str | None = None) -> None:
        """Takes the verdict on the last offer's lag, or `INVALID` with the reason as `problem`."""
        confirms = self._candidate is not None
        rate = round(self._rate, 1)
        step = SearchStep(offered=rate, outcome=outcome, growth_per_second=growth, confirms=confirms, problem=problem)
        self.path.append(step)
        if outcome == INVALID:
            if [each.outcome for each in self.path[-MOST_INVALID:]] == [INVALID] * MOST_INVALID:
                self._give_up(f"{MOST_INVALID} trials at {self._rate:,.0f} records/s were invalid: {problem}")
            return
        # UNCLEAR counts as not sustained: the lag may grow without bound.
        sustained = outcome == BOUNDED
        if confirms:
            self._confirm(sustained)
        else:
            self._narrow(sustained)

    def _narrow(self, sustained: bool) -> None:
        if sustained:
            self._low = self._rate
        else:
            self._high = self._rate
        is_close = self._low and self._high and self._high <= self._low * (1 + self._precision)
        if self._low is not None and (self._rate >= self._most or is_close):
            self._try(self._low)
        elif self._low is not None and self._high is not None:
            self._rate = math.sqrt(self._low * self._high)
        else:
            bracketed = sum(step.outcome != INVALID for step in self.path)
            self._rate = min(self._rate * BRACKET_FACTOR if sustained else self._rate / BRACKET_FACTOR, self._most)
            if bracketed > MOST_BRACKET_STEPS or self._rate < LEAST_RATE:
                self._give_up(f"not even {self.path[-1].offered:,.0f} records/s were sustained")

    def _try(self, rate: float) -> None:
        self._candidate = self._rate = rate
        self._confirmed = 0

    def _confirm(self, sustained: bool) -> None:
        if sustained:
            self._confirmed += 1
            self._ended = self._confirmed >= self._confirmations
            return
        self._high = self._rate
        failed = sum(step.confirms and step.outcome not in (BOUNDED, INVALID) for step in self.path)
        if failed >= MOST_CANDIDATES:
            those = f"{failed} candidates, the last {self._rate:,.0f} records/s"
            self._give_up(f"no rate could be confirmed: {those}, were sustained once and then were not")
        else:
            self._try(self._rate / (1 + self._precision))

    def _give_up(self, problem: str) -> None:
        self._ended = True
        self._candidate = None
        self.problem = problem
