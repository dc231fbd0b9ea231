"""From the trials of a run to its summary, with a verdict for each cell."""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from sinkbench.analysis.scalability import scaling_of
from sinkbench.metrics import METRICS
from sinkbench.metrics.cost import with_prices
from sinkbench.metrics.cpu import total_cpu_seconds
from sinkbench.metrics.metric import fields_of
from sinkbench.metrics.taken import Taken, quotable, valid_by_block
from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.plan.schedule import CapacitySearch, searches_of
from sinkbench.results import CellSummary, Limit, PlanRef, Profile, RunSummary, Scaling, TrialRecord


def summarize(
    cells: Sequence[Cell],
    trials: Iterable[TrialRecord],
    searches: Mapping[str, CapacitySearch] | None = None,
    limits: Sequence[Limit] = (),
) -> list[CellSummary]:
    """One summary for each of the plan's cells, in order; pilots are left out.

    Rates and CPU seconds are medians over valid trials; losses, duplicates, failed tasks and peaks of connections count
    all trials, so that an invalid trial hides none. Every cell but the slowest has its ratio to that one, from shared
    valid blocks; constant loads have no ratio, since their rate follows the offered load. Of a capacity only the trials
    that confirmed it count; `searches` is by the cell's key. ValueError if a trial is of none of the cells."""
    trials, taken = list(trials), dict[str, Taken]()
    for cell in cells:
        own = [trial for trial in trials if trial.cell == cell.key]
        taken[cell.key] = Taken(cell, own, taken, (searches or {}).get(cell.key), limits)
    if strange := [trial for trial in trials if not trial.pilot and trial.cell not in taken]:
        raise ValueError(f"trial {strange[0].trial} is of cell {strange[0].cell}, which is not in the plan")
    return [_summary(each) for each in taken.values()]


def scalings(cells: Sequence[Cell], trials: Sequence[TrialRecord]) -> list[Scaling]:
    """The scaling of each label measured at several numbers of tasks, in the plan's order."""
    by_label: dict[str, list[Cell]] = {}
    for cell in (cell for cell in cells if cell.before is None):
        by_label.setdefault(cell.label, []).append(cell)

    def rates(cell: Cell) -> dict[int, float]:
        return valid_by_block(trial for trial in trials if trial.cell == cell.key)

    return [
        scaling_of(label, each[0].workers, {cell.tasks: rates(cell) for cell in each})
        for label, each in by_label.items()
        if len({cell.tasks for cell in each}) > 1 and each[0].mode == "drain"
    ]


def cpu_by_block(trials: Iterable[TrialRecord]) -> dict[int, float]:
    """CPU seconds per million records of one cell's `quotable` trials, by block."""
    found = ((trial.block, total_cpu_seconds(trial)) for trial in quotable(trials))
    return {block: seconds for block, seconds in found if seconds is not None}


def _summary(taken: Taken) -> CellSummary:
    fields = fields_of(METRICS, lambda metric: metric.of_cell(taken))
    return CellSummary.model_validate({**taken.cell.identity(), **fields})


def summary_of(
    run: str,
    plan: Plan,
    cells: Sequence[Cell],
    trials: Sequence[TrialRecord],
    *,
    complete: bool,
    environment: Mapping[str, JsonValue],
    limits: Sequence[Limit] = (),
    profiles: Sequence[Profile] = (),
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
        profiles=list(profiles),
        resumed=list(resumed),
        thresholds=plan.bounds,
    )
    return with_prices(summary, prices)
