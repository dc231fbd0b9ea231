"""Several runs: listed, or compared as text and Markdown, two cell by cell with what else differs, more in columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from rich.table import Table
from rich.text import Text

from sinkbench.analysis.words import NOT_MEASURED, formatted, tenths
from sinkbench.metrics import WHERE
from sinkbench.metrics.names import in_short
from sinkbench.metrics.rate import rate_and_spread
from sinkbench.results import RunSummary
from sinkbench.runs.compare import Compared, Comparison
from sinkbench.runs.listing import RunRow
from sinkbench.runs.reader import StoredRun
from sinkbench.tables.cells import machine_in_words, resumed_in_words
from sinkbench.tables.text import cut, escaped, markdown_table, new_table, plain_text, words

_LONGEST_VALUE = 44
SAME = "Environment, plan and connectors are the same."


def headers(figure: str) -> tuple[str, ...]:
    return ("cell", f"A {figure}", f"B {figure}", "B/A", "95 % interval", "verdict")


Part = str | tuple[Sequence[str], Sequence[Sequence[str]]]
"""A line, or the heads and the rows of a table."""


def compared(comparison: Comparison) -> list[list[Part]]:
    """A comparison of two runs in blocks: the runs, what differs, a table for each figure, and remarks."""
    found = [(each.what, each.a, each.b) for each in comparison.differences]
    blocks: list[list[Part]] = [
        [f"{side}: {_run(run.summary)}" for side, run in (("A", comparison.a), ("B", comparison.b))],
        [(("differs", "A", "B"), found) if found else SAME],
    ]
    for figure, cells in comparison.by.items():
        blocks.append([(headers(figure), [_row(cell) for cell in cells])])
    return [*blocks, [*remarks(comparison)]]


def side_by_side(runs: Sequence[StoredRun]) -> list[list[Part]]:
    """The rates of any number of runs, a column each, without verdicts."""
    names = [chr(ord("A") + place) if place < 26 else f"{place + 1}" for place in range(len(runs))]
    cells = [{cell.cell: cell for cell in run.summary.cells} for run in runs]
    rows = []
    for key in dict.fromkeys(key for of_run in cells for key in of_run):
        texts = []
        for of_run in cells:
            cell = of_run.get(key)
            rate, spread = rate_and_spread(cell, in_brackets=True) if cell else (NOT_MEASURED, NOT_MEASURED)
            state = in_short(cell).replace("\n", ", ").removesuffix(" *") if cell and not cell.passed else ""
            texts.append(state or (rate if spread == NOT_MEASURED else f"{rate} {spread}"))
        rows.append((key, *texts))
    return [
        [f"{name}: {_run(run.summary)}" for name, run in zip(names, runs, strict=True)],
        [(("records/s", *names), rows)],
        ["For verdicts compare two of them: sinkbench compare RUN RUN"],
    ]


def as_text(blocks: Iterable[Sequence[Part]]) -> str:
    """For a terminal or a pipe; long names of cells make it wide."""
    parts: list[str | Table] = []
    for block in blocks:
        parts += [part if isinstance(part, str) else _table(*part) for part in block]
        parts += [""] if block else []
    return plain_text([*parts, WHERE])


def as_markdown(blocks: Iterable[Sequence[Part]]) -> str:
    texts = [
        [
            line
            for part in block
            for line in (
                [f"- {escaped(part)}"] if isinstance(part, str) else markdown_table(*part, range(1, len(part[0]) - 1))
            )
        ]
        for block in blocks
    ]
    return "\n\n".join("\n".join(lines) for lines in texts if lines) + "\n"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    if heads[0] == "differs":
        table = new_table(heads[0], *map(words, heads[1:]))
        rows = [[cut(" ".join(text.split()), _LONGEST_VALUE) for text in row] for row in rows]
    else:
        table = new_table(heads[0], *heads[1:-1], words(heads[-1]))
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _run(summary: RunSummary) -> str:
    taken = sum(cell.trials for cell in summary.cells)
    unfinished = "" if summary.complete else ", not finished"
    resumed = f", {resumed_in_words(summary)}" if summary.resumed else ""
    return f"run {summary.run} (plan {summary.plan.name}, {taken} trials{unfinished}{resumed})"


def _row(cell: Compared) -> tuple[str, ...]:
    interval = cell.interval
    shown = partial(tenths, whole_from=99.95)
    star = " *" if cell.why else ""
    smallest = "" if cell.smallest_percent is None else f" (one of {cell.smallest_percent:.1f} % would show)"
    return (
        cell.name,
        *map(shown, (cell.a, cell.b)),
        formatted(cell.ratio, ".3f"),
        NOT_MEASURED if interval is None else f"{interval.low:.3f}-{interval.high:.3f}",
        f"{cell.verdict}{smallest}{star}",
    )


def remarks(comparison: Comparison) -> list[str]:
    """Why a cell has no verdict, once each, and the scope of the verdicts."""
    whys = dict.fromkeys((cell.name, cell.why) for cells in comparison.by.values() for cell in cells if cell.why)
    lines = [f"* {name}: {why}" for name, why in whys]
    tested = sum(cell.interval is not None for cell in comparison.cells)
    if tested:
        of = f" of {tested} cells that were tested" if tested > 1 else ""
        lines.append(f"Each verdict holds at 5 % for its whole table{of}; each interval is of its own cell alone.")
    return lines + [
        f"run {side}: {cell.cell}: not audited in {cell.not_audited} of {cell.trials} trials: losses there are unknown"
        for side, run in (("A", comparison.a), ("B", comparison.b))
        for cell in run.summary.cells
        if cell.not_audited
    ]


def runs_table(rows: Sequence[RunRow]) -> str:
    table = new_table(
        "run",
        *map(words, ("started (UTC)", "plan", "machine", "stack")),
        "trials",
        *map(words, ("complete", "passed", "")),
    )
    for row in rows:
        table.add_row(*map(Text, (row.run, row.started or NOT_MEASURED, *_told(row))))
    return plain_text([table])


def _told(row: RunRow) -> tuple[str, ...]:
    summary = row.summary
    if summary is None:
        return *([NOT_MEASURED] * 6), " ".join(row.damage.split())
    return (
        summary.plan.name,
        machine_in_words(summary.environment) or NOT_MEASURED,
        str(summary.environment.get("stack") or NOT_MEASURED),
        f"{sum(cell.trials for cell in summary.cells)}",
        _yes(summary.complete),
        _yes(summary.passed),
        resumed_in_words(summary),
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"
