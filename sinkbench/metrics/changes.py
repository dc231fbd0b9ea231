"""Whether changes of keys had the expected result, and what they left in the sink."""

from __future__ import annotations

from sinkbench.analysis.rates import median_known, total_known
from sinkbench.analysis.words import megabytes
from sinkbench.metrics.metric import Column, Fields, Metric, column, count, find
from sinkbench.metrics.taken import Taken
from sinkbench.metrics.tasks import tasks
from sinkbench.results import Bloat, CellSummary

CHANGES = "changes"
_KEYS = ("stale", "missing", "not_deleted")


def changes_keys(cell: CellSummary) -> bool:
    return cell.bloat is not None or find(cell, "audit.stale") is not None


def _of_cell(taken: Taken) -> Fields:
    """What changes left in the sink, over the trials that are used, and the errors over all; None without data."""
    wrong = [trial.bloat for trial in taken.trials if trial.bloat is not None]
    if not wrong:
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
        "Changes of keys",
        "Whether the sink holds the last version of every key, and none that was deleted.",
        columns=[
            Column(CHANGES, 10, "tasks", tasks),
            column(CHANGES, 20, "stale\nkeys", "audit.stale"),
            column(CHANGES, 30, "missing\nkeys", "audit.missing"),
            column(CHANGES, 40, "not\ndeleted\nkeys", "audit.not_deleted"),
        ],
        place=200,
        exports=[count(name, f"audit.{name}") for name in _KEYS],
    ),
    Metric(
        "Dead rows and deadlocks",
        "What changes of keys have left in the sink, and which transactions failed.",
        of_cell=_of_cell,
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
