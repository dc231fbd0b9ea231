"""Lines and tables about a run as a whole: latencies, prices, records, queries, limits, and scaling with tasks."""

from collections.abc import Sequence

from rich.table import Table

from sinkbench.analysis.attribution import Attribution, Part, attribution_of
from sinkbench.analysis.limits import CONNECT, CONNECTOR, GENERATOR, KAFKA, KAFKA_ALONE
from sinkbench.analysis.rates import most
from sinkbench.analysis.words import NOT_MEASURED, counted, formatted, milliseconds, percent, span, times, whole
from sinkbench.metrics.names import cell_name
from sinkbench.metrics.queries import job_of
from sinkbench.results import Asked, Audit, CellSummary, Fit, LatencyMs, Limit, LimitInBlock, RunSummary, Scaling
from sinkbench.tables.text import new_table


def load_lines(summary: RunSummary) -> list[str]:
    """The basis of each cell's latency under a constant load, and the loads that a search for its capacity offered."""
    lines = []
    for cell in summary.cells:
        for what, latency in (("stored", cell.latency_ms), ("found by a search", cell.searchable_ms)):
            if latency is not None and latency.count:
                lines.append(f"{cell.cell}: due until {what}: {_rests_on(latency)}")
        if cell.search:
            steps = ", ".join(
                f"{step.offered:,.0f} {'again ' if step.confirms else ''}{step.outcome}" for step in cell.search
            )
            lines.append(f"{cell.cell}: the search offered {steps}")
    if any(cell.searchable_ms is not None for cell in summary.cells):
        lines.append("found: until a search finds the record; in a database it is found once it is committed.")
    return lines


def _rests_on(latency: LatencyMs) -> str:
    parts = [f"{latency.count:,} records" + (f", one in {latency.one_in}" if latency.one_in > 1 else "")]
    if latency.max is not None:
        parts.append(f"longest {milliseconds(latency.max)} ms")
    if latency.resolution_ms is not None:
        parts.append(f"known to within {milliseconds(latency.resolution_ms)} ms")
    if latency.negative:
        by = "" if latency.earliest is None else f", by {milliseconds(latency.earliest)} ms at most"
        # One time in 20 is less exact than the resolution.
        wrong = latency.earliest is not None and latency.earliest > 2 * (latency.resolution_ms or 0.0)
        parts.append(f"{latency.negative:,} more stored before they were due{by}{', so the clocks disagree' * wrong}")
    if latency.unknown:
        parts.append(f"of {latency.unknown:,} more it is not known")
    return ", ".join(parts)


def price_lines(summary: RunSummary) -> list[str]:
    """The prices used for costs, in a line, and why cells have no cost; empty for a run without prices."""
    if (prices := summary.prices) is None:
        return []
    months = "1 month" if prices.kept_months == 1 else f"{prices.kept_months:g} months"
    said = {
        "cores": (prices.core_hour, "a core-hour"),
        "memory": (prices.memory_gb_hour, "a GB-hour of memory"),
        "disk": (prices.disk_gb_month, f"a GB-month of disk, on which records are kept for {months}"),
    }
    given = ", ".join(f"{price:g} {prices.currency} {what}" for price, what in said.values() if price is not None)
    missing = [part for part, (price, _) in said.items() if price is None]
    left_out = f"; {' and '.join(missing)} in no cost" if missing else ""
    lines = [f"Prices: {given}{left_out}."]
    if names := [cell_name(cell, summary) for cell in summary.cells if not cell.cost or cell.cost.per_million is None]:
        why = "the cell did not pass, its rate may not be quoted, its tasks changed, or a figure was not measured"
        lines.append(f"No cost, since {why}: {', '.join(names)}.")
    return lines


def record_lines(summary: RunSummary) -> list[str]:
    """The data check, and for the user's own records their properties and repetitions."""
    facts = summary.records
    lines = [line] if (line := data_check(summary)) else []
    if facts is None:
        return lines
    lines.append(f"Records: {facts.in_words}; sha256 {facts.sha256[:12]}.")
    audits = [cell.audit.produced / (cell.trials - cell.not_audited or 1) for cell in summary.cells if cell.audit]
    rounds = max(audits, default=0.0) / facts.records
    if rounds > 1:
        lines.append(
            f"A trial needs more records than there are: they were repeated up to {times(rounds)} times. Compression"
            " and the page cache then look better than they are, and ids repeat."
        )
    return lines


