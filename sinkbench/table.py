"""A run as a table to read: what each cell reached, what it cost, and whether it may be believed.

All text is plain ASCII apart from names that users chose, so that it also reads well in a pipe and in a log.
"""

from __future__ import annotations

import io
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sinkbench.causes import NOT_IDENTIFIED
from sinkbench.columns import NOT_MEASURED, connections, counted, in_short, new_table, resumed_in_words
from sinkbench.limits.efficiency import limit_line, percent
from sinkbench.loadtable import is_load, load_lines, load_table
from sinkbench.rescaletable import rescale_table
from sinkbench.results import Bottleneck, CellSummary, Interval, RunSummary
from sinkbench.scalingtable import scaling_line, scaling_table
from sinkbench.stagetable import stage_table
from sinkbench.stats import ratio_to_slowest

__all__ = ["answer", "cell_name", "cells_table", "heading", "remarks", "render", "show"]

_PIPE_WIDTH = 140
_ROOMY_WIDTH = 132
_WHOLE_WIDTH = 100
_LONGEST_NAME = 28
_SHORT_NAMES = {"elasticsearch": "es", "postgres": "pg", "pgbouncer": "pgb"}


def show(summary: RunSummary, file: TextIO | None = None) -> None:
    """Prints a run: the heading, the table, the answer and the remarks.

    A terminal gets its own width and bold names; anything else 140 columns and no colour.
    """
    out = sys.stdout if file is None else file
    text = _text(summary, Console(file=out)) if out.isatty() else render(summary)
    # A name in letters that the output's encoding lacks must not end the command that measured it.
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding))


def render(summary: RunSummary, width: int = _PIPE_WIDTH) -> str:
    """What `show` prints into a pipe: text whose table has at most `width` columns."""
    text = _text(summary, Console(width=width, color_system=None, force_terminal=False, file=io.StringIO()))
    return "\n".join(line.rstrip() for line in text.split("\n"))


def heading(summary: RunSummary) -> list[str]:
    """The lines above the table: which run, and what on."""
    plan, found = summary.plan, summary.environment
    machine = [str(found[key]) for key in ("cpu_model",) if found.get(key)]
    if found.get("cpu_count"):
        machine.append(f"{found['cpu_count']} cores")
    parts = [
        f"plan {plan.name}",
        f"trials {plan.trials}" if plan.trials is not None else "",
        f"seed {plan.seed}" if plan.seed is not None else "",
        f"stack {found['stack']}" if found.get("stack") else "",
        f"machine {', '.join(machine)}" if machine else "",
        resumed_in_words(summary),
    ]
    unfinished = "" if summary.complete else " (not finished)"
    return [f"run {summary.run}{unfinished}", ", ".join(part for part in parts if part)]


def cells_table(summary: RunSummary, width: int = _PIPE_WIDTH) -> Table:
    """One row a cell, in the plan's order. An invalid cell shows no rate; `remarks` has its reason in full.

    Cells whose tasks change have a table of their own: `rescale_table`.

    Beside a rate stands its 95 % interval; the span of the trials, lowest and highest, where they are too few for one,
    in brackets if other cells have one. Below 132 columns that stands under the rate. Below 100 there is no room for
    the records per write and the CPU seconds, which `remarks` then says.
    """
    narrow, whole = width < _ROOMY_WIDTH, width >= _WHOLE_WIDTH
    # Only the CPU seconds may wrap: rich takes room from every column that may, names and verdicts included.
    table = new_table("pipeline")
    for header in ("tasks\n(per\nworker)", "records/s", *(() if narrow else (_spread_header(summary),)), "ratio"):
        table.add_column(header, justify="right", no_wrap=True)
    limited = whole and any(cell.efficiency is not None for cell in summary.cells)
    if limited:
        table.add_column("of\nlimit", justify="right", no_wrap=True)
    if whole:
        table.add_column("records\n/write", justify="right", no_wrap=True)
    table.add_column("peak\nconns", justify="right", no_wrap=True)
    if whole:
        table.add_column("CPU s per\nmillion\nrecords", overflow="fold", min_width=11)
    for header in ("lost", "dupl."):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    cells = _kept(summary)
    of_medians = ratio_to_slowest([_median(cell) for cell in cells])
    in_brackets = any(_interval(cell) for cell in cells)
    for cell, of_median in zip(cells, of_medians, strict=True):
        rate, span = _rate_and_span(cell, in_brackets)
        # Paired by block it is the better one, and that which the answer below gives.
        ratio = cell.ratio.estimate if of_median is not None and cell.ratio and cell.ratio.interval else of_median
        row = [
            _folded(cell.label, narrow),
            f"{cell.tasks} ({cell.tasks_per_worker:g})",
            *([f"{rate}\n{span}"] if narrow and span != rate else [rate] if narrow else [rate, span]),
            f"x{_times(ratio)}" if ratio is not None else NOT_MEASURED,
            *([NOT_MEASURED if cell.efficiency is None else percent(cell.efficiency)] if limited else []),
            *([_per_write(cell)] if whole else []),
            connections(cell),
            *([_cpu(cell)] if whole else []),
            *counted(cell),
            in_short(cell),
        ]
        table.add_row(*(Text(text) for text in row))
    return table


