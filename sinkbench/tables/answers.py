"""The answers of a run in sentences, each of them correct when quoted alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sinkbench.analysis.rates import usable_rate
from sinkbench.errors import ReasonCode
from sinkbench.metrics.durability import alike, durability_in_words
from sinkbench.metrics.foreign import much_foreign
from sinkbench.metrics.format import percent, times
from sinkbench.metrics.names import UNREADY, cell_name
from sinkbench.metrics.queries import job_of
from sinkbench.metrics.rate import at_least_in_words
from sinkbench.results import CellSummary, Interval, RunSummary
from sinkbench.summary.answers import BEST, EQUAL, PUBLISHED, Answer, answers_of, left_out, unmatched
from sinkbench.summary.attribution import Attribution, Step, attributions_of, unattributed

_LONGER = "race again while the stack is up (`sinkbench up` first), since warming up takes longer here"
_ADVICE = {
    ReasonCode.NOT_WARM: _LONGER,
    ReasonCode.RISING: _LONGER,
    ReasonCode.SHARED: "stop or delete the other connectors, and stop the other load, or race on a stack of your own",
    ReasonCode.CONTENT_NOT_CHECKED: "keep the documents in the index or table (docs/methods.md, altered records)",
    ReasonCode.NOT_STEADY: "raise drain.window_seconds or trials, or race on a quieter machine",
}


@dataclass(frozen=True)
class Missing:
    """A cell that is in no answer: its name, why, and what to do if that is known."""

    name: str
    why: str
    advice: str | None


def answer_lines(summary: RunSummary) -> list[str]:
    """A sentence for each answer, and one for what is missing from them; empty without cells to compare."""
    found, missing = answer_sentences(summary), missing_line(summary)
    if not found and missing is not None:
        missing = f"No answer. {missing}"
    return [*found, *filter(None, [missing])]


def answer_sentences(summary: RunSummary) -> list[str]:
    """A sentence for each answer, then the shares of sink and connector in the difference; may be empty."""
    return [
        *_no_equals(summary),
        *(
            f"{_sentence(each, summary)}{_unlike(each, summary)}{_unfair((each.faster, each.slower), summary)}"
            for each in answers_of(summary)
        ),
        *(f"{_shares(each, summary)}{_unfair(each.cells, summary)}" for each in attributions_of(summary)),
    ]


def missing_cells(summary: RunSummary) -> list[Missing]:
    return [Missing(cell_name(cell, summary), _why(cell), _advice(cell)) for cell in left_out(summary)]


def missing_line(summary: RunSummary) -> str | None:
    """Which cells are in no answer, why, and what to do; None if there are none."""
    cells = missing_cells(summary)
    if not cells:
        return None
    named = "; ".join(f"{cell.name} ({cell.why})" for cell in cells)
    advice = dict.fromkeys(cell.advice for cell in cells if cell.advice is not None)
    lines = [f"Not in the answer: {named}{'. To have it: ' if advice else ''}{'; '.join(advice)}."]
    return " ".join([*lines, *unattributed_lines(summary)])


def unattributed_lines(summary: RunSummary) -> list[str]:
    """Which cells are missing to separate the sink's share from the connector's, a sentence per way of writing."""
    return [
        f"{_manner(batched)}: not known without {' and '.join(cell_name(cell, summary) for cell in cells)}."
        for batched, cells in unattributed(summary)
    ]


def _why(cell: CellSummary) -> str:
    if cell.passed and cell.at_least is not None:
        rate = at_least_in_words(cell)
        return f"{rate} records/s, {UNREADY[cell.at_least.code]}" if rate else UNREADY[cell.at_least.code]
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
    if found.jobs is None:
        return ""
    job, asked = found.jobs[0], len(found.faster.queries)
    if not job:
        return f"neither answers one of {asked} queries by an index"
    if len(job) == asked:
        return f"both answer all {asked} queries by an index"
    return f"both answer {len(job)} of {asked} queries by an index: {', '.join(sorted(job))}"


def _unlike(found: Answer, summary: RunSummary) -> str:
    """A sentence if cells of two sinks do not do the same job, or that is unknown; else empty."""
    if found.about == EQUAL or found.faster.sink == found.slower.sink:
        return ""
    if not (found.faster.queries or found.slower.queries):
        return " Whether they do the same job was not checked: no queries were asked."
    if found.jobs is None:
        return " Whether they do the same job is not known."
    if found.jobs[0] == found.jobs[1]:
        return ""
    return f" They do not do the same job: {_answers_how_many([found.faster, found.slower], summary)}."


def _no_equals(summary: RunSummary) -> list[str]:
    """A sentence if no two cells do the same job, so that nothing is compared."""
    best = unmatched(summary)
    return [f"No two sinks do the same job: {_answers_how_many(best, summary)}."] if best else []


def _answers_how_many(cells: Sequence[CellSummary], summary: RunSummary) -> str:
    counted = [(cell_name(cell, summary), job_of(cell), len(cell.queries)) for cell in cells]
    said = [
        f"{name} was not asked" if job is None else f"{name} answers {len(job)} of {asked} queries by an index"
        for name, job, asked in counted
    ]
    return ", ".join(said)


def _shares(found: Attribution, summary: RunSummary) -> str:
    steps = f"{_way(found.first, found.sink_first, summary)}, {_way(found.second, not found.sink_first, summary)}"
    begun = f"{_manner(found.batched)}: {steps}."
    slowest, _, fastest = (cell_name(cell, summary) for cell in found.cells)
    if found.share is None:
        return f"{begun} {fastest} was not faster than {slowest} in every block, so there is nothing to share out."
    if not 0 <= found.share.estimate <= 1:
        return f"{begun} One makes up for the other, so neither has a share of the difference."
    interval = found.share.interval
    sure = "" if interval is None else f" ({_span(interval)}, {percent(interval.confidence)}, {interval.blocks} blocks)"
    sinks, connectors = percent(found.share.estimate), percent(found.share.rest.estimate)
    return f"{begun} On a log scale {sinks} of the difference is the sink's{sure}, {connectors} the connector's."


def _manner(batched: bool) -> str:
    return f"Sink or connector, {'in batches' if batched else 'one by one'}"


def _way(step: Step, is_sink: bool, summary: RunSummary) -> str:
    first, second = cell_name(step.first, summary), cell_name(step.second, summary)
    same = "the same connector" if is_sink else "the same sink"
    ratio = step.ratio
    factor = _factor(step.of_medians if ratio is None else ratio.estimate)
    sure = "" if ratio is None or ratio.interval is None else f", {_between(ratio.interval)}"
    return f"{second} stored {factor} times what {first} did ({same}{sure})"


def _factor(ratio: float) -> str:
    """As 0.87, 1.4 and 117: two decimals near 1 show on which side it is."""
    return f"{ratio:.2f}" if ratio < 1.95 else times(ratio)


def _span(interval: Interval) -> str:
    return f"{percent(interval.low)} to {percent(interval.high)}"


def _unfair(cells: Sequence[CellSummary], summary: RunSummary) -> str:
    """What makes a comparison of cells unfair: different durability, and foreign load."""
    durability = _unlike_durability(cells, [cell_name(cell, summary) for cell in cells])
    return f"{durability}{_disturbance(cells, summary)}"


def _unlike_durability(cells: Sequence[CellSummary], names: Sequence[str]) -> str:
    """A sentence if compared cells are not equally durable, or that is unknown; else empty."""
    equal = alike(cells)
    if equal is True:
        return ""
    if equal is None:
        unknown = [name for cell, name in zip(cells, names, strict=True) if durability_in_words(cell) == "not known"]
        return f" How durably {' and '.join(unknown)} stores is not known."
    of_kafka = len({cell.durability.kafka for cell in cells if cell.durability is not None}) > 1
    told = [
        f"{name} on {durability_in_words(cell)}"
        + (f" ({cell.durability.kafka})" if of_kafka and cell.durability is not None else "")
        for cell, name in zip(cells, names, strict=True)
    ]
    return f" They do not store as durably: {'; '.join(told)}."


def _disturbance(cells: Iterable[CellSummary], summary: RunSummary) -> str:
    """How much CPU others used during cells, which makes these slower; usually empty."""
    taken = [(cell, much_foreign(cell, summary)) for cell in cells]
    words = [f"{cores:.1f} cores during {cell_name(cell, summary)}" for cell, cores in taken if cores is not None]
    if not words:
        return ""
    may = {1: "which may be faster", 2: "which may both be faster"}.get(len(words), "which may all be faster")
    return f" But others took up to {' and '.join(words)}, {may}: race on a quieter machine."


def _between(interval: Interval) -> str:
    low, high = _factor(interval.low), _factor(interval.high)
    return f"between {low} and {high} times, {percent(interval.confidence)}"
