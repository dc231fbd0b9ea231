"""The answers of a run in sentences, each of them correct when quoted alone."""

import re
from collections.abc import Iterable, Sequence

from sinkbench.analysis.intervals import FEWEST_BLOCKS
from sinkbench.analysis.rates import usable_rate
from sinkbench.analysis.words import percent, share_span, times, whole
from sinkbench.errors import ReasonCode
from sinkbench.metrics.cpu import much_foreign
from sinkbench.metrics.durability import alike, durability_in_words
from sinkbench.metrics.metric import find
from sinkbench.metrics.names import UNREADY, cell_name, marked_name, product_name
from sinkbench.metrics.queries import job_of
from sinkbench.metrics.rate import at_least_in_words
from sinkbench.results import CellSummary, RunSummary
from sinkbench.summary import answers

DEFAULT_PLAN = "quick"
_WHY_PUBLISHED = (
    "this is batching and indexes, not the database, and compares what the article compared (Paul Brebner,"
    ' 13 October 2021, "Kafka Connect and Elasticsearch vs. PostgreSQL Pipelines: Initial Performance Results",'
    " https://www.instaclustr.com/blog/kafka-connect-elasticsearch-pipeline-series-part-8)"
)
_ADVICE = {
    ReasonCode.SHARED: "stop the other connectors and the other load",
    ReasonCode.CONTENT_NOT_CHECKED: "keep the documents in the index or table (docs/methods.md, altered records)",
    ReasonCode.NOT_STEADY: "raise drain.window_seconds or trials, or race on a quieter machine",
}
_WARMER = "race again while the stack is up (`sinkbench up` first), since warming up takes longer here"


def answer_lines(summary: RunSummary) -> list[str]:
    """What a run shows, a paragraph each, the answer first; empty without cells to compare."""
    found, missing = _answers(summary), answers.left_out(summary)
    if not found and missing:
        early = [cell.at_least.code for cell in missing if cell.passed and cell.at_least is not None]
        advice = "; ".join(dict.fromkeys(_ADVICE.get(code, _WARMER) for code in early))
        named = "; ".join(f"{cell_name(cell, summary)} ({_why(cell)})" for cell in missing)
        found = [f"No answer: {named}.{f' To have it: {advice}.' if advice else ''}"]
    return [*found, *(line for each in answers.changes_of(summary) if (line := _change(each, summary)))]


def published_lines(summary: RunSummary) -> list[str]:
    """The comparison of the published pipelines, and what it is one of; empty if they are not in the run."""
    pair = answers.published_of(summary)
    return [] if pair is None else [f"As published, {_compared(pair, summary)[:-1]}: {_WHY_PUBLISHED}."]


def _why(cell: CellSummary) -> str:
    if cell.passed and cell.at_least is not None:
        rate = at_least_in_words(cell)
        return f"{rate} records/s, {UNREADY[cell.at_least.code]}" if rate else UNREADY[cell.at_least.code]
    if cell.passed and usable_rate(cell) is not None:
        return "what it can answer was not checked"
    return cell.verdict if not cell.passed else "it has no rate"


def _answers(summary: RunSummary) -> list[str]:
    jobs = [(cell, len(job_of(cell) or ()), len(cell.queries)) for cell in answers.unmatched(summary)]
    said = [f"{cell_name(cell, summary)} answers {job} of {asked} queries from an index" for cell, job, asked in jobs]
    return [
        *([f"No two sinks do the same job: {', '.join(said)}."] if said else []),
        *(_answer(each, summary) for each in answers.answers_of(summary)),
        *(
            f"{_compared(each, summary)}{_unfair((each.faster, each.slower), summary)}"
            for each in answers.ends_of(summary)
        ),
    ]


def _answer(found: answers.Answer, summary: RunSummary) -> str:
    asked = max((len(cell.queries) for cell in summary.cells), default=0)
    sinks = " or ".join(product_name(side.sink) for side in found.sides)
    through = {None: "", "reference": " through connectors of one design", "others": " through other connectors"}
    sinks += through[found.through]
    if found.job is None:
        best = [cell for side in found.sides if (cell := side.best or side.fastest)]
        why = "it was not checked what they answer" if asked else "no queries were asked"
        # Queries need documents of the NOAA records, each stored once.
        other = any(find(cell, "audit.stale") is not None or cell.form.startswith("row") for cell in summary.cells)
        can_be_asked = not asked and summary.records is None and not other
        how = " To decide: `queries: queries` in the plan." if can_be_asked else ""
        return f"{sinks}: NOT DECIDED, {why}: they may do different jobs.{_fastest(best, summary)}.{how}"
    if not found.job:
        sinks += f", neither answering one of {asked} queries from an index"
    else:
        all_ = f"all {asked} queries" if len(found.job) == asked else f"{len(found.job)} of {asked} queries"
        sinks += f", both answering {all_} from an index"
    if (pair := found.pair) is not None:
        return f"{sinks}: {_compared(pair, summary)}{_unfair((pair.faster, pair.slower), summary)}"
    cells = [cell for side in found.sides for cell in side.undecided]
    names = [f"{cell_name(cell, summary)} (queries not checked)" for cell in cells if answers.is_final(cell)]
    names += [marked_name(cell, summary) for cell in cells if not answers.is_final(cell)]
    names += [f"{key} (no trial)" for side in found.sides for key in side.missing]
    rates = f"{_fastest(found.fastest, summary)}." if len(found.fastest) > 1 else ""
    if (bound := found.bound()) is not None:
        rates = f"{rates[:-1]}, {times(bound[0])} times{' at most' if bound[1] else ''}."
    why = " and ".join(names)
    return f"{sinks}: NOT DECIDED, since {why} may be faster.{rates} To decide: {_decide(cells, summary)}."