def remarks(summary: RunSummary, width: int = _PIPE_WIDTH) -> list[str]:
    """The lines below the table: in full what is wrong with a cell, or must be known of it."""
    lines = []
    for cell in summary.cells:
        name = cell_name(cell, summary)
        wrong = [] if cell.passed else [cell.verdict]
        wrong += [reason for reason in cell.invalid if reason not in cell.verdict]
        lines += [f"{name}: {each}" for each in _of_each_kind(wrong)]
        if cell.bottleneck is not None:
            lines.append(_limited(name, cell.bottleneck))
        lines += [f"* {name}: {note}" for note in cell.notes]
    if is_load(summary):
        return lines
    if any(cell.records_per_second and not cell.invalid and not _interval(cell) for cell in summary.cells):
        where = "In brackets" if any(map(_interval, summary.cells)) else "Beside a rate"
        lines.append(f"{where} are its lowest and highest trial: too few trials for an interval.")
    if width < _WHOLE_WIDTH:
        lines.append(f"Records per write and CPU seconds are shown from {_WHOLE_WIDTH} columns on.")
    return lines


def answer(summary: RunSummary) -> str | None:
    """The run in one sentence: how much faster the fastest cell is than the slowest.

    It gives their ratio by block with its 95 % interval, and finds no difference if that holds 1. Of too few trials it
    gives the ratio of their medians, and that of the fastest's lowest trial to the slowest's highest, which is what
    remains if chance was on the fastest's side. None if there are fewer than two cells, or one did not pass:
    a rate with records lost, or without a rate to compare, is no answer.
    """
    cells = _kept(summary)
    if len(cells) < 2 or not all(cell.passed for cell in cells):
        return None
    # What is stored of a load that was offered tells nothing of what could be.
    if cells[0].mode == "sustain":
        return None
    ranked = sorted(
        ((rate.median, rate, cell) for cell in cells if (rate := cell.records_per_second) is not None),
        key=lambda each: each[0],
    )
    if len(ranked) < len(cells) or ranked[0][0] <= 0:
        return None
    (_, slow, slowest), (_, fast, fastest) = ranked[0], ranked[-1]
    paired = fastest.ratio
    if paired is not None and paired.to == slowest.cell and paired.interval is not None:
        return _compared(cell_name(fastest, summary), cell_name(slowest, summary), paired.estimate, paired.interval)
    if fastest.mode == "capacity":
        return (
            f"{cell_name(fastest, summary)} sustained {_times(fast.median / slow.median)} times as many records/s as"
            f" {cell_name(slowest, summary)}."
        )
    sentence = (
        f"{cell_name(fastest, summary)} stored {_times(fast.median / slow.median)} times as many records/s as"
        f" {cell_name(slowest, summary)}"
    )
    if fast.low <= slow.high:
        return f"{sentence}, but their trials overlap: this run cannot tell them apart."
    return f"{sentence} (lowest trial against highest: {_times(fast.low / slow.high)})."


def cell_name(cell: CellSummary, summary: RunSummary) -> str:
    """A cell's label, with its tasks and its load where the run has more than one cell of that label."""
    if Counter(each.label for each in summary.cells)[cell.label] == 1:
        return cell.label
    if cell.rescale is not None:
        return f"{cell.label} from {cell.rescale.tasks_before} to {cell.tasks} tasks"
    load = f" at {cell.offered_records_per_second:,.0f} records/s" if cell.mode == "sustain" else ""
    return f"{cell.label} with {cell.tasks} tasks{load}"