def data_check(summary: RunSummary) -> str:
    """What the audits of all trials found, in a line; empty if none was audited."""
    if not (audits := [cell.audit for cell in summary.cells if cell.audit is not None]):
        return ""

    def total(name: str) -> int:
        return sum(getattr(audit, name) or 0 for audit in audits)

    always = {"produced": "sent", "stored": "stored", "lost": "lost", "duplicates": "duplicated"}
    found = [f"{total(name):,} {word}" for name, word in always.items()]
    others = [name for name in Audit.model_fields if name not in (*always, "compared", "checked") and total(name)]
    found += [f"{total(name):,} {name.replace('_', ' ')}" for name in others]
    checked = f"; {total('checked'):,} contents verified" if total("checked") else "; contents not verified"
    unaudited = sum(cell.not_audited for cell in summary.cells)
    missing = f"; {unaudited} of {sum(cell.trials for cell in summary.cells)} trials not audited" if unaudited else ""
    return f"Data check: {', '.join(found)}{checked}{missing}."


def query_table(summary: RunSummary) -> Table | None:
    """A row per cell, a column per query; None if none was asked."""
    if not (cells := [cell for cell in summary.cells if cell.queries]):
        return None
    names = list(dict.fromkeys(each.query for cell in cells for each in cell.queries))
    rows = []
    for cell in cells:
        found = {each.query: each for each in cell.queries}
        stored = whole(most(each.rows for each in cell.queries))
        rows.append((cell_name(cell, summary), stored, by_index(cell), *(shown(found.get(name)) for name in names)))
    return new_table("pipeline", "rows", "by an\nindex", *(name.replace("-", "\n") for name in names), rows=rows)


def by_index(cell: CellSummary) -> str:
    """The number of queries that a cell answers correctly using an index, of all, as 5/7."""
    job = job_of(cell)
    return NOT_MEASURED if job is None else f"{len(job)}/{len(cell.queries)}"


def shown(asked: Asked | None) -> str:
    """As `12 ms`, `840 ms full scan` without an index, `wrong` or `failed`."""
    if asked is None:
        return NOT_MEASURED
    if asked.problem:
        return "failed"
    if asked.right is False:
        return "wrong"
    time = NOT_MEASURED if asked.milliseconds is None else f"{asked.milliseconds:,.0f} ms"
    return time if asked.by_index else f"{time} full scan"


def query_lines(summary: RunSummary) -> list[str]:
    """Which answers are wrong and why, and a legend; empty if no query was asked."""
    lines = []
    for cell in summary.cells:
        said, reads = [], cell.reads
        if wrong := [each.query for each in cell.queries if each.right is False and not each.problem]:
            said.append(f"cannot answer {', '.join(wrong)} rightly")
        if reads is not None and reads.problem:
            said.append(f"{reads.failed:,} queries failed: {reads.problem}")
        if reads is not None and reads.unasked:
            end = "the sink answers fewer a second, so that latencies would be longer"
            said.append(f"{reads.unasked:,} queries were due and not begun before the end: {end}")
        if failed := [f"{each.query} ({each.problem})" for each in cell.queries if each.problem]:
            said.append(f"queries failed: {'; '.join(failed)}")
        lines += [f"{cell_name(cell, summary)}: {each}." for each in said]
    if any(cell.queries for cell in summary.cells):
        what = "Each query was asked once after a trial, of a sink with nothing else to do"
        lines.append(f"{what}; full scan: it read every record, no index helps.")
    if any(cell.reads is not None for cell in summary.cells):
        lines.append(
            "A query's time counts from when it was due: loaded during the load, idle when all of it was stored."
        )
    return lines


_OF_KAFKA = {
    "wire_bytes": ", {:,.0f} bytes a record on the wire",
    "ack_p99_ms": ", acknowledged in {:,.0f} ms (p99)",
    "partition_ratio": ", fullest partition {:.2f} times the emptiest",
    "end_to_end_p99_ms": ", at a consumer in {:,.0f} ms (p99)",
    "sent_ratio": ", brokers sent {:.2f} times the bytes",
    "stored_ratio": ", stored {:.2f} times",
}


def limit_line(limit: Limit) -> str:
    """A limit in words: `limit of postgres: 163,000 records/s by COPY of 1,024 rows over 2 connections`."""
    if limit.records_per_second is None:
        return f"limit of {limit.sink} by {limit.way}: not measured: {limit.note or 'no reason was given'}"
    known = (words.format(limit.figures[name]) for name, words in _OF_KAFKA.items() if name in limit.figures)
    over, tasks = counted(limit.connections or 0, "connection"), f"{limit.connections} tasks of {limit.way}"
    by = {
        GENERATOR: f"{limit.way} alone",
        KAFKA: f"a plain consumer group of {limit.connections}",
        CONNECT: f"{tasks} that drop every record",
        CONNECTOR: f"{tasks} whose target keeps nothing{_missing(limit)}",
        KAFKA_ALONE: f"{limit.way}{''.join(known)}{_missing(limit)}",
    }.get(limit.sink, f"{limit.way} of {limit.batch or 0:,} records over {over}{_missing(limit)}")
    return f"limit of {limit.sink}: {whole(limit.records_per_second)} records/s{_spread(limit)} by {by}"


