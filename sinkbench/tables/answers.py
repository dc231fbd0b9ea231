"""The answers of a run in sentences, each of them true when it is quoted alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sinkbench.analysis.rates import usable_rate
from sinkbench.errors import ReasonCode
from sinkbench.results import CellSummary, Interval, RunSummary
from sinkbench.summary.answers import BEST, EQUAL, PUBLISHED, Answer, answers_of, left_out, unmatched
from sinkbench.summary.jobs import job_of
from sinkbench.summary.standing import much_foreign
from sinkbench.tables.columns import UNREADY
from sinkbench.tables.format import percent, times, whole

__all__ = [
    "Missing",
    "answer_lines",
    "answer_sentences",
    "at_least_in_words",
    "cell_name",
    "missing_cells",
    "missing_line",
]

_ADVICE = {
    ReasonCode.NOT_WARM: "raise drain.warm_up_seconds, or race again while the stack is up: `sinkbench up` first",
    ReasonCode.RISING: "raise drain.warm_up_seconds, or race again while the stack is up: `sinkbench up` first",
    ReasonCode.SHARED: "stop or delete the other connectors, and stop the other load, or race on a stack of your own",
    ReasonCode.NOT_STEADY: "raise drain.window_seconds or trials, or race on a quieter machine",
}


@dataclass(frozen=True)
class Missing:
    """A cell that is in no answer: its name, why, and what to do to have it, if anything is known to help."""

    name: str
    why: str
    advice: str | None


def answer_lines(summary: RunSummary) -> list[str]:
    """A sentence for each answer, and one for what is missing from them; empty if nothing is there to be compared."""
    found, missing = answer_sentences(summary), missing_line(summary)
    if not found and missing is not None:
        missing = f"No answer. {missing}"
    return [*found, *filter(None, [missing])]


def answer_sentences(summary: RunSummary) -> list[str]:
    """A sentence for each answer; empty if there is none."""
    parts = (_sentence, _unlike, _disturbance)
    return [*_no_equals(summary), *("".join(part(each, summary) for part in parts) for each in answers_of(summary))]


def missing_cells(summary: RunSummary) -> list[Missing]:
    """The cells that are in no answer, in the plan's order."""
    return [Missing(cell_name(cell, summary), _why(cell), _advice(cell)) for cell in left_out(summary)]


def missing_line(summary: RunSummary) -> str | None:
    """Which cells are in no answer, why, and what to do; None if all are."""
    cells = missing_cells(summary)
    if not cells:
        return None
    named = "; ".join(f"{cell.name} ({cell.why})" for cell in cells)
    advice = dict.fromkeys(cell.advice for cell in cells if cell.advice is not None)
    return f"Not in the answer: {named}{'. To have it: ' if advice else ''}{'; '.join(advice)}."


def at_least_in_words(cell: CellSummary) -> str | None:
    """As `at least 1,308`; None of a cell whose rate may be quoted, or that is invalid."""
    if cell.at_least is None or cell.invalid:
        return None
    return f"at least {whole(cell.at_least.figures['records_per_second'])}"


def cell_name(cell: CellSummary, summary: RunSummary) -> str:
    """A cell's label, with its tasks and load if other cells share the label."""
    if Counter(each.label for each in summary.cells)[cell.label] == 1:
        return cell.label
    if cell.rescale is not None:
        return f"{cell.label} from {cell.rescale.tasks_before} to {cell.tasks} tasks"
    load = f" at {cell.offered_records_per_second:,.0f} records/s" if cell.mode == "sustain" else ""
    load += f" and {cell.reads_per_second:g} queries/s" if cell.reads_per_second is not None else ""
    return f"{cell.label} with {cell.tasks} tasks{load}"


def _why(cell: CellSummary) -> str:
    if cell.passed and cell.at_least is not None:
        return f"{at_least_in_words(cell)} records/s, {UNREADY[cell.at_least.code]}"
    if cell.passed and usable_rate(cell) is not None:
        return "what it can answer was not checked"
    return cell.verdict if not cell.passed else "it has no rate"


