"""Whether the numbers of a cell may be used, all checks passed, further notes, and what limits it."""

from collections.abc import Iterable, Sequence

from sinkbench.analysis.content import NOT_AS_SENT
from sinkbench.analysis.latency import BOUNDED, GROWING, lag_in_words
from sinkbench.analysis.samples import is_far_ahead
from sinkbench.analysis.words import counted
from sinkbench.bottleneck.rules import causes_of, shared_cause
from sinkbench.errors import ReasonCode
from sinkbench.metrics.audit import audit_notes, deadlock_notes
from sinkbench.metrics.connections import LOADS
from sinkbench.metrics.durability import durability_notes
from sinkbench.metrics.load import lag_over
from sinkbench.metrics.metric import Column, Export, Fields, Metric, count, find, flag, words
from sinkbench.metrics.names import in_short, word_of
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.recovery import RESCALES, recovery_over
from sinkbench.metrics.taken import Taken, is_shared, rated, reasons_of, sum_of, was_interrupted
from sinkbench.results import CellSummary, Reason, TrialRecord


def faults_of(taken: Taken) -> list[Reason]:
    """All faults of a cell, causes before consequences; empty if it passed. Duplicates are no fault after a
    re-scale, or if a service died or was broken: a restarted task delivers at least once, not exactly once."""
    recovery = recovery_over(trial.recovery for trial in taken.valid)
    reasons, failed = _reasons(taken), max((trial.failed_tasks for trial in taken.trials), default=0)
    wrong: list[Reason] = []

    def add(code: ReasonCode, text: str, **figures: float) -> None:
        wrong.append(Reason(code=code, text=text, figures=figures))

    if recovery is not None and not recovery.recovered:
        add(ReasonCode.NOT_RECOVERED, "NOT RECOVERED: in the end not all records were read, or tasks were FAILED")
    elif failed:
        failure = next((f": {trial.failure}" for trial in taken.trials if trial.failure), "")
        add(ReasonCode.TASKS_FAILED, f"{failed} of {taken.cell.tasks} tasks FAILED{failure}")
    if (audit := taken.audit) is not None:
        undisturbed = sum_of(trial for trial in taken.audited if not was_interrupted(trial))
        expected = taken.cell.before is not None or (recovery is not None and recovery.target)
        counts = {
            ReasonCode.LOST: audit.lost,
            ReasonCode.DEAD_LETTERS: 0 if recovery else audit.dead_letters,
            ReasonCode.DUPLICATED: 0 if undisturbed is None or expected else undisturbed.duplicates,
            ReasonCode.STALE: audit.stale,
            ReasonCode.MISSING: audit.missing,
            ReasonCode.NOT_DELETED: audit.not_deleted,
            # Bad records injected by a fault are not foreign records.
            ReasonCode.FOREIGN_RECORDS: 0 if find(recovery, "poison_stored") is not None else audit.foreign,
        }
        for code, records in counts.items():
            if records:
                add(code, f"{word_of(code)} {records:,}", records=records)
        if audit.altered:
            notes = (note.partition(NOT_AS_SENT)[2] for trial in taken.trials for note in trial.notes)
            how = next((f": {note}" for note in notes if note), "")
            text = f"{word_of(ReasonCode.ALTERED)} {audit.altered:,} of {audit.compared:,} compared{how}"
            add(ReasonCode.ALTERED, text, records=audit.altered)
    if unaudited := sum(trial.audit is None for trial in taken.valid):
        add(ReasonCode.NOT_AUDITED, f"{counted(unaudited, 'trial')} NOT AUDITED")
    lag = lag_over(taken.valid)
    if lag is not None and lag.verdict != BOUNDED and not reasons:
        code = ReasonCode.NOT_SUSTAINED if lag.verdict == GROWING else ReasonCode.UNCLEAR
        add(code, f"{word_of(code)}: {lag_in_words(lag)}")
    # The failed tasks are the reason that the trial is invalid; a second text would hide the cause.
    if reasons and not failed:
        add(ReasonCode.INVALID, f"invalid: {reasons[0].text}")
    return wrong


def _reasons(taken: Taken) -> list[Reason]:
    search = taken.search
    if not taken.trials and (search is None or not search.path):
        return [Reason(code=ReasonCode.NO_TRIAL, text="no trial was taken")]
    if not taken.trials and search is not None:
        return [Reason(code=ReasonCode.SEARCH_FAILED, text=search.problem or "its search has not ended")]
    return [] if taken.valid else _distinct(reason for trial in taken.trials for reason in reasons_of(trial))


def _distinct(reasons: Iterable[Reason]) -> list[Reason]:
    return list({reason.text: reason for reason in reasons}.values())


