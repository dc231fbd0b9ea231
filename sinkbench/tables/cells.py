"""A run as a table of its cells, with its answer and remarks in sentences.

All text is ASCII apart from names that users chose, so that pipes and logs can hold it.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from sinkbench.analysis.intervals import FEWEST_BLOCKS
from sinkbench.analysis.rates import ratio_to_slowest, usable_median, usable_rate
from sinkbench.bottleneck.verdict import NOT_IDENTIFIED
from sinkbench.errors import ReasonCode
from sinkbench.results import Bottleneck, CellSummary, Interval, RunSummary
from sinkbench.summary.standing import much_foreign
from sinkbench.tables.answers import answer_lines, at_least_in_words, cell_name
from sinkbench.tables.bounds import bound_lines
from sinkbench.tables.changes import changes_table
from sinkbench.tables.columns import SHORT_NAMES, connections, counted, in_short, machine_in_words, resumed_in_words
from sinkbench.tables.durability import durability_table
from sinkbench.tables.faults import fault_line, fault_lines, is_faults, matrix_table, recovery_table, status_table
from sinkbench.tables.figures import WHERE
from sinkbench.tables.format import NOT_MEASURED, percent, share_span, span, tenths, times, whole
from sinkbench.tables.loads import is_load, load_lines, load_table
from sinkbench.tables.pools import pool_table
from sinkbench.tables.queries import query_lines, query_table, reads_table
from sinkbench.tables.records import record_lines
from sinkbench.tables.rescales import rescale_table
from sinkbench.tables.resources import cost_table, price_lines, resource_table
from sinkbench.tables.scaling import scaling_line, scaling_table
from sinkbench.tables.stages import limit_line, stage_table
from sinkbench.tables.text import new_table, plain_text, printed, words

__all__ = ["cells_table", "efficiency_and_spread", "heading", "rate_and_spread", "remarks", "render", "show"]

# What services say, which has no common form.
_OF_MANY_KINDS = {ReasonCode.UNKNOWN, ReasonCode.SERVICE_ERROR, ReasonCode.CONNECT_REFUSED}
_PIPE_WIDTH = 140
_ROOMY_WIDTH = 132
_WHOLE_WIDTH = 100
_LONGEST_NAME = 28


def show(summary: RunSummary, file: TextIO | None = None) -> None:
    """Prints a run: heading, tables, answer and remarks; as wide as the terminal, or in 140 columns without colour."""
    out = sys.stdout if file is None else file
    console = Console(file=out)
    text = printed(_parts(summary, console.width), console) if out.isatty() else render(summary)
    # A name in letters that the output's encoding lacks must not end the command that measured it.
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding))


def render(summary: RunSummary, width: int = _PIPE_WIDTH) -> str:
    """What `show` prints into a pipe, with tables of at most `width` columns."""
    return plain_text(_parts(summary, width), width)


def heading(summary: RunSummary) -> list[str]:
    """The lines above the table: the run, its plan and its machine."""
    plan, found = summary.plan, summary.environment
    machine = machine_in_words(found)
    parts = [
        f"plan {plan.name}",
        f"trials {plan.trials}" if plan.trials is not None else "",
        f"seed {plan.seed}" if plan.seed is not None else "",
        f"stack {found['stack']}" if found.get("stack") else "",
        f"machine {machine}" if machine else "",
        resumed_in_words(summary),
    ]
    unfinished = "" if summary.complete else " (not finished)"
    return [f"run {summary.run}{unfinished}", ", ".join(filter(None, parts))]


def cells_table(summary: RunSummary, width: int = _PIPE_WIDTH) -> Table:
    """One row a cell, in the plan's order, but for those in `rescale_table`. An invalid cell shows no rate.

    A rate has its 95 % interval; of too few trials the lowest and the highest, in brackets if other cells have an
    interval. Below 132 columns of `width` it stands under the rate; below 100, records per write and CPU seconds are
    left out.
    """
    narrow, roomy = width < _ROOMY_WIDTH, width >= _WHOLE_WIDTH
    limited = roomy and any(cell.efficiency is not None for cell in summary.cells)
    of_jvms = roomy and any(cell.compiling_share is not None for cell in summary.cells)
    table = new_table(
        "pipeline",
        *("tasks\n(per\nworker)", "records/s", *([] if narrow else [_spread_header(summary)]), "ratio"),
        *(["of\nlimit"] if limited else []),
        *(["records\n/write"] if roomy else []),
        "peak\nconns",
        # It alone may wrap: rich takes room from every column that may, names and verdicts included.
        *([Column("CPU s per\nmillion\nrecords", overflow="fold", min_width=11 if narrow else 14)] if roomy else []),
        *(["JIT", "GC"] if of_jvms else []),
        *("lost", "dupl.", words("verdict")),
    )
    cells = _not_rescaled(summary)
    of_medians = ratio_to_slowest([usable_median(cell) for cell in cells])
    in_brackets = any(_interval(cell) for cell in cells)
    for cell, of_median in zip(cells, of_medians, strict=True):
        rate, spread = rate_and_spread(cell, in_brackets)
        # The ratio paired by block is the better estimate, and the one in `answer`.
        ratio = cell.ratio.estimate if of_median is not None and cell.ratio and cell.ratio.interval else of_median
        row = [
            _folded(cell.label, narrow),
            f"{cell.tasks} ({cell.tasks_per_worker:g})",
            *(["\n".join(dict.fromkeys((rate, spread)))] if narrow else [rate, spread]),
            f"x{times(ratio)}" if ratio is not None else NOT_MEASURED,
            *(["\n".join(efficiency_and_spread(cell))] if limited else []),
            *([tenths(cell.records_per_write, 99.95)] if roomy else []),
            connections(cell),
            *([_cpu(cell)] if roomy else []),
            *(_of_jvms(cell) if of_jvms else []),
            *counted(cell),
            in_short(cell),
        ]
        table.add_row(*map(Text, row))
    return table


def remarks(summary: RunSummary, width: int = _PIPE_WIDTH) -> list[str]:
    """The lines below the table: in full what is wrong with a cell, or must be known of it."""
    lines = []
    for cell in summary.cells:
        name = cell_name(cell, summary)
        lines += [f"{name}: {each}" for each in _wrong(cell)]
        if cell.at_least is not None:
            least = at_least_in_words(cell)
            lines.append(f"{name}: {f'{least} records/s, ' if least else ''}{cell.at_least.text}")
        if cell.bottleneck is not None:
            lines.append(_limited(name, cell.bottleneck))
        lines += [f"* {name}: {note}" for note in cell.notes]
        if (foreign := much_foreign(cell, summary)) is not None:
            lines.append(
                f"{name}: up to {foreign:.1f} cores were busy with what is no part of the stack"
                f" ({cell.stolen_cores or 0.0:.1f} of them stolen by a hypervisor): compare runs of a quieter machine"
            )
    lines += record_lines(summary)
    lines += [f"Also there when the run began: {each}." for each in summary.also_there]
    if is_load(summary):
        return lines
    rates = [rate for cell in summary.cells if (rate := usable_rate(cell)) is not None]
    if any(rate.interval is None and len(rate.values) > 1 for rate in rates):
        where = "In brackets" if any(map(_interval, summary.cells)) else "Beside a rate"
        lines.append(f"{where} are its lowest and highest trial: too few trials for an interval.")
    shares = [each for cell in summary.cells if (each := cell.efficiency_by_block) is not None]
    if any(each.interval is None for each in shares):
        fewest = min(len(each.values) for each in shares)
        blocks = f"{fewest} {'block' if fewest == 1 else 'blocks'}"
        few = f"fewer than {FEWEST_BLOCKS} blocks have both rates"
        lines.append(f"A share of a limit has no interval where {few} (here {blocks}): in brackets lowest and highest.")
    overhead = [cell.monitoring_overhead_cores for cell in summary.cells if cell.monitoring_overhead_cores is not None]
    if overhead:
        lines.append(f"Monitoring overhead: at most {percent(max(overhead))} of one core.")
    if width < _WHOLE_WIDTH:
        lines.append(f"Records per write and CPU seconds are shown from {_WHOLE_WIDTH} columns on.")
    return lines


def _not_rescaled(summary: RunSummary) -> list[CellSummary]:
    return [cell for cell in summary.cells if cell.rescale is None]


def _parts(summary: RunSummary, width: int) -> Iterator[str | Table]:
    """Its tables and its lines, in their order."""
    yield from (*heading(summary), "")
    if is_faults(summary):
        tables = (matrix_table(summary), recovery_table(summary.cells), status_table(summary.cells))
        yield from (tables[0], "", tables[1], "", tables[2])
    else:
        yield load_table(summary, width) if is_load(summary) else cells_table(summary, width)
    yield ""
    if len(_not_rescaled(summary)) < len(summary.cells):
        yield from (rescale_table(summary.cells), "")
    if summary.scaling:
        yield scaling_table(summary.scaling)
        yield from ("", *map(scaling_line, summary.scaling), "")
    if (stages := stage_table(summary)) is not None:
        yield from (stages, "")
    durability = durability_table(summary, [cell_name(cell, summary) for cell in summary.cells])
    of_load = (reads_table(summary), changes_table(summary), pool_table(summary), query_table(summary), durability)
    # Of a pipeline that is broken nobody asks what it took.
    costs = () if is_faults(summary) else (resource_table(summary, width), cost_table(summary))
    for table in (*of_load, *costs):
        yield from [] if table is None else (table, "")
    if is_faults(summary):
        yield from (fault_line(summary), *fault_lines(summary))
    yield from answer_lines(summary)
    yield from load_lines(summary) if is_load(summary) else []
    yield from price_lines(summary)
    yield from query_lines(summary)
    yield from (*remarks(summary, width), *map(limit_line, summary.limits), *bound_lines(summary), WHERE)


def _interval(cell: CellSummary) -> Interval | None:
    rate = usable_rate(cell)
    return None if rate is None else rate.interval


def _spread_header(summary: RunSummary) -> str:
    return "95 %\ninterval" if any(map(_interval, summary.cells)) else "low-high"


def rate_and_spread(cell: CellSummary, in_brackets: bool) -> tuple[str, str]:
    """The rate, and its interval or its lowest and highest trial, the latter in brackets if so asked."""
    rate = usable_rate(cell)
    if rate is None:
        return at_least_in_words(cell) or NOT_MEASURED, NOT_MEASURED
    if len(rate.values) == 1:
        return whole(rate.median), NOT_MEASURED
    if rate.interval is not None:
        return whole(rate.median), span(rate.interval.low, rate.interval.high)
    spread = span(rate.low, rate.high)
    return whole(rate.median), f"({spread})" if in_brackets else spread


def efficiency_and_spread(cell: CellSummary) -> list[str]:
    """The share of the sink's limit; and, if there are several blocks, its interval, or in brackets the lowest and the
    highest."""
    if cell.efficiency is None:
        return [NOT_MEASURED]
    shares = cell.efficiency_by_block
    if shares is None or len(shares.values) < 2:
        return [percent(cell.efficiency)]
    if shares.interval is not None:
        return [percent(cell.efficiency), share_span(shares.interval.low, shares.interval.high)]
    return [percent(cell.efficiency), f"({share_span(shares.low, shares.high)})"]


def _folded(name: str, narrow: bool) -> str:
    """A name on as many lines as it needs; in a narrow table the sink has its own."""
    parts = name.replace("/", "/\n", 1).split("\n") if narrow else [name]
    return "\n".join(line for part in parts for line in textwrap.wrap(part, _LONGEST_NAME) or [part])


def _cpu(cell: CellSummary) -> str:
    """CPU seconds of all services together, then of each, the largest first, as far as they are not 0.0."""
    known = [(seconds, name) for name, seconds in cell.cpu_seconds_per_million.items() if seconds is not None]
    busy = sorted((-seconds, name) for seconds, name in known if seconds >= 0.05)
    total = cell.total_cpu_seconds_per_million
    words = [f"all:{tenths(total.median, 9.5)}"] if total is not None else []
    words += [f"{SHORT_NAMES.get(name, name)}:{tenths(-less, 9.5)}" for less, name in busy]
    return " ".join(words) or NOT_MEASURED


def _of_jvms(cell: CellSummary) -> tuple[str, str]:
    """The shares of the services' CPU time that went into compiling and into garbage collection."""
    jvms, total = cell.jvm_cpu_seconds_per_million, cell.total_cpu_seconds_per_million
    used = None if total is None or not jvms else total.median
    compiling, collecting = cell.compiling_share, sum(each.gc or 0.0 for each in jvms.values())
    return (
        NOT_MEASURED if compiling is None else percent(compiling),
        percent(collecting / used) if used else NOT_MEASURED,
    )


def _wrong(cell: CellSummary) -> list[str]:
    """The verdict of a cell that did not pass, then the first of each kind of reason that it does not say."""
    if cell.passed:
        return []
    # The verdict says the first reason, or why tasks failed.
    left = [reason for reason in cell.reasons if reason.code != ReasonCode.TASKS_FAILED]
    left = left if cell.failed_tasks else left[1:]
    kinds: dict[str, list[str]] = {}
    for reason in left:
        # Of a reason without a code only its text tells the kind.
        kinds.setdefault(reason.text if reason.code in _OF_MANY_KINDS else reason.code, []).append(reason.text)
    more = {first: len(others) for first, *others in kinds.values()}
    return [cell.verdict, *(f"{text} (and {count} more like it)" if count else text for text, count in more.items())]


def _limited(name: str, found: Bottleneck) -> str:
    if found.cause == NOT_IDENTIFIED:
        return f"{name}: what limits it is not identified ({found.evidence})"
    return f"{name}: limited by {found.component}, {found.cause}: {found.evidence}"