def _advice(cell: CellSummary) -> str | None:
    return _ADVICE[cell.at_least.code] if cell.passed and cell.at_least is not None else None


def _sentence(found: Answer, summary: RunSummary) -> str:
    faster, slower = cell_name(found.faster, summary), cell_name(found.slower, summary)
    rest = bool(left_out(summary))
    start = {
        BEST: "Of what can be compared: " if rest else "Best of each sink: ",
        EQUAL: f"Equal jobs ({_job(found)}): ",
        PUBLISHED: "As published: ",
    }
    begun = start.get(found.about, "")
    ratio = found.ratio
    if ratio is not None and ratio.interval is not None:
        sure = f"{_between(ratio.interval)}, {ratio.interval.blocks} blocks"
        if ratio.interval.low <= 1 <= ratio.interval.high:
            return f"{begun}No difference found between {faster} and {slower} ({sure})."
        return f"{begun}{faster} stored {times(ratio.estimate)} times as many records/s as {slower} ({sure})."
    does = "sustained" if found.faster.mode == "capacity" else "stored"
    sentence = f"{begun}{faster} {does} {times(found.of_medians)} times as many records/s as {slower}"
    if found.faster.mode == "capacity":
        return f"{sentence}."
    if found.least <= 1:
        return f"{sentence}, but their trials overlap: this run cannot tell them apart."
    return f"{sentence} (lowest trial against highest: {times(found.least)})."


def _job(found: Answer) -> str:
    """What both of two cells that do the same job can answer."""
    if found.jobs is None:
        return ""
    job, asked = found.jobs[0], len(found.faster.queries)
    if not job:
        return f"neither answers one of {asked} queries by an index"
    if len(job) == asked:
        return f"both answer all {asked} queries by an index"
    return f"both answer {len(job)} of {asked} queries by an index: {', '.join(sorted(job))}"


def _unlike(found: Answer, summary: RunSummary) -> str:
    """That two cells do not do the same job, or that nobody knows, where queries were asked; else nothing."""
    if found.about == EQUAL or not (found.faster.queries or found.slower.queries):
        return ""
    if found.jobs is None:
        return " Whether they do the same job is not known."
    if found.jobs[0] == found.jobs[1]:
        return ""
    return f" They do not do the same job: {_answers_how_many([found.faster, found.slower], summary)}."


def _no_equals(summary: RunSummary) -> list[str]:
    """That no two cells do the same job, so that nothing is compared."""
    best = unmatched(summary)
    return [f"No two sinks do the same job: {_answers_how_many(best, summary)}."] if best else []


def _answers_how_many(cells: Sequence[CellSummary], summary: RunSummary) -> str:
    counted = [(cell_name(cell, summary), job_of(cell), len(cell.queries)) for cell in cells]
    said = [
        f"{name} was not asked" if job is None else f"{name} answers {len(job)} of {asked} queries by an index"
        for name, job, asked in counted
    ]
    return ", ".join(said)


def _disturbance(found: Answer, summary: RunSummary) -> str:
    """What others took of the machine beside one of the two, which makes it slower than it is; mostly nothing."""
    beside = [(cell, much_foreign(cell, summary)) for cell in (found.faster, found.slower)]
    taken = [f"{cores:.1f} cores beside {cell_name(cell, summary)}" for cell, cores in beside if cores is not None]
    if not taken:
        return ""
    may = "which may be faster" if len(taken) == 1 else "which may both be faster"
    return f" But others took up to {' and '.join(taken)}, {may}: race on a quieter machine."


def _between(interval: Interval) -> str:
    low, high = (f"{bound:.2f}" if bound < 1.95 else times(bound) for bound in (interval.low, interval.high))
    return f"between {low} and {high} times, {percent(interval.confidence)}"
