"""From the trials of a run to one summary a cell, with a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from sinkbench.analysis.audit import few_ranges
from sinkbench.analysis.intervals import interval_of_median, ratio_by_block, spread_of
from sinkbench.analysis.lag import BOUNDED, GROWING, UNCLEAR, lag_in_words
from sinkbench.analysis.latency import merged
from sinkbench.analysis.rates import median_known, median_low_high, most, total_known, usable_median
from sinkbench.analysis.readahead import is_far_ahead
from sinkbench.analysis.scalability import scaling_of
from sinkbench.bottleneck.verdict import shared_cause
from sinkbench.errors import INTERRUPTIONS, ReasonCode
from sinkbench.plan.capacity import CapacitySearch
from sinkbench.plan.cells import Cell
from sinkbench.results import (
    Audit,
    Bloat,
    CellSummary,
    Connections,
    JvmCpu,
    Lag,
    Memory,
    Pool,
    RatePerSecond,
    Reads,
    Reason,
    Rescale,
    Scaling,
    Spread,
    TrialRecord,
)
from sinkbench.summary.durability import durability_notes, durability_over
from sinkbench.summary.jobs import over_trials
from sinkbench.summary.recoveries import recovery_over
from sinkbench.summary.standing import at_least, is_shared, rated, total_cpu_seconds

__all__ = ["cpu_by_block", "quotable", "scalings", "summarize", "valid_by_block"]

# So many trials say in notes which records they lost or doubled.
MOST_NAMED = 3

_Figures = TypeVar("_Figures", JvmCpu, Memory)


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
    trials, searches = list(trials), searches or {}
    taken = _by_cell(cells, trials)
    summaries = [_summary(cell, taken[cell.key], trials, searches.get(cell.key)) for cell in cells]
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


def _faults(cell: CellSummary, duplicates: int, not_audited: int) -> list[Reason]:
    """All that is wrong with a cell, the cause before its consequences; none if it passed.

    Records that were stored more than once are no fault but a figure where the number of tasks was changed, and where
    a service died or was broken: a task that begins again from its last commit delivers at least once, not exactly
    once.
    `duplicates` are those of the other trials, `not_audited` the number of valid trials that were not audited.
    """
    wrong = []
    if cell.recovery is not None and not cell.recovery.recovered:
        text = "NOT RECOVERED: in the end not all records were read, or tasks were FAILED"
        wrong.append(Reason(code=ReasonCode.NOT_RECOVERED, text=text))
    elif cell.failed_tasks:
        text = f"{cell.failed_tasks} of {cell.tasks} tasks FAILED" + (f": {cell.failure}" if cell.failure else "")
        wrong.append(Reason(code=ReasonCode.TASKS_FAILED, text=text))
    if cell.audit is not None:
        counts = [
            (ReasonCode.LOST, "LOST", cell.audit.lost),
            (ReasonCode.DEAD_LETTERS, "DEAD LETTERS", 0 if cell.recovery else cell.audit.dead_letters),
            (
                ReasonCode.DUPLICATED,
                "DUPLICATED",
                0 if cell.rescale or (cell.recovery and cell.recovery.target) else duplicates,
            ),
            (ReasonCode.STALE, "STALE", cell.audit.stale),
            (ReasonCode.MISSING, "MISSING", cell.audit.missing),
            (ReasonCode.NOT_DELETED, "NOT DELETED", cell.audit.not_deleted),
            (ReasonCode.FOREIGN_RECORDS, "FOREIGN", cell.audit.foreign - _poison_stored(cell)),
        ]
        for code, word, count in counts:
            if count:
                wrong.append(Reason(code=code, text=f"{word} {count:,}", figures={"records": count}))
        if altered := cell.audit.altered:
            text = f"ALTERED {altered:,} of {cell.audit.compared:,} compared"
            wrong.append(Reason(code=ReasonCode.ALTERED, text=text, figures={"records": altered}))
    if not_audited:
        text = f"{not_audited} {'trial' if not_audited == 1 else 'trials'} NOT AUDITED"
        wrong.append(Reason(code=ReasonCode.NOT_AUDITED, text=text))
    if cell.lag is not None and cell.lag.verdict != BOUNDED and not cell.reasons:
        grows = cell.lag.verdict == GROWING
        code, word = (ReasonCode.NOT_SUSTAINED, "NOT SUSTAINED") if grows else (ReasonCode.UNCLEAR, "UNCLEAR")
        wrong.append(Reason(code=code, text=f"{word}: {lag_in_words(cell.lag)}"))
    # Failed tasks are why such a trial is invalid; to say so again, in other words, would only blur the cause.
    if cell.reasons and not cell.failed_tasks:
        wrong.append(Reason(code=ReasonCode.INVALID, text=f"invalid: {cell.reasons[0].text}"))
    return wrong


def _poison_stored(cell: CellSummary) -> int:
    """Rows that are none of the load's since they were put into the topic as bad records, over all trials."""
    found = None if cell.recovery is None else cell.recovery.poison_stored
    return 0 if found is None or cell.audit is None else cell.audit.foreign


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
    """The rates of the `quotable` trials of one cell in records per second, by block."""
    return {trial.block: trial.records_per_second or 0.0 for trial in quotable(trials)}


