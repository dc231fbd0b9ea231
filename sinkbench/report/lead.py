"""What a report begins with: the answer in a sentence, and what it rests on."""

from __future__ import annotations

from sinkbench.loadtable import is_load
from sinkbench.results import CellSummary, RunSummary
from sinkbench.table import answer, cell_name

__all__ = ["answer_or_why_not", "grounds", "outcome"]


def outcome(summary: RunSummary) -> str:
    """Whether the run's numbers may be used, in a few words."""
    if not summary.complete:
        return "not finished"
    failed = sum(not cell.passed for cell in summary.cells)
    return "every check passed" if not failed else f"{failed} of {_cells(len(summary.cells))} did not pass"


def answer_or_why_not(summary: RunSummary) -> str:
    """The run in one sentence; where it has no answer, what it lacks for one."""
    found = answer(summary)
    if found is not None:
        return found
    cells = summary.cells
    if not cells:
        return "No trial of this run was finished, so it says nothing."
    failed = [cell for cell in cells if not cell.passed]
    if is_load(summary) and cells[0].mode == "sustain":
        return f"{len(cells) - len(failed)} of {len(cells)} loads were kept up with."
    if failed:
        return f"No answer: {len(failed)} of {_cells(len(cells))} did not pass."
    kept = [cell for cell in cells if cell.rescale is None]
    rated = [cell for cell in kept if _median(cell) is not None]
    if len(rated) == 1 == len(kept):
        does = "sustained" if rated[0].mode == "capacity" else "stored"
        return f"{cell_name(rated[0], summary)} {does} {_rate(rated[0])}; the run has nothing to compare it with."
    return "No answer: a cell has no rate to compare."


def grounds(summary: RunSummary) -> list[str]:
    """The fastest cell and the slowest, with their tasks and how sure their rates are."""
    if summary.cells and summary.cells[0].mode == "sustain":
        return []
    rated = [(median, cell) for cell in summary.cells if (median := _median(cell)) is not None and not cell.rescale]
    if not rated:
        return []
    fastest, slowest = max(rated, key=lambda each: each[0])[1], min(rated, key=lambda each: each[0])[1]
    ends = [("Fastest", fastest), ("Slowest", slowest)] if fastest is not slowest else [("Measured", fastest)]
    return [f"{word}: {cell.label}, {_tasks(cell)}: {_rate(cell)}{_sure(cell)}." for word, cell in ends]


def _median(cell: CellSummary) -> float | None:
    return (
        None if cell.invalid or not cell.passed or cell.records_per_second is None else cell.records_per_second.median
    )


def _rate(cell: CellSummary) -> str:
    median = _median(cell)
    return "no rate" if median is None else f"{median:,.0f} records/s"


def _tasks(cell: CellSummary) -> str:
    workers = "1 worker" if cell.workers == 1 else f"{cell.workers} workers"
    return f"{'1 task' if cell.tasks == 1 else f'{cell.tasks} tasks'} on {workers}"


def _sure(cell: CellSummary) -> str:
    rate = cell.records_per_second
    if rate is None or len(rate.values) < 2:
        return ", one trial" if rate is not None else ""
    interval = rate.interval
    if interval is not None:
        return (
            f", {100 * interval.confidence:.0f} % interval {interval.low:,.0f} to {interval.high:,.0f},"
            f" {len(rate.values)} trials"
        )
    return f", trials from {rate.low:,.0f} to {rate.high:,.0f}, {len(rate.values)} of them: too few for an interval"


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"
