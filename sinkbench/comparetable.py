"""A comparison of two runs to read, as text or as Markdown: first what differs besides the figures, then the cells."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sinkbench.columns import NOT_MEASURED, new_table, resumed_in_words
from sinkbench.compare import Compared, Comparison
from sinkbench.markdown import escaped, markdown_table
from sinkbench.results import RunSummary

__all__ = ["HEADERS", "NUMBERS", "SAME", "as_markdown", "as_text", "heading", "remarks", "row"]

_WIDTH = 140
_LONGEST_VALUE = 44
HEADERS = ("cell", "A records/s", "B records/s", "B/A", "95 % interval", "verdict")
NUMBERS = (1, 2, 3, 4)
SAME = "Environment, plan and connectors are the same."
"""Where there is no difference to list."""


def as_text(comparison: Comparison) -> str:
    """The comparison for a terminal or a pipe, of at most 140 columns where names and values are not longer."""
    console = Console(width=_WIDTH, color_system=None, force_terminal=False, file=io.StringIO())
    found = [(each.what, _cut(each.a), _cut(each.b)) for each in comparison.differences]
    with console.capture() as captured:
        for line in heading(comparison):
            console.print(Text(line), soft_wrap=True)
        console.print()
        if found:
            _print(console, ("differs", "A", "B"), found)
        else:
            console.print(SAME)
        console.print()
        _print(console, HEADERS, [row(cell) for cell in comparison.cells])
        console.print()
        for line in remarks(comparison):
            console.print(Text(line), soft_wrap=True)
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


def as_markdown(comparison: Comparison) -> str:
    """The same as Markdown, to paste into a pull request."""
    found = [(each.what, each.a, each.b) for each in comparison.differences]
    cells = markdown_table(HEADERS, [row(cell) for cell in comparison.cells], NUMBERS)
    blocks = [
        [f"- {escaped(line)}" for line in heading(comparison)],
        markdown_table(("differs", "A", "B"), found) if found else [SAME],
        cells,
        [f"- {escaped(line)}" for line in remarks(comparison)],
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def heading(comparison: Comparison) -> list[str]:
    """Which runs A and B are, a line each."""
    return [f"{side}: {_run(run.summary)}" for side, run in (("A", comparison.a), ("B", comparison.b))]


def _run(summary: RunSummary) -> str:
    taken = sum(cell.trials for cell in summary.cells)
    unfinished = "" if summary.complete else ", not finished"
    resumed = f", {resumed_in_words(summary)}" if summary.resumed else ""
    return f"run {summary.run} (plan {summary.plan.name}, {taken} trials{unfinished}{resumed})"


def _print(console: Console, headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    table = new_table(headers[0])
    numeric = headers == HEADERS
    for place, header in enumerate(headers[1:], start=1):
        table.add_column(header, justify="right" if numeric and place in NUMBERS else "left", no_wrap=True)
    for each in rows:
        table.add_row(*map(Text, each))
    # Names of cells are the user's: where they are long the table is wider than a line instead of cut.
    console.print(table, width=max(_WIDTH, console.measure(table).maximum), crop=False)


def row(cell: Compared) -> tuple[str, ...]:
    """The texts of one cell below the `HEADERS`."""
    interval = cell.interval
    return (
        cell.name,
        *(NOT_MEASURED if rate is None else f"{rate:,.0f}" for rate in (cell.a_per_second, cell.b_per_second)),
        NOT_MEASURED if cell.ratio is None else f"{cell.ratio:.3f}",
        NOT_MEASURED if interval is None else f"{interval.low:.3f}-{interval.high:.3f}",
        _verdict(cell),
    )


def _verdict(cell: Compared) -> str:
    star = " *" if cell.why else ""
    if cell.smallest_percent is None:
        return f"{cell.verdict}{star}"
    return f"{cell.verdict} (one of {cell.smallest_percent:.1f} % would show){star}"


def remarks(comparison: Comparison) -> list[str]:
    """What must be known of the table: why a cell has no verdict, and what the verdicts hold for."""
    lines = [f"* {cell.name}: {cell.why}" for cell in comparison.cells if cell.why]
    tested = sum(cell.interval is not None for cell in comparison.cells)
    if tested:
        lines.append(
            "faster, slower: at 5 % for the whole table"
            + (f" of {tested} cells that were tested" if tested > 1 else "")
            + "; each interval is of its own cell alone."
        )
    return lines


def _cut(value: str) -> str:
    text = " ".join(value.split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