def quotable(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The trials of one cell whose figures may be used; none if the cell was not warm and steady.

    Pilots, invalid trials, and single ones that were not warm, are left out.
    """
    valid = [trial for trial in trials if not (trial.pilot or _reasons(trial))]
    return rated(valid) if at_least(valid) is None else []


def _with_ratios(summaries: list[CellSummary], taken: dict[str, list[TrialRecord]]) -> list[CellSummary]:
    rated = [
        (median, each.cell)
        for each in summaries
        if (median := usable_median(each)) is not None and each.rescale is None
    ]
    if not rated or summaries[0].mode != "drain":
        return summaries
    slowest = min(rated, key=lambda each: each[0])[1]
    below = valid_by_block(taken[slowest])
    return [
        each
        if each.cell == slowest or each.rescale is not None or usable_median(each) is None
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
        rebalance_seconds=median_known(each.rebalance_seconds for each in done),
        standstill_seconds=median_known(each.standstill_seconds for each in done),
        before_records_per_second=median_known(each.before_records_per_second for each in done),
    )


def _summary(
    cell: Cell, trials: Sequence[TrialRecord], of_run: Sequence[TrialRecord], search: CapacitySearch | None
) -> CellSummary:
    capacity = None if search is None or search.capacity is None else round(search.capacity, 1)
    if search is not None:
        trials = [trial for trial in trials if trial.offered_records_per_second == capacity]
    audited = [*trials, *_more_losses(cell, trials, of_run)]
    valid = [trial for trial in trials if not _reasons(trial)]
    early = at_least(valid)
    used = valid if early is not None else rated(valid)
    rates = [trial.records_per_second for trial in used if trial.records_per_second is not None]
    span = median_low_high(rates)
    reasons: list[Reason] = []
    notes: list[str] = []
    if not trials:
        reasons = [_no_trial(search)]
    elif not valid:
        reasons = _distinct(reason for trial in trials for reason in _reasons(trial))
    else:
        notes = [*_notes(trials), *_of_search(search), *_of_trials(valid), *durability_notes(valid)]
    notes += [*_of_deadlocks(trials), *_of_audits(trials, audited), *_of_connections(trials)]
    found = CellSummary(
        **cell.identity(),
        connector=next((trial.connector for trial in trials if trial.connector), None),
        trials=len(trials),
        records_per_second=None
        if span is None or early is not None
        else RatePerSecond(
            median=span[0] if capacity is None else capacity,
            low=span[1],
            high=span[2],
            values=rates,
            blocks=[trial.block for trial in used if trial.records_per_second is not None],
            interval=interval_of_median(rates) if cell.mode == "drain" else None,
        ),
        offered_records_per_second=cell.offered if capacity is None else capacity,
        lag=_worst(trial.lag for trial in valid),
        search=[] if search is None else search.path,
        records_per_write=median_known(trial.records_per_write for trial in valid),
        placement=next((trial.placement for trial in [*reversed(valid), *reversed(trials)] if trial.placement), {}),
        failed_tasks=max((trial.failed_tasks for trial in trials), default=0),
        failure=next((trial.failure for trial in trials if trial.failure), None),
        connections=_connections(trials),
        audit=_sum(trial.audit for trial in audited),
        not_audited=sum(trial.audit is None for trial in trials),
        rescale=_rescale(cell, valid),
        recovery=recovery_over([trial.recovery for trial in valid if trial.recovery is not None]),
        latency_ms=merged(trial.latency_ms for trial in valid),
        searchable_ms=merged(trial.searchable_ms for trial in valid),
        cpu_seconds_per_million=_cpu(used),
        jvm_cpu_seconds_per_million=_by_service(JvmCpu, [trial.jvm_cpu_seconds_per_million for trial in used]),
        compiling_share=median_known(trial.compiling_share for trial in used),
        total_cpu_seconds_per_million=_spread({trial.block: total_cpu_seconds(trial) for trial in used}),
        peak_memory=_by_service(Memory, [trial.peak_memory for trial in used]),
        total_peak_memory_bytes=_spread({trial.block: trial.total_peak_memory_bytes for trial in used}),
        disk_bytes_per_record=_spread({trial.block: trial.disk_bytes_per_record for trial in used}),
        pool=_pool([trial.pool for trial in used if trial.pool is not None]),
        bloat=_bloat(used, trials),
        fetched_bytes_per_record=median_known(trial.fetched_bytes_per_record for trial in used),
        foreign_cores=most(trial.foreign_cores for trial in used),
        stolen_cores=most(trial.stolen_cores for trial in used),
        monitoring_overhead_cores=most(trial.monitoring_overhead_cores for trial in used),
        limit_records_per_second=median_known(trial.limit_records_per_second for trial in valid),
        efficiency=median_known(trial.efficiency for trial in valid),
        bottleneck=shared_cause(trial.bottleneck for trial in valid or trials),
        reads=_reads([trial.reads for trial in valid if trial.reads is not None]),
        queries=over_trials(valid),
        durability=durability_over(valid or trials),
        reasons=reasons,
        at_least=early,
        notes=notes,
        passed=True,
        verdict="ok",
    )
    undisturbed = _sum(trial.audit for trial in audited if not _was_interrupted(trial))
    duplicates = 0 if undisturbed is None else undisturbed.duplicates
    wrong = _faults(found, duplicates, not_audited=sum(trial.audit is None for trial in valid))
    verdict = "; ".join(fault.text for fault in wrong) or ("ok" if early is None else early.text)
    return found.model_copy(update={"faults": wrong, "passed": not wrong, "verdict": verdict})


def cpu_by_block(trials: Iterable[TrialRecord]) -> dict[int, float]:
    """The CPU seconds of the `quotable` trials of one cell for a million records, by block."""
    found = ((trial.block, total_cpu_seconds(trial)) for trial in quotable(trials))
    return {block: seconds for block, seconds in found if seconds is not None}


def _reasons(trial: TrialRecord) -> list[Reason]:
    """Why a trial's numbers must not be used."""
    # Where something was broken the rates are those of its `recovery`.
    if trial.reasons or trial.records_per_second is not None or trial.recovery is not None:
        return trial.reasons
    return [Reason(code=ReasonCode.NO_RATE, text="no rate could be measured")]


def _no_trial(search: CapacitySearch | None) -> Reason:
    """Why a cell has no trial that counts."""
    if search is None or not search.path:
        return Reason(code=ReasonCode.NO_TRIAL, text="no trial was taken")
    return Reason(code=ReasonCode.SEARCH_FAILED, text=search.problem or "its search has not ended")


def _distinct(reasons: Iterable[Reason]) -> list[Reason]:
    """Each text once, in order."""
    return list({reason.text: reason for reason in reasons}.values())


def _notes(trials: Sequence[TrialRecord]) -> list[str]:
    notes = []
    left_out = [reasons for trial in trials if (reasons := _reasons(trial))]
    if left_out:
        why = "; ".join(reason.text for reason in _distinct(each for reasons in left_out for each in reasons))
        notes.append(f"{len(left_out)} of {len(trials)} trials invalid: {why}")
    valid = [trial for trial in trials if not _reasons(trial)]
    cold = sum(trial.warm is False for trial in valid)
    if cold and at_least(valid) is None:
        notes.append(f"{cold} of {len(valid)} trials not warm, and left out")
    notes += _of_others(valid)
    unsteady = sum(trial.steady is False for trial in rated(valid))
    if unsteady:
        notes.append(f"{unsteady} of {len(rated(valid))} trials never became steady")
    far = [trial for trial in valid if is_far_ahead(trial.read_ahead_records, trial.records)]
    if far:
        furthest = max(far, key=lambda trial: trial.read_ahead_records or 0)
        notes.append(
            f"its tasks do not wait for the sink: up to {furthest.read_ahead_records:,} of {furthest.records:,} records"
            " were read and not stored, so a longer load may have another rate"
        )
    return notes


def _of_trials(valid: Sequence[TrialRecord]) -> list[str]:
    """What the trials note, each text once, and of which block it is if not of all."""
    blocks: dict[str, list[int]] = {}
    for trial in valid:
        for note in trial.notes:
            blocks.setdefault(note, []).append(trial.block)
    return [
        note if len(found) == len(valid) else f"{note} (block {', '.join(map(str, found))})"
        for note, found in blocks.items()
    ]


def _of_others(valid: Sequence[TrialRecord]) -> list[str]:
    """Who else was there in which of the trials; what `at_least` says of most of them is not said twice."""
    shared = [trial for trial in valid if trial.others]
    early = at_least(valid)
    if not shared or (early is not None and early.code == ReasonCode.SHARED):
        return []
    who = "; ".join(dict.fromkeys(each for trial in shared for each in trial.others))
    left_out = ", and left out" if is_shared(shared[0]) else ""
    return [f"{len(shared)} of {len(valid)} trials not alone{left_out}: {who}"]


def _connections(trials: Sequence[TrialRecord]) -> Connections:
    """The most of all trials; a peak is not known if others' connections hid it in one of them."""
    found = [trial.connections for trial in trials]
    others = max((each.others for each in found), default=0)
    peaks = {
        name: None if others else most(getattr(each, name) for each in found)
        for name in ("clients_peak", "server_peak")
    }
    return Connections(**peaks, server_limit=most(each.server_limit for each in found), others=others)


def _of_connections(trials: Sequence[TrialRecord]) -> list[str]:
    """Why the peak of the connections is not known, if others' hid it."""
    if not (others := _connections(trials).others):
        return []
    opened = "1 connection was" if others == 1 else f"{others} connections were"
    return [f"peak connections not known: {opened} opened by others while a connector ran; race without them"]


def _was_interrupted(trial: TrialRecord) -> bool:
    """Whether a service died in a trial, or could not be asked, so that its tasks may have begun again."""
    return any(reason.code in INTERRUPTIONS for reason in trial.reasons)


def _more_losses(cell: Cell, trials: Sequence[TrialRecord], of_run: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Those of a run's other trials of a cell whose audit found something: taken again, or the steps of a search."""
    return [
        trial
        for trial in of_run
        if trial.cell == cell.key and trial.audit is not None and not trial.audit.clean and trial not in trials
    ]


def _of_audits(trials: Sequence[TrialRecord], audited: Sequence[TrialRecord]) -> list[str]:
    """Which trials were not audited, and why, and which records the others, and those beside, have lost or doubled."""
    notes = []
    if unaudited := [trial for trial in trials if trial.audit is None]:
        why = "; ".join(dict.fromkeys(trial.not_audited for trial in unaudited if trial.not_audited))
        count = f"not audited in {len(unaudited)} of {len(trials)} trials, so what is lost there is not known"
        notes.append(f"{count}: {why}" if why else count)
    told = [text for trial in audited if (text := _ranges(trial))]
    rest = len(told) - MOST_NAMED
    more = [f"{rest} more {'trial' if rest == 1 else 'trials'} lost or doubled records: see trials.jsonl"]
    return [*notes, *told[:MOST_NAMED], *(more if rest > 0 else [])]


def _ranges(trial: TrialRecord) -> str:
    """Which records a trial has lost or doubled, by their `seq`; empty if none."""
    if trial.audit is None:
        return ""
    kinds = [
        ("lost", trial.audit.lost, trial.lost_ranges),
        ("stored more than once", trial.audit.duplicates, trial.duplicated_ranges),
    ]
    parts = [f"{what} {few_ranges(ranges)}" for what, count, ranges in kinds if count and ranges]
    if trial.audit.duplicates and _was_interrupted(trial):
        parts.append("a task that begins again after trouble delivers at least once")
    return f"seq of trial {trial.trial} (block {trial.block}): {'; '.join(parts)}" if parts else ""


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
    counts = {count: [getattr(audit, count) for audit in done] for count in Audit.model_fields}
    sums = {count: total_known(each) for count, each in counts.items()}
    return Audit.model_validate(sums) if done else None


def _bloat(used: Sequence[TrialRecord], trials: Sequence[TrialRecord]) -> Bloat | None:
    """What changes left in the sink, over the trials that are used, and what went wrong in all; None if none tells."""
    if not any(trial.bloat for trial in trials):
        return None
    left = [trial.bloat for trial in used if trial.bloat is not None]
    wrong = [trial.bloat for trial in trials if trial.bloat is not None]
    medians = {
        name: None if (value := median_known(getattr(each, name) for each in left)) is None else round(value)
        for name in ("dead_rows", "bytes_before", "bytes_after")
    }
    sums = {name: total_known(getattr(each, name) for each in wrong) for name in ("deadlocks", "rollbacks")}
    return Bloat(**medians, **sums)


def _of_deadlocks(trials: Sequence[TrialRecord]) -> list[str]:
    """That tasks have deadlocked, in how many of all trials, and what to do; nothing if none did."""
    found = [count for trial in trials if trial.bloat is not None and (count := trial.bloat.deadlocks)]
    if not found:
        return []
    total = "1 deadlock" if sum(found) == 1 else f"{sum(found):,} deadlocks"
    return [
        f"{total} in {len(found)} of {len(trials)} trials: tasks wrote the same rows, each in an order of its own, and"
        " of each the database rolled one transaction back; have one task write each row (key the topic by what is"
        " upserted), commit fewer rows at once, or run fewer tasks"
    ]


def _pool(found: Sequence[Pool]) -> Pool | None:
    """What clients waited for in the pooler, over trials; None if none tells."""
    if not found:
        return None
    waiting = most(each.most_waiting for each in found)
    return found[-1].model_copy(
        update={
            "most_waiting": None if waiting is None else round(waiting),
            "longest_wait_ms": most(each.longest_wait_ms for each in found),
            **{
                name: median_known(getattr(each, name) for each in found)
                for name in ("wait_ms_per_query", "wait_ms_per_transaction")
            },
        }
    )


def _reads(trials: Sequence[Reads]) -> Reads | None:
    """Of all queries that were asked beside the loads; None if none were."""
    return (
        None
        if not trials
        else Reads(
            loaded_ms=merged(each.loaded_ms for each in trials),
            idle_ms=merged(each.idle_ms for each in trials),
            failed=sum(each.failed for each in trials),
            problem=next((each.problem for each in trials if each.problem), ""),
            unasked=sum(each.unasked for each in trials),
        )
    )


def _cpu(trials: Sequence[TrialRecord]) -> dict[str, float | None]:
    services = dict.fromkeys(service for trial in trials for service in trial.cpu_seconds_per_million)
    return {name: median_known(trial.cpu_seconds_per_million.get(name) for trial in trials) for name in services}


def _spread(by_block: Mapping[int, float | None]) -> Spread | None:
    """A figure over all trials; None if one of them lacks it."""
    known = {block: value for block, value in by_block.items() if value is not None}
    return spread_of(known) if len(known) == len(by_block) else None


def _by_service(figures: type[_Figures], trials: Sequence[Mapping[str, _Figures]]) -> dict[str, _Figures]:
    """The medians of what the trials tell of each service, figure by figure."""
    seen = {name: [each[name] for each in trials if name in each] for name in dict.fromkeys(chain(*trials))}
    return {
        name: figures(**{field: median_known(getattr(each, field) for each in found) for field in figures.model_fields})
        for name, found in seen.items()
    }
