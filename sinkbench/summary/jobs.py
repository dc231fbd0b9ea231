"""What a cell's index or table can answer: only cells that can answer the same do the same job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sinkbench.analysis.rates import median_known
from sinkbench.results import Asked, CellSummary, TrialRecord

__all__ = ["job_of", "over_trials"]


def job_of(cell: CellSummary) -> frozenset[str] | None:
    """The queries that a cell answers rightly and by an index; None if it was asked nothing, or nobody can tell."""
    told = [each for each in cell.queries if not each.problem]
    if not cell.queries or any(each.right is None or each.by_index is None for each in told):
        return None
    return frozenset(each.query for each in told if each.right and each.by_index)


def over_trials(trials: Sequence[TrialRecord]) -> list[Asked]:
    """What came of each query over the trials of a cell that were asked: wrong once is wrong."""
    by_query: dict[str, list[Asked]] = {}
    for trial in trials:
        for each in trial.queries:
            by_query.setdefault(each.query, []).append(each)
    return [_merged(name, found) for name, found in by_query.items()]


def _merged(query: str, asked: Sequence[Asked]) -> Asked:
    return Asked(
        query=query,
        right=_as_known(each.right for each in asked),
        by_index=_as_known(each.by_index for each in asked),
        found=asked[-1].found,
        milliseconds=median_known(each.milliseconds for each in asked),
        problem=next((each.problem for each in asked if each.problem), ""),
    )


def _as_known(told: Iterable[bool | None]) -> bool | None:
    """False if one is, else True if one is, else not known."""
    found = set(told)
    return False if False in found else True if True in found else None
