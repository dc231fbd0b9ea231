"""Summarizes a run from its plan and trials, for the race and for readers of an unfinished run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from sinkbench.metrics.cost import with_prices
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.plan.schedule import searches_of
from sinkbench.results import Limit, PlanRef, RunSummary, TrialRecord
from sinkbench.summary.cells import scalings, summarize


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
    """The summary of a run with these trials, pilots included, in the order taken; `complete` means that no trial is
    left. ValueError if a trial is of none of the cells, or does not follow from those before it."""
    # With `until` or a deadline their number is known only at the end.
    taken = max((trial.block for trial in trials), default=0) if complete else plan.trials
    prices = None if plan.prices is None else plan.prices.as_kept()
    summary = RunSummary(
        run=run,
        complete=complete,
        plan=PlanRef(
            name=plan.name,
            sha256=plan.sha256,
            seed=plan.seed,
            trials=taken,
            cells={cell.key: cell.sink for cell in cells if cell.before is None and cell.mode in ("drain", "capacity")},
        ),
        environment=dict(environment),
        cells=summarize(cells, trials, searches_of(plan, cells, trials, limits), limits),
        limits=list(limits),
        scaling=scalings(cells, trials),
        resumed=list(resumed),
        thresholds=plan.bounds,
    )
    return with_prices(summary, prices)
