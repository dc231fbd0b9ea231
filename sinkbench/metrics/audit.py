"""Records lost or duplicated, trials without an audit, and what changes of keys left in the sink."""

from functools import partial

from sinkbench.analysis.audit import few_ranges
from sinkbench.analysis.rates import median_known, total_known
from sinkbench.analysis.words import NOT_MEASURED, megabytes
from sinkbench.metrics.connections import LOADS
from sinkbench.metrics.metric import Column, Fields, Metric, column, count
from sinkbench.metrics.rate import CELLS
from sinkbench.metrics.taken import Taken, was_interrupted
from sinkbench.results import Bloat, CellSummary, RunSummary, TrialRecord

# Notes list the lost and duplicated records of at most this many trials.
MOST_NAMED = 3


def count_columns(table: str, duplicates: str = "dupl.", place: int = 100) -> list[Column]:
    """Records lost, and records duplicated; with the number of trials without an audit, as `0 (1 of 3 not audited)`."""

    def counted(name: str, cell: CellSummary, _: RunSummary) -> str:
        # One word per line: the columns are narrow.
        rest = f"\n({cell.not_audited} of {cell.trials}\nnot\naudited)" if cell.not_audited else ""
        return NOT_MEASURED if cell.audit is None else f"{getattr(cell.audit, name):,}{rest}"

    heads = {"lost": "lost", "duplicates": duplicates}
    return [Column(table, place + n, head, partial(counted, name)) for n, (name, head) in enumerate(heads.items())]


def audit_notes(taken: Taken) -> list[str]:
    """Which trials were not audited, and why, and which records the others have lost or duplicated."""
    notes, trials = [], taken.trials
    if unaudited := [trial for trial in trials if trial.audit is None]:
        why = "; ".join(dict.fromkeys(trial.not_audited for trial in unaudited if trial.not_audited))
        text = f"not audited in {len(unaudited)} of {len(trials)} trials, so what is lost there is not known"
        notes.append(f"{text}: {why}" if why else text)
    named = [text for trial in taken.audited if (text := _ranges(trial))]
    rest = len(named) - MOST_NAMED
    more = [f"{rest} more {'trial' if rest == 1 else 'trials'} lost or doubled records: see trials.jsonl"]
    return [*notes, *named[:MOST_NAMED], *(more if rest > 0 else [])]


def _ranges(trial: TrialRecord) -> str:
    """The `seq` ranges that a trial lost or duplicated; empty if none."""
    if trial.audit is None:
        return ""
    kinds = [
        ("lost", trial.audit.lost, trial.lost_ranges),
        ("stored more than once", trial.audit.duplicates, trial.duplicated_ranges),
    ]
    parts = [f"{what} {few_ranges(ranges)}" for what, records, ranges in kinds if records and ranges]
    if trial.audit.duplicates and was_interrupted(trial):
        parts.append("a task that begins again after trouble delivers at least once")
    return f"seq of trial {trial.trial} (block {trial.block}): {'; '.join(parts)}" if parts else ""


CHANGES = "changes"


def _bloat(taken: Taken) -> Fields:
    """What changes left in the sink, over the trials that are used, and the errors over all; None without data."""
    if not (wrong := [trial.bloat for trial in taken.trials if trial.bloat is not None]):
        return {}
    left = [trial.bloat for trial in taken.used if trial.bloat is not None]
    medians = {
        name: None if (value := median_known(getattr(each, name) for each in left)) is None else round(value)
        for name in ("dead_rows", "bytes_before", "bytes_after")
    }
    sums = {name: total_known(getattr(each, name) for each in wrong) for name in ("deadlocks", "rollbacks")}
    return {"bloat": Bloat(**medians, **sums)}


def deadlock_notes(taken: Taken) -> list[str]:
    """In how many of all trials tasks deadlocked, and what to do; empty if none did."""
    found = [trials for trial in taken.trials if trial.bloat is not None and (trials := trial.bloat.deadlocks)]
    if not found:
        return []
    total = "1 deadlock" if sum(found) == 1 else f"{sum(found):,} deadlocks"
    return [
        f"{total} in {len(found)} of {len(taken.trials)} trials: tasks wrote the same rows, each in an order of its"
        " own, and of each the database rolled one transaction back; have one task write each row (key the topic by"
        " what is upserted), commit fewer rows at once, or run fewer tasks"
    ]


METRICS = (
    Metric(
        "Lost and duplicated records",
        of_cell=lambda taken: {"audit": taken.audit, "not_audited": sum(each.audit is None for each in taken.trials)},
        columns=[*count_columns(CELLS), *count_columns(LOADS)],
        heads=["twice"],
        place=190,
        exports=[count(name, f"audit.{name}") for name in ("produced", "stored", "lost", "duplicates", "foreign")],
    ),
    # Its column comes after those of changes.
    Metric("Lost and duplicated records", place=210, exports=[count("not_audited")]),
    Metric(
        "Changes of keys",
        columns=[
            column(CHANGES, 10, "tasks", "tasks", str),
            column(CHANGES, 20, "stale\nkeys", "audit.stale"),
            column(CHANGES, 30, "missing\nkeys", "audit.missing"),
            column(CHANGES, 40, "not\ndeleted\nkeys", "audit.not_deleted"),
        ],
        place=200,
        exports=[count(name, f"audit.{name}") for name in ("stale", "missing", "not_deleted")],
    ),
    Metric(
        "Dead rows and deadlocks",
        of_cell=_bloat,
        columns=[
            column(CHANGES, 50, "dead-\nlocks", "bloat.deadlocks"),
            column(CHANGES, 60, "roll-\nbacks", "bloat.rollbacks"),
            column(CHANGES, 70, "dead\nrows", "bloat.dead_rows"),
            column(CHANGES, 80, "MB\nbefore", "bloat.bytes_before", megabytes),
            column(CHANGES, 90, "MB\nafter", "bloat.bytes_after", megabytes),
        ],
        place=201,
        exports=[
            count(name, f"bloat.{name}")
            for name in ("dead_rows", "deadlocks", "rollbacks", "bytes_before", "bytes_after")
        ],
    ),
)