def _fastest(cells: Iterable[CellSummary], summary: RunSummary) -> str:
    rates = (f"{cell_name(cell, summary)} {whole(answers.fastest_trial(cell))}" for cell in cells)
    return f" Fastest trials, in records/s: {' and '.join(rates)}"


def _decide(cells: Sequence[CellSummary], summary: RunSummary) -> str:
    """What to do about cells that are not final, ending in a command."""
    if not summary.complete:
        return f"`sinkbench resume {summary.run}`"
    failed = [cell for cell in cells if not cell.passed]
    names = " and ".join(dict.fromkeys(cell_name(cell, summary) for cell in failed))
    first = [f"repair {names} or take it out of the plan"] if failed else []
    first += [_ADVICE[code] for code in dict.fromkeys(find(cell, "at_least.code") for cell in cells) if code in _ADVICE]
    taken = summary.plan.trials or 0
    trials = FEWEST_BLOCKS if taken < FEWEST_BLOCKS else 2 * taken
    plan = "" if summary.plan.name == DEFAULT_PLAN else f" {summary.plan.name}"
    return ", ".join([*first, f"`sinkbench race{plan} --trials {trials}`"])


def _compared(pair: answers.Pair, summary: RunSummary) -> str:
    interval, faster, slower = pair.ratio.interval, cell_name(pair.faster, summary), cell_name(pair.slower, summary)
    searched, ends = pair.faster.mode == "capacity", pair if interval is None else interval
    sure = ""
    if not searched and pair.low != pair.high:
        kind = "min-max" if interval is None else f"{percent(interval.confidence)} CI"
        sure = f" ({kind} {times(ends.low)}-{times(ends.high)})"
    does = "sustained" if searched else "stored"
    if ends.low <= 1 <= ends.high and not searched:
        return f"no difference found between {faster} and {slower}{sure}."
    return f"{faster} {does} {times(pair.ratio.estimate)} times as many records/s as {slower}{sure}."


def _change(found: answers.Change, summary: RunSummary) -> str:
    first, second, product = found.first, found.second, product_name(found.second.sink)
    if found.ratio is None:
        return ""
    estimate, low, high = found.ratio
    not_final = [marked_name(cell, summary) for cell in (first, second) if not answers.is_final(cell)]
    end = f" (fastest trials; not final: {' and '.join(not_final)})." if not_final else "."
    if found.what == "batches":
        sizes = f"{whole(second.records_per_write)} records a request, not {whole(first.records_per_write)},"
        span = "" if low == high else f" ({times(low)}-{times(high)})"
        return f"Batching: {sizes} store {times(estimate)} times as much{span} in {product}{end}"
    share = percent(estimate) if low == high else f"{percent(estimate)} ({share_span(low, high)} %)"
    if found.what == "connector":
        return (
            f"Connector: {cell_name(second, summary)} reaches {share} of the rate of {cell_name(first, summary)}{end}"
        )
    if found.what == "indexes":
        more = len(job_of(second) or ()) - len(job_of(first) or ())
        before, after = (find(cell, "disk_bytes_per_record.median") for cell in (first, second))
        disk = f" and adds {percent(after / before - 1)} disk" if before and after and after > before else ""
        return f"Indexing for {more} queries leaves {product} {share} of its rate{disk}{end}"
    version, mode = find(summary.environment, "versions.pgbouncer"), find(second, "pool.mode")
    # At login it says "1.18.0/bouncer".
    number = re.search(r"\d[\d.]*", str(version or ""))
    name = " ".join(filter(None, ["PgBouncer", number and number[0], f"({mode})" if mode else ""]))
    direct, pooled = (each.server_peak or each.clients_peak for each in (first.connections, second.connections))
    counts = f"; {pooled} server connections, not {direct}" if direct and pooled else ""
    return f"{name}: {share} of the direct rate{counts}{end}"


def _unfair(cells: Sequence[CellSummary], summary: RunSummary) -> str:
    """What makes a comparison of cells unfair: different durability, and load of other programs."""
    taken = [(cell, much_foreign(cell, summary)) for cell in cells]
    words = [f"{cores:.1f} cores during {cell_name(cell, summary)}" for cell, cores in taken if cores is not None]
    load = f" Other programs used up to {' and '.join(words)}: race on a quieter machine." if words else ""
    equal = alike(cells)
    if equal is True:
        return load
    durable = [(cell_name(cell, summary), durability_in_words(cell)) for cell in cells]
    if equal is None:
        unknown = " and ".join(name for name, words in durable if words == "not known")
        return f" How durably {unknown} stores is not known.{load}"
    kafka = [find(cell, "durability.kafka") for cell in cells]
    of_kafka = [f" ({acks})" if len(set(kafka)) > 1 else "" for acks in kafka]
    told = (f"{name} on {words}{acks}" for (name, words), acks in zip(durable, of_kafka, strict=True))
    return f" They do not store as durably: {'; '.join(told)}.{load}"