def _invalid(taken: Taken) -> Fields:
    notes = _of_trials(taken)
    if taken.search is not None and taken.search.at_most_of_generator:
        notes.append("the generator can offer no more with certainty: the pipeline's own capacity may be higher")
    notes += [*_own_notes(taken.valid), *durability_notes(taken.valid)]
    always = [*deadlock_notes(taken), *audit_notes(taken)]
    if others := max((trial.connections.others for trial in taken.trials), default=0):
        opened = "1 connection was" if others == 1 else f"{others} connections were"
        always.append(f"peak connections not known: {opened} opened by others while a connector ran; race without them")
    return {"reasons": _reasons(taken), "notes": [*(notes if taken.valid else []), *always]}


def _verdict(taken: Taken) -> Fields:
    wrong, early = faults_of(taken), taken.early
    text = "; ".join(fault.text for fault in wrong) or ("ok" if early is None else early.text)
    return {"faults": wrong, "passed": not wrong, "verdict": text}


def _of_trials(taken: Taken) -> list[str]:
    """Which trials were left out or differ from the others, and why."""
    notes, valid = [], taken.valid
    left_out = [reasons for trial in taken.trials if (reasons := reasons_of(trial))]
    if left_out:
        why = "; ".join(reason.text for reason in _distinct(each for reasons in left_out for each in reasons))
        notes.append(f"{len(left_out)} of {len(taken.trials)} trials invalid: {why}")
    cold = sum(trial.warm is False for trial in valid)
    if cold and taken.early is None:
        notes.append(f"{cold} of {len(valid)} trials not warm, and left out")
    notes += _of_others(taken)
    if unsteady := sum(trial.steady is False for trial in rated(valid)):
        notes.append(f"{unsteady} of {len(rated(valid))} trials never became steady")
    if far := [trial for trial in valid if is_far_ahead(trial.read_ahead_records, trial.records)]:
        furthest = max(far, key=lambda trial: trial.read_ahead_records or 0)
        notes.append(
            f"its tasks do not wait for the sink: up to {furthest.read_ahead_records:,} of {furthest.records:,} records"
            " were read and not stored, so a longer load may have another rate"
        )
    return notes


def _of_others(taken: Taken) -> list[str]:
    """Other users in the trials; without repeating `at_least`."""
    shared = [trial for trial in taken.valid if trial.others]
    if not shared or (taken.early is not None and taken.early.code == ReasonCode.SHARED):
        return []
    who = "; ".join(dict.fromkeys(each for trial in shared for each in trial.others))
    left_out = ", and left out" if is_shared(shared[0]) else ""
    return [f"{len(shared)} of {len(taken.valid)} trials not alone{left_out}: {who}"]


def _own_notes(valid: Sequence[TrialRecord]) -> list[str]:
    """The trials' notes, each text once, with its block if not all trials have it."""
    blocks: dict[str, list[int]] = {}
    for trial in valid:
        for note in trial.notes:
            blocks.setdefault(note, []).append(trial.block)
    return [
        note if len(found) == len(valid) else f"{note} (block {', '.join(map(str, found))})"
        for note, found in blocks.items()
    ]


def _named(cell: CellSummary, place: int) -> str | None:
    """Components (0) or causes (1), two where the figures do not decide."""
    found = [] if cell.bottleneck is None else causes_of(cell.bottleneck)
    return " or ".join(dict.fromkeys(each[place] for each in found)) or None


METRICS = (
    Metric("Invalid trials", of_cell=_invalid, heads=["why"]),
    Metric(
        "Verdict",
        of_cell=_verdict,
        columns=[
            Column(table, 200, "verdict", lambda cell, _: in_short(cell), "words")
            for table in (CELLS, LOADS, RESCALES, "status")
        ],
        place=290,
        exports=[
            flag("passed"),
            words("verdict"),
            Export("invalid", "VARCHAR", lambda cell, _: "; ".join(cell.invalid) or None),
            Export("notes", "VARCHAR", lambda cell, _: "; ".join(cell.notes) or None),
        ],
    ),
    Metric("Verdict", place=180, exports=[count("failed_tasks")]),
    Metric(
        "Bottleneck",
        of_cell=lambda taken: {"bottleneck": shared_cause(trial.bottleneck for trial in taken.valid or taken.trials)},
        heads=["limited by", "evidence", "also found"],
        place=270,
        exports=[
            Export("limited_by", "VARCHAR", lambda cell, _: _named(cell, 0)),
            Export("limited_by_cause", "VARCHAR", lambda cell, _: _named(cell, 1)),
        ],
    ),
)
