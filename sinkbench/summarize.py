"""From the trials of a run to one summary a cell, with a verdict."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from sinkbench.causes import shared_cause
from sinkbench.cells import Cell
from sinkbench.certainty import interval_of_median, ratio_by_block
from sinkbench.lag import BOUNDED, GROWING, UNCLEAR, lag_in_words
from sinkbench.latency import merged
from sinkbench.results import Audit, CellSummary, Connections, Lag, RatePerSecond, Rescale, Scaling, TrialRecord
from sinkbench.scalability import scaling_of
from sinkbench.search import CapacitySearch
from sinkbench.stats import median_low_high

__all__ = ["scalings", "summarize", "valid_by_block", "verdict"]

_NO_RATE = "no rate could be measured"


def summarize(
    cells: Sequence[Cell], trials: Iterable[TrialRecord], searches: Mapping[str, CapacitySearch] | None = None
) -> list[CellSummary]:
    """One summary for each of the plan's cells, in their order; pilots are left out.

    Rates, records per write and CPU seconds are medians over the valid trials. Counts of what went wrong (lost,
    duplicated, failed tasks) and peaks of connections are taken over all trials, so that an invalid one hides none.
    A cell without a valid trial is invalid. Every cell but the slowest has its ratio to that one, from the blocks in
    which both are valid. ValueError if a trial is of none of the cells.

    Of a constant load there is no ratio, and no interval: what is stored of it follows from what was offered. Of a
    capacity that was searched, only the trials count that confirmed it; `searches` has the search of each cell's key.
    """
    taken = _by_cell(cells, trials)
    searches = searches or {}
    summaries = [_summary(cell, taken[cell.key], searches.get(cell.key)) for cell in cells]
    return _with_colds(_with_ratios(summaries, taken), cells, taken)


def scalings(cells: Sequence[Cell], trials: Iterable[TrialRecord]) -> list[Scaling]:
    """How each label that was measured at several numbers of tasks scales, in the plan's order."""
    taken = _by_cell(cells, trials)
    by_label: dict[str, list[Cell]] = {}
    for cell in (cell for cell in cells if cell.before is None):
        by_label.setdefault(cell.label, []).append(cell)
    return [
        scaling_of(label, each[0].workers, {cell.tasks: valid_by_block(taken[cell.key]) for cell in each})
        for label, each in by_label.items()
        if len({cell.tasks for cell in each}) > 1 and each[0].mode == "drain"
    ]


def verdict(
    *,
    tasks: int,
    failed_tasks: int,
    failure: str | None,
    audit: Audit | None,
    not_audited: int,
    invalid: Sequence[str],
    lag: Lag | None = None,
    twice_is_fine: bool = False,
) -> str:
    """A cell in a few words: "ok", or all that is wrong with it, the cause before its consequences.

    With `twice_is_fine` records that were stored more than once are no fault but a figure, as of a change of tasks.
    `not_audited` is the number of valid trials that were not audited, `lag` the one that grew most, if there was one.
    """
    wrong = []
    if failed_tasks:
        wrong.append(f"{failed_tasks} of {tasks} tasks FAILED" + (f": {failure}" if failure else ""))
    if audit is not None:
        duplicates = 0 if twice_is_fine else audit.duplicates
        counts = [("LOST", audit.lost), ("DUPLICATED", duplicates), ("FOREIGN", audit.foreign)]
        wrong += [f"{word} {count:,}" for word, count in counts if count]
    if not_audited:
        wrong.append(f"{not_audited} {'trial' if not_audited == 1 else 'trials'} NOT AUDITED")
    if lag is not None and lag.verdict != BOUNDED and not invalid:
        wrong.append(f"{'NOT SUSTAINED' if lag.verdict == GROWING else 'UNCLEAR'}: {lag_in_words(lag)}")
    # Failed tasks are why such a trial is invalid; to say so again, in other words, would only blur the cause.
    if invalid and not failed_tasks:
        wrong.append(f"invalid: {invalid[0]}")
    return "; ".join(wrong) or "ok"


