"""Which trials are taken again at the end of a run, when everything is warm. Pure."""

import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from sinkbench.analysis.intervals import FEWEST_BLOCKS
from sinkbench.errors import ReasonCode
from sinkbench.metrics.taken import FEWEST_THAT_RISE, at_least, rated
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.plan.schedule import cells_left
from sinkbench.results import Limit, TrialRecord

# Of a trial that replaces a cold one.
MOST_WINDOWS, LONG_SECONDS = 3.0, 15.0


class Replacement(NamedTuple):
    """A further trial of a cell and the one that it replaces; without one it completes the pairs of its block."""

    cell: Cell
    replaced: TrialRecord | None = None


def replacements(plan: Plan, cells: Sequence[Cell], trials: Sequence[TrialRecord]) -> list[Replacement]:
    """The next block of replacements, one for each cell that is not final, or else that lacks trials; at the end none.

    The end is when nothing is to be replaced, or `drain.warm_up_budget_seconds` for each cell would be exceeded. Blocks
    of replacements have numbers of their own: their trials are paired with nothing that was measured at another time.
    Where intervals of ratios need every pair, such a block has all cells."""
    if not plan.drains:
        return []
    found: list[Replacement] = []
    needed: list[Replacement] = []
    for cell in cells:
        taken = [trial for trial in trials if trial.cell == cell.key and not trial.pilot]
        valid = [trial for trial in taken if not trial.reasons]
        early = at_least(valid)
        # Further blocks of `until` have replaced it already.
        if early is None and len(rated(valid)) >= plan.trials:
            continue
        if (old := _worst(taken, None if early is None else early.code)) is not None:
            (found if valid and early is None else needed).append(Replacement(cell, old))
    wanted, left = needed or found, plan.drain.warm_up_budget_seconds * len(cells)
    left -= sum(trial.seconds for trial in trials if trial.block > plan.most_blocks)
    if wanted and plan.trials >= FEWEST_BLOCKS:
        number = 1 + max(trial.block for trial in trials)
        rest = [Replacement(cell) for cell in cells if cell.key not in {each.cell.key for each in wanted}]
        block = random.Random(f"{plan.seed or 0} {number}").sample([*wanted, *rest], len(cells))
        return block if sum(_seconds(each.cell, trials) for each in block) <= left else []
    affordable = []
    for each in wanted:
        left -= _seconds(each.cell, trials)
        if left >= 0:
            affordable.append(each)
    return affordable


def all_cells_left(
    plan: Plan, cells: Sequence[Cell], trials: Sequence[TrialRecord], limits: Sequence[Limit] = ()
) -> list[Cell]:
    """The cells with trials or limits left, or if there are none, those with replacements left. Raises ValueError."""
    return cells_left(plan, cells, trials, limits) or [each.cell for each in replacements(plan, cells, trials)]


def why_replaced(trial: TrialRecord) -> str:
    """As `was not warm`."""
    if is_stalled(trial):
        return "stood still"
    return "was not warm" if trial.warm is False else "was still rising or not steady"


def windows_for(replaced: TrialRecord | None, window_seconds: float) -> float:
    """How many windows a trial lasts: a cold one is replaced by a longer one, of 15 s at most, if its time went into
    its drain, and not into its load and audit, which grow as well."""
    if replaced is None or replaced.warm is not False or (replaced.window_seconds or 0.0) <= replaced.seconds / 2:
        return 1.0
    return min(MOST_WINDOWS, max(1.0, LONG_SECONDS / window_seconds))


def replacing(record: TrialRecord, replaced: TrialRecord) -> TrialRecord:
    """The record of a trial that replaces another one; a standstill of that one is in its notes."""
    why = [f"another trial was replaced: {text}" for text in replaced.invalid]
    return record.model_copy(update={"replaces": replaced.trial, "notes": [*record.notes, *why]})


def is_stalled(trial: TrialRecord) -> bool:
    """Whether nothing is wrong with a trial but that it stood still for more than a tenth of its time."""
    return bool(trial.reasons) and all(each.code == ReasonCode.STALLED for each in trial.reasons)


def _worst(taken: Sequence[TrialRecord], early: ReasonCode | None) -> TrialRecord | None:
    """The trial of a cell to replace first. A trial that lost records stays, whatever else it was."""
    clean = [trial for trial in taken if trial.audit is not None and trial.audit.clean]
    stalled = [trial for trial in clean if is_stalled(trial)]
    clean = [trial for trial in clean if not trial.reasons]
    cold = [trial for trial in clean if trial.warm is False]
    # A plan of one or two trials asks for no final rate.
    if early == ReasonCode.NOT_STEADY and len(taken) >= FEWEST_THAT_RISE:
        cold += [trial for trial in clean if trial.steady is False]
    if early == ReasonCode.RISING:
        cold += clean[:1]
    return next(iter([*stalled, *cold]), None)


def _seconds(cell: Cell, trials: Sequence[TrialRecord]) -> float:
    return statistics.median(trial.seconds for trial in trials if trial.cell == cell.key)
