"""Whether a run has enough trials: a pure decision over those that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sinkbench.certainty import interval_of_median, relative_width
from sinkbench.plan import Plan
from sinkbench.results import TrialRecord
from sinkbench.stats import median_low_high

__all__ = ["is_enough", "most_blocks", "valid_rates"]


def most_blocks(plan: Plan) -> int:
    """How many blocks a plan takes at most."""
    return plan.trials if plan.until is None else plan.until.trials


def is_enough(plan: Plan, blocks_done: int, rates: Mapping[str, Sequence[float]]) -> bool:
    """Whether no further block is needed.

    Args:
        plan: says how many blocks at least, and until what.
        blocks_done: whole blocks that were taken.
        rates: valid rates of every cell so far, in records per second; a cell without one has none.

    Returns:
        True after `until.trials` blocks in any case (without `until`: after `trials`); before that if at least `trials`
        were taken and every cell has an interval whose width, high - low, is at most `until.interval_percent` of its
        median. A cell of which fewer than 5 trials are valid has no interval, so it is never narrow enough.
    """
    if blocks_done >= most_blocks(plan):
        return True
    if plan.until is None or blocks_done < plan.trials:
        return False
    return all(is_narrow(values, plan.until.interval_percent) for values in rates.values())


def is_narrow(values: Sequence[float], percent: float) -> bool:
    """Whether the interval of these rates is at most so many percent of their median wide."""
    interval, span = interval_of_median(values), median_low_high(values)
    if interval is None or span is None:
        return False
    width = relative_width(interval, span[0])
    return width is not None and 100 * width <= percent


def valid_rates(cells: Iterable[str], trials: Iterable[TrialRecord]) -> dict[str, list[float]]:
    """The valid rates of each cell, by its key, in the order of its trials; pilots are left out."""
    rates: dict[str, list[float]] = {key: [] for key in cells}
    for trial in trials:
        if not trial.pilot and not trial.invalid and trial.records_per_second is not None:
            rates[trial.cell].append(trial.records_per_second)
    return rates
