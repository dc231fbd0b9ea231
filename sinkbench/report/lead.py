"""The beginning of a report: the answers in sentences, and their basis."""

from __future__ import annotations

from sinkbench.analysis.rates import usable_median
from sinkbench.errors import ReasonCode
from sinkbench.metrics.format import how_many, percent
from sinkbench.metrics.names import cell_name
from sinkbench.results import CellSummary, RunSummary
from sinkbench.summary.answers import left_out
from sinkbench.tables.answers import answer_sentences
from sinkbench.tables.faults import fault_line
from sinkbench.tables.loads import is_load

_CHECKED = "no record lost, all tasks running, counts that agree, JVMs warm and rates steady as far as known"


def outcome(summary: RunSummary) -> str:
    """Whether the run's numbers may be used, in a few words."""
    if not summary.complete:
        return "not finished"
    failed = sum(not cell.passed for cell in summary.cells)
    if failed:
        return f"{failed} of {how_many(len(summary.cells), 'cell')} did not pass"
    unready = [cell.at_least.code for cell in summary.cells if cell.at_least is not None]
    if unready:
        also = {ReasonCode.SHARED: "alone", ReasonCode.CONTENT_NOT_CHECKED: "checked"}
        *most, last = ["warm", "steady", *(word for code, word in also.items() if code in unready)]
        return f"{len(unready)} of {how_many(len(summary.cells), 'cell')} not {', '.join(most)} and {last}"
    unaudited = sum(cell.not_audited for cell in summary.cells)
    if unaudited:
        taken = sum(cell.trials for cell in summary.cells)
        return f"passed, but {unaudited} of {how_many(taken, 'trial')} not audited: what is lost there is not known"
    return f"passed: {_CHECKED}"


def answers_or_why_none(summary: RunSummary) -> list[str]:
    """The answers of the run, a sentence each, or one sentence why there is none."""
    return answer_sentences(summary) or [_why_none(summary)]


def _why_none(summary: RunSummary) -> str:
    cells = summary.cells
    if not cells:
        return "No trial of this run was finished, so it says nothing."
    if cells[0].mode == "faults":
        return fault_line(summary)
    if is_load(summary) and cells[0].mode == "sustain":
        return f"{sum(cell.passed for cell in cells)} of {len(cells)} loads were kept up with."
    kept = [cell for cell in cells if cell.rescale is None]
    if missing := left_out(summary):
        return f"No answer: {len(missing)} of {how_many(len(kept), 'cell')} may not be compared."
    rated = [cell for cell in kept if _median(cell) is not None]
    if len(rated) == 1 == len(kept):
        does = "sustained" if rated[0].mode == "capacity" else "stored"
        return f"{cell_name(rated[0], summary)} {does} {_rate(rated[0])}; the run has nothing to compare it with."
    return "No answer: a cell has no rate to compare."


def grounds(summary: RunSummary) -> list[str]:
    """The fastest and the slowest cell, with their tasks and the uncertainty of their rates."""
    if summary.cells and summary.cells[0].mode == "sustain":
        return []
    rated = [(median, cell) for cell in summary.cells if (median := _median(cell)) is not None and not cell.rescale]
    if not rated:
        return []
    fastest, slowest = max(rated, key=lambda each: each[0])[1], min(rated, key=lambda each: each[0])[1]
    ends = [("Fastest", fastest), ("Slowest", slowest)] if fastest is not slowest else [("Measured", fastest)]
    return [
        f"{word}: {cell.label}, {how_many(cell.tasks, 'task')} on {how_many(cell.workers, 'worker')}: {_rate(cell)}"
        f"{_sure(cell)}."
        for word, cell in ends
    ]


def _median(cell: CellSummary) -> float | None:
    return usable_median(cell) if cell.passed else None


def _rate(cell: CellSummary) -> str:
    median = _median(cell)
    return "no rate" if median is None else f"{median:,.0f} records/s"


def _sure(cell: CellSummary) -> str:
    rate = cell.records_per_second
    if rate is None or len(rate.values) < 2:
        return ", one trial" if rate is not None else ""
    trials = len(rate.values)
    if found := rate.interval:
        return f", {percent(found.confidence)} interval {found.low:,.0f} to {found.high:,.0f}, {trials} trials"
    return f", trials from {rate.low:,.0f} to {rate.high:,.0f}, {trials} of them: too few for an interval"