def _kept(summary: RunSummary) -> list[CellSummary]:
    """The cells that keep their tasks."""
    return [cell for cell in summary.cells if cell.rescale is None]


def _text(summary: RunSummary, console: Console) -> str:
    with console.capture() as captured:
        for line in [*heading(summary), ""]:
            console.print(Text(line), soft_wrap=True)
        console.print(load_table(summary, console.width) if is_load(summary) else cells_table(summary, console.width))
        console.print()
        if len(_kept(summary)) < len(summary.cells):
            console.print(rescale_table(summary.cells))
            console.print()
        if summary.scaling:
            console.print(scaling_table(summary.scaling))
            console.print()
            for line in map(scaling_line, summary.scaling):
                console.print(Text(line), soft_wrap=True)
            console.print()
        if (stages := stage_table(summary)) is not None:
            console.print(stages)
            console.print()
        said = load_lines(summary) if is_load(summary) else []
        limits = map(limit_line, summary.limits)
        for line in [*filter(None, [answer(summary)]), *said, *remarks(summary, console.width), *limits]:
            console.print(Text(line), soft_wrap=True)
    return captured.get()


def _compared(fastest: str, slowest: str, estimate: float, interval: Interval) -> str:
    low, high = (f"{bound:.2f}" if bound < 1.95 else _times(bound) for bound in (interval.low, interval.high))
    sure = f"between {low} and {high} times, {100 * interval.confidence:.0f} %"
    if interval.low <= 1 <= interval.high:
        return f"No difference found between {fastest} and {slowest} ({sure}, {interval.blocks} blocks)."
    return (
        f"{fastest} stored {_times(estimate)} times as many records/s as {slowest} ({sure}, {interval.blocks} blocks)."
    )


def _interval(cell: CellSummary) -> Interval | None:
    return None if cell.invalid or cell.records_per_second is None else cell.records_per_second.interval


def _spread_header(summary: RunSummary) -> str:
    return "95 %\ninterval" if any(map(_interval, summary.cells)) else "low-high"


def _rate_and_span(cell: CellSummary, in_brackets: bool) -> tuple[str, str]:
    """The rate, and its interval or the span of its trials."""
    rate, interval = None if cell.invalid else cell.records_per_second, _interval(cell)
    if rate is None:
        return NOT_MEASURED, NOT_MEASURED
    if interval is not None:
        return f"{rate.median:,.0f}", f"{interval.low:,.0f}-{interval.high:,.0f}"
    span = f"{rate.low:,.0f}-{rate.high:,.0f}"
    return f"{rate.median:,.0f}", f"({span})" if in_brackets else span


def _per_write(cell: CellSummary) -> str:
    count = cell.records_per_write
    return NOT_MEASURED if count is None else f"{count:,.0f}" if count >= 99.95 else f"{count:.1f}"


def _folded(name: str, narrow: bool) -> str:
    """A name on as many lines as it needs: in a narrow table the sink has one of its own."""
    parts = name.replace("/", "/\n", 1).split("\n") if narrow else [name]
    return "\n".join(line for part in parts for line in textwrap.wrap(part, _LONGEST_NAME) or [part])


def _median(cell: CellSummary) -> float | None:
    return None if cell.invalid or cell.records_per_second is None else cell.records_per_second.median


def _cpu(cell: CellSummary) -> str:
    """The services, the dearest first, since that is where to look; without those that had nothing to do."""
    known = [(seconds, name) for name, seconds in cell.cpu_seconds_per_million.items() if seconds is not None]
    busy = sorted((-seconds, name) for seconds, name in known if seconds >= 0.05)
    return " ".join(f"{_SHORT_NAMES.get(name, name)}:{_seconds(-less)}" for less, name in busy) or NOT_MEASURED


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 9.5 else f"{seconds:.1f}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 99.95 else f"{ratio:.1f}"


def _of_each_kind(reasons: Iterable[str]) -> list[str]:
    """Of those that differ only in their numbers the first, with how many more there are."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kinds.setdefault(re.sub(r"\d[\d.,]*", "#", reason), []).append(reason)
    return [f"{first} (and {len(more)} more like it)" if more else first for first, *more in kinds.values()]


def _limited(name: str, found: Bottleneck) -> str:
    if found.cause == NOT_IDENTIFIED:
        return f"{name}: what limits it is not identified ({found.evidence})"
    return f"{name}: limited by {found.component}, {found.cause}: {found.evidence}"