def limit_in_block_line(limit: Limit, found: LimitInBlock) -> str:
    what = f"limit of {limit.sink} by {limit.way}, block {found.block}"
    if found.records_per_second is None:
        return f"{what}: not measured: {found.problem or 'no reason was given'}"
    return f"{what}: {whole(found.records_per_second)} records/s"


def _spread(limit: Limit) -> str:
    """The interval of a limit's rate; else its range and the number of blocks; or empty."""
    spread = limit.spread
    if spread is None or len(spread.values) < 2:
        return ""
    if spread.interval is not None:
        return f" ({span(spread.interval.low, spread.interval.high)}, {len(spread.values)} blocks, 95 % interval)"
    return f" ({span(spread.low, spread.high)}, the lowest and highest of {len(spread.values)} blocks)"


def _missing(limit: Limit) -> str:
    """In how many blocks a limit could not be measured, with the first reason."""
    problems = [each.problem for each in limit.in_blocks if each.records_per_second is None]
    if not problems:
        return ""
    return f"; not measured in {len(problems)} of {len(limit.in_blocks)} blocks: {problems[0] or 'no reason was given'}"


def attribution_lines(summary: RunSummary) -> list[str]:
    """What takes each cell's time beyond the direct limit, or why that is unknown; none without connectors' limits."""
    if not any(limit.sink == CONNECTOR for limit in summary.limits):
        return []
    named = [(cell_name(cell, summary), cell.sink, attribution_of(cell, summary)) for cell in summary.cells]
    return [f"{name}: {found if isinstance(found, str) else _attributed(sink, found)}" for name, sink, found in named]


def _attributed(sink: str, found: Attribution) -> str:
    """`4.7 us (4.5 to 5.0) a record beyond postgres alone: Connect 2.4 us, 51 %; connector ...`."""
    gap, parts = found.gap, found.parts
    several = f"{found.blocks} blocks, {'95 % intervals' if gap.is_interval else 'lowest and highest'}"
    basis = f" [{several}]" if found.blocks > 1 else ""
    if gap.least <= 0:
        return f"not certainly slower than {sink} alone: {_microseconds(gap)} a record beyond its limit{basis}"
    shares = {name: percent(max(part.estimate, 0.0) / gap.estimate) for name, part in parts.items()}
    each = "; ".join(f"{name} {_microseconds(part)}, {shares[name]}" for name, part in parts.items())
    name, largest = max(parts.items(), key=lambda item: item[1].estimate)
    mostly = f"; most of it: {name}" if 2 * largest.least > gap.estimate else ""
    below = any(part.estimate < 0 for part in parts.values())
    note = "; a part below 0 counts as 0: services that share cores, or work at once, need not add up" if below else ""
    return f"{_microseconds(gap)} a record beyond {sink} alone: {each}{mostly}{basis}{note}"


def _microseconds(part: Part) -> str:
    ends = [f"measured {part.estimate:.1f}"] if part.estimate < 0 else []
    ends += [f"{part.low:.1f} to {part.high:.1f}"] if part.low < part.high else []
    in_brackets = f" ({', '.join(ends)})" if ends else ""
    return f"{max(part.estimate, 0.0):.1f} \N{MICRO SIGN}s{in_brackets}"


def scaling_table(scalings: Sequence[Scaling]) -> Table:
    """One row per number of tasks of each pipeline; without the fit if the data do not support the law."""
    rows = []
    for each in scalings:
        for place, point in enumerate(each.points):
            fitted, added = (point.fitted, point.added_worker) if each.supported else (None, None)
            name = "" if place else each.label
            rows.append((name, f"{point.tasks}", whole(point.measured), whole(fitted), formatted(added, "+,.0f")))
    return new_table("scaling", "tasks", "measured\nrecords/s", "fitted\nrecords/s", "one more\nworker", rows=rows)


def scaling_line(scaling: Scaling) -> str:
    """The law's parameters and its peak, or why the data do not support a fit."""
    name = scaling.label
    if not scaling.supported or not (scaling.one_task and scaling.contention and scaling.coherency):
        return f"{name}: the data do not support a fit: {scaling.why}"
    numbers = (
        f"one task {_estimate(scaling.one_task, ',.0f')} records/s,"
        f" contention {_estimate(scaling.contention, '.2g')}, coherency {_estimate(scaling.coherency, '.2g')}"
    )
    if scaling.peak_tasks is not None:
        fewest = scaling.points[0].tasks
        if scaling.peak_tasks.estimate <= fewest:
            return f"{name}: {numbers}; the rate is highest at {fewest} tasks or fewer"
        return f"{name}: {numbers}; the rate peaks at {_estimate(scaling.peak_tasks, '.0f')} tasks"
    few = "" if scaling.coherency.interval else " (too few trials for an interval)"
    return f"{name}: {numbers}; no peak within the data{few}"


def _estimate(fit: Fit, form: str) -> str:
    found = fit.interval
    return f"{fit.estimate:{form}}" + (f" ({found.low:{form}} to {found.high:{form}})" if found else "")
