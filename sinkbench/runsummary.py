"""From a run's plan and trials to its summary: the same for the race that takes them and for whoever reads what a race
that was killed has left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from sinkbench.cells import Cell
from sinkbench.limits.efficiency import with_limits
from sinkbench.plan import Plan
from sinkbench.results import Limit, PlanRef, RunSummary, TrialRecord
from sinkbench.summarize import scalings, summarize
from sinkbench.todo import searches_of

__all__ = ["summary_of"]


def summary_of(
    run: str,
    plan: Plan,
    cells: Sequence[Cell],
    trials: Sequence[TrialRecord],
    *,
    complete: bool,
    environment: Mapping[str, JsonValue],
    limits: Sequence[Limit] = (),
    resumed: Sequence[str] = (),
) -> RunSummary:
    """The summary of a run that has these trials so far.

    Args:
        run: the run's id.
        plan: as it ran, with its seed.
        cells: the plan's, on the workers that it ran on.
        trials: in the order in which they were taken, pilots included.
        complete: whether there are no more to take.
        environment: what the run was taken on.
        limits: those that were measured.
        resumed: when the run was taken up again, each time.

    Raises:
        ValueError: a trial is of none of the cells, or does not follow from those before it.
    """
    # With `until` or a deadline only the end tells how many they are.
    taken = max((trial.block for trial in trials), default=0) if complete else plan.trials
    return RunSummary(
        run=run,
        complete=complete,
        plan=PlanRef(name=plan.name, sha256=plan.sha256, seed=plan.seed, trials=taken),
        environment=dict(environment),
        cells=with_limits(summarize(cells, trials, searches_of(plan, cells, trials, limits)), limits),
        limits=list(limits),
        scaling=scalings(cells, trials),
        resumed=list(resumed),
    )
