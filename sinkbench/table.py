"""A run as a table to read: what each cell reached, what it cost, and whether it may be believed.

All text is plain ASCII apart from names that users chose, so that it also reads well in a pipe and in a log.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sinkbench.results import CellSummary, RunSummary
from sinkbench.stats import ratio_to_slowest

__all__ = ["answer", "cells_table", "heading", "remarks", "render", "show"]

_PIPE_WIDTH = 140
_NOT_MEASURED = "-"
_SHORT_NAMES = {"elasticsearch": "es", "postgres": "pg", "pgbouncer": "pgb"}


def show(summary: RunSummary, file: TextIO | None = None) -> None:
    """Prints a run: the heading, the table, the answer and the remarks.

    A terminal gets its own width and bold names; anything else 140 columns and no colour.
    """
    out = sys.stdout if file is None else file
    if not out.isatty():
        # A name in letters that the pipe's encoding lacks must not end the command that measured it.
        encoding = getattr(out, "encoding", None) or "utf-8"
        out.write(render(summary).encode(encoding, "replace").decode(encoding))
        return
    _print(summary, Console(file=out))


def render(summary: RunSummary, width: int = _PIPE_WIDTH) -> str:
    """What `show` prints into a pipe, as text of at most `width` columns."""
    console = Console(width=width, color_system=None, force_terminal=False, legacy_windows=False, file=_Nowhere())
    with console.capture() as captured:
        _print(summary, console)
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


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
    ]
    unfinished = "" if summary.complete else " (not finished)"
    return [f"run {summary.run}{unfinished}", ", ".join(part for part in parts if part)]


def cells_table(summary: RunSummary) -> Table:
    """One row a cell, in the plan's order. An invalid cell shows no rate; `remarks` has its reason in full."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("pipeline", overflow="fold")
    for header in ("tasks (per\nworker)", "records/s", "low-high", "ratio", "records\n/write", "peak\nconns"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("CPU seconds per\nmillion records", overflow="fold")
    table.add_column("lost", justify="right", no_wrap=True)
    table.add_column("dupli-\ncated", justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    ratios = ratio_to_slowest([_median(cell) for cell in summary.cells])
    for cell, ratio in zip(summary.cells, ratios, strict=True):
        table.add_row(*(Text(text) for text in _row(cell, ratio)))
    return table


def remarks(summary: RunSummary) -> list[str]:
    """The lines below the table: in full what is wrong with a cell, or must be known of it."""
    lines = []
    for cell in summary.cells:
        name = _name(cell, summary)
        if not cell.passed:
            lines.append(f"{name}: {cell.verdict}")
        lines += [f"{name}: {reason}" for reason in cell.invalid if reason not in cell.verdict]
        lines += [f"{name}: {note}" for note in cell.notes]
    return lines


def answer(summary: RunSummary) -> str | None:
    """The run in one sentence: how much faster the fastest cell is than the slowest.

    It gives the ratio of their medians, and that of the fastest's lowest trial to the slowest's highest, which is
    what remains if chance was on the fastest's side. None if there are fewer than two cells, or one did not pass:
    a rate with records lost, or without a rate to compare, is no answer.
    """
    if len(summary.cells) < 2 or not all(cell.passed for cell in summary.cells):
        return None
    ranked = sorted(
        ((rate.median, rate, cell) for cell in summary.cells if (rate := cell.records_per_second) is not None),
        key=lambda each: each[0],
    )
    if len(ranked) < len(summary.cells) or ranked[0][0] <= 0:
        return None
    (_, slow, slowest), (_, fast, fastest) = ranked[0], ranked[-1]
    sentence = (
        f"{_name(fastest, summary)} stored {_times(fast.median / slow.median)} times as many records/s as"
        f" {_name(slowest, summary)}"
    )
    if fast.low <= slow.high:
        return f"{sentence}, but their trials overlap: this run cannot tell them apart."
    return f"{sentence} (lowest trial against highest: {_times(fast.low / slow.high)})."


def _print(summary: RunSummary, console: Console) -> None:
    def line(text: str) -> None:
        console.print(Text(text))

    for text in heading(summary):
        line(text)
    line("")
    console.print(cells_table(summary))
    for text in [*filter(None, [answer(summary)]), *remarks(summary)]:
        line(text)


def _row(cell: CellSummary, ratio: float | None) -> list[str]:
    rate = None if cell.invalid else cell.records_per_second
    audit = cell.audit
    return [
        cell.label,
        f"{cell.tasks} ({cell.tasks_per_worker:g})",
        f"{rate.median:,.0f}" if rate else _NOT_MEASURED,
        f"{rate.low:,.0f}-{rate.high:,.0f}" if rate else _NOT_MEASURED,
        f"x{_times(ratio)}" if ratio is not None else _NOT_MEASURED,
        f"{cell.records_per_write:,.4g}" if cell.records_per_write is not None else _NOT_MEASURED,
        _connections(cell),
        _cpu(cell),
        f"{audit.lost:,}" if audit else _NOT_MEASURED,
        f"{audit.duplicates:,}" if audit else _NOT_MEASURED,
        _in_short(cell),
    ]


def _median(cell: CellSummary) -> float | None:
    return None if cell.invalid or cell.records_per_second is None else cell.records_per_second.median


def _connections(cell: CellSummary) -> str:
    """`clients/server` where both are known and differ, as behind a pool; else the one number there is."""
    clients, server = cell.connections.clients_peak, cell.connections.server_peak
    if clients is not None and server is not None and clients != server:
        return f"{clients}/{server}"
    known = clients if clients is not None else server
    return _NOT_MEASURED if known is None else f"{known}"


def _cpu(cell: CellSummary) -> str:
    """The services with the dearest first, since that is where to look."""
    known = [(seconds, name) for name, seconds in cell.cpu_seconds_per_million.items() if seconds is not None]
    ranked = sorted(known, key=lambda each: (-each[0], each[1]))
    # A no-break space keeps a service and its number on one line where the column is narrow.
    return ", ".join(f"{_SHORT_NAMES.get(name, name)}\N{NO-BREAK SPACE}{_seconds(s)}" for s, name in ranked) or "-"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 9.5 else f"{seconds:.1f}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 99.95 else f"{ratio:.1f}"


def _in_short(cell: CellSummary) -> str:
    """The verdict without its causes, which `remarks` gives in full."""
    short = "; ".join(part.split(": ")[0] for part in cell.verdict.split("; "))
    return f"{short} *" if cell.notes else short


def _name(cell: CellSummary, summary: RunSummary) -> str:
    """A cell's label, with its tasks where the run has more than one cell of that label."""
    shared = Counter(each.label for each in summary.cells)[cell.label] > 1
    return f"{cell.label} with {cell.tasks} tasks" if shared else cell.label


class _Nowhere(TextIO):
    """Where a console writes whose output is captured."""