def _by_cell(cells: Sequence[Cell], trials: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    taken: dict[str, list[TrialRecord]] = {cell.key: [] for cell in cells}
    for trial in trials:
        if trial.pilot:
            continue
        if trial.cell not in taken:
            raise ValueError(f"trial {trial.trial} is of cell {trial.cell}, which is not in the plan")
        taken[trial.cell].append(trial)
    return taken


def valid_by_block(trials: Iterable[TrialRecord]) -> dict[int, float]:
    """The valid rates of one cell in records per second, by block; pilots are left out."""
    return {trial.block: trial.records_per_second or 0.0 for trial in trials if not (trial.pilot or _reasons(trial))}


def _with_ratios(summaries: list[CellSummary], taken: dict[str, list[TrialRecord]]) -> list[CellSummary]:
    rated = [
        (each.records_per_second.median, each.cell)
        for each in summaries
        if each.records_per_second is not None and each.rescale is None
    ]
    if not rated or summaries[0].mode != "drain":
        return summaries
    slowest = min(rated, key=lambda each: each[0])[1]
    below = valid_by_block(taken[slowest])
    return [
        each
        if each.cell == slowest or each.rescale is not None
        else each.model_copy(update={"ratio": ratio_by_block(slowest, valid_by_block(taken[each.cell]), below)})
        for each in summaries
    ]


def _with_colds(
    summaries: list[CellSummary], cells: Sequence[Cell], taken: dict[str, list[TrialRecord]]
) -> list[CellSummary]:
    """Each rescaled cell with its ratio to the cold start at as many tasks."""
    colds = {cell.place: cell.key for cell in cells if cell.before is None}
    found = []
    for each, cell in zip(summaries, cells, strict=True):
        if each.rescale is not None and cell.place in colds:
            cold = colds[cell.place]
            ratio = ratio_by_block(cold, valid_by_block(taken[cell.key]), valid_by_block(taken[cold]))
            each = each.model_copy(update={"rescale": each.rescale.model_copy(update={"to_cold": ratio})})
        found.append(each)
    return found


def _rescale(cell: Cell, trials: Iterable[TrialRecord]) -> Rescale | None:
    """The medians of what trials say of their change of tasks; None of a cell whose tasks stay."""
    if cell.tasks_before is None:
        return None
    done = [trial.rescale for trial in trials if trial.rescale is not None]
    return Rescale(
        tasks_before=cell.tasks_before,
        rebalance_seconds=_median(each.rebalance_seconds for each in done),
        standstill_seconds=_median(each.standstill_seconds for each in done),
        before_records_per_second=_median(each.before_records_per_second for each in done),
    )


def _summary(cell: Cell, trials: Sequence[TrialRecord], search: CapacitySearch | None) -> CellSummary:
    capacity = None if search is None else search.capacity
    if search is not None:
        confirming = None if capacity is None else round(capacity, 1)
        trials = [trial for trial in trials if trial.offered_records_per_second == confirming]
    valid = [trial for trial in trials if not _reasons(trial)]
    rates = [trial.records_per_second for trial in valid if trial.records_per_second is not None]
    span = median_low_high(rates)
    invalid: list[str] = []
    notes: list[str] = []
    if not trials:
        unended = "no trial was taken" if search is None or not search.path else "its search has not ended"
        invalid = [unended if search is None or search.problem is None else search.problem]
    elif not valid:
        invalid = list(dict.fromkeys(reason for trial in trials for reason in _reasons(trial)))
    else:
        notes = [*_notes(trials), *_of_search(search), *dict.fromkeys(note for trial in valid for note in trial.notes)]
    failed_tasks = max((trial.failed_tasks for trial in trials), default=0)
    failure = next((trial.failure for trial in trials if trial.failure), None)
    audit = _sum(trial.audit for trial in trials)
    lag = _worst(trial.lag for trial in valid)
    words = verdict(
        tasks=cell.tasks,
        failed_tasks=failed_tasks,
        failure=failure,
        audit=audit,
        not_audited=sum(trial.audit is None for trial in valid),
        invalid=invalid,
        lag=lag,
        twice_is_fine=cell.before is not None,
    )
    return CellSummary(
        **cell.identity(),
        trials=len(trials),
        records_per_second=None
        if span is None
        else RatePerSecond(
            median=span[0] if capacity is None else round(capacity, 1),
            low=span[1],
            high=span[2],
            values=rates,
            interval=interval_of_median(rates) if cell.mode == "drain" else None,
        ),
        offered_records_per_second=cell.offered if capacity is None else round(capacity, 1),
        lag=lag,
        search=[] if search is None else search.path,
        records_per_write=_median(trial.records_per_write for trial in valid),
        placement=next((trial.placement for trial in [*reversed(valid), *reversed(trials)] if trial.placement), {}),
        failed_tasks=failed_tasks,
        failure=failure,
        connections=Connections(
            clients_peak=_most(trial.connections.clients_peak for trial in trials),
            server_peak=_most(trial.connections.server_peak for trial in trials),
            server_limit=_most(trial.connections.server_limit for trial in trials),
        ),
        audit=audit,
        rescale=_rescale(cell, valid),
        latency_ms=merged(trial.latency_ms for trial in valid),
        searchable_ms=merged(trial.searchable_ms for trial in valid),
        cpu_seconds_per_million=_cpu(valid),
        limit_records_per_second=_median(trial.limit_records_per_second for trial in valid),
        efficiency=_median(trial.efficiency for trial in valid),
        bottleneck=shared_cause(trial.bottleneck for trial in valid or trials),
        invalid=invalid,
        notes=notes,
        passed=words == "ok",
        verdict=words,
    )


def _reasons(trial: TrialRecord) -> list[str]:
    """Why a trial's numbers must not be used."""
    return trial.invalid or ([_NO_RATE] if trial.records_per_second is None else [])


def _notes(trials: Sequence[TrialRecord]) -> list[str]:
    notes = []
    left_out = [reasons for trial in trials if (reasons := _reasons(trial))]
    if left_out:
        why = "; ".join(dict.fromkeys(reason for reasons in left_out for reason in reasons))
        notes.append(f"{len(left_out)} of {len(trials)} trials invalid: {why}")
    valid = [trial for trial in trials if not _reasons(trial)]
    unsteady = sum(trial.steady is False for trial in valid)
    if unsteady:
        notes.append(f"{unsteady} of {len(valid)} trials never became steady")
    return notes


def _of_search(search: CapacitySearch | None) -> list[str]:
    if search is None or not search.at_most_of_generator:
        return []
    return ["the generator can offer no more with certainty: the pipeline's own capacity may be higher"]


def _worst(lags: Iterable[Lag | None]) -> Lag | None:
    """The lag of the worst verdict, and of these the one that grew most; None if there is none."""
    ranks = {GROWING: 2, UNCLEAR: 1, BOUNDED: 0}
    known = [lag for lag in lags if lag is not None]
    return max(known, key=lambda lag: (ranks[lag.verdict], lag.growth_per_second or 0.0), default=None)


def _sum(audits: Iterable[Audit | None]) -> Audit | None:
    done = [audit for audit in audits if audit is not None]
    if not done:
        return None
    return Audit(
        produced=sum(audit.produced for audit in done),
        stored=sum(audit.stored for audit in done),
        lost=sum(audit.lost for audit in done),
        duplicates=sum(audit.duplicates for audit in done),
        foreign=sum(audit.foreign for audit in done),
    )


def _cpu(trials: Sequence[TrialRecord]) -> dict[str, float | None]:
    services = dict.fromkeys(service for trial in trials for service in trial.cpu_seconds_per_million)
    return {name: _median(trial.cpu_seconds_per_million.get(name) for trial in trials) for name in services}


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
