"""A comparison of two runs as text and as Markdown: other differences first, then the cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from rich.table import Table
from rich.text import Text

from sinkbench.metrics import WHERE
from sinkbench.metrics.format import NOT_MEASURED, formatted, megabytes, tenths, whole
from sinkbench.results import RunSummary
from sinkbench.runs.compare import Compared, Comparison
from sinkbench.tables.cells import resumed_in_words
from sinkbench.tables.markdown import escaped, markdown_table
from sinkbench.tables.text import new_table, plain_text, words

_LONGEST_VALUE = 44
HEADERS = ("cell", "A records/s", "B records/s", "B/A", "95 % interval", "verdict")
COST_HEADERS = ("cell", "A CPU s per million", "B CPU s per million", "B/A", "95 % interval", "verdict")
MEMORY_HEADERS = ("cell", "A peak MB", "B peak MB", "B/A", "95 % interval", "verdict")
DISK_HEADERS = ("cell", "A bytes/record", "B bytes/record", "B/A", "95 % interval", "verdict")
NUMBERS = (1, 2, 3, 4)
SAME = "Environment, plan and connectors are the same."


def as_text(comparison: Comparison) -> str:
    """The comparison for a terminal or a pipe, about 140 columns wide; long names of cells make it wider."""
    return plain_text(_parts(comparison))


def _parts(comparison: Comparison) -> Iterator[str | Table]:
    found = [(each.what, _cut(each.a), _cut(each.b)) for each in comparison.differences]
    yield from (*heading(comparison), "")
    yield _filled(new_table("differs", words("A"), words("B")), found) if found else SAME
    yield ""
    yield from (_cells(HEADERS, map(row, comparison.cells)), "")
    for headers, rows in more_rows(comparison):
        yield from (_cells(headers, rows), "")
    yield from (*remarks(comparison), WHERE)


def _cells(headers: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Table:
    return _filled(new_table(headers[0], *headers[1:-1], words(headers[-1])), rows)


def _filled(table: Table, rows: Iterable[tuple[str, ...]]) -> Table:
    for each in rows:
        table.add_row(*map(Text, each))
    return table


def as_markdown(comparison: Comparison) -> str:
    found = [(each.what, each.a, each.b) for each in comparison.differences]
    blocks = [
        [f"- {escaped(line)}" for line in heading(comparison)],
        markdown_table(("differs", "A", "B"), found) if found else [SAME],
        markdown_table(HEADERS, [row(cell) for cell in comparison.cells], NUMBERS),
        *(markdown_table(headers, rows, NUMBERS) for headers, rows in more_rows(comparison)),
        [f"- {escaped(line)}" for line in remarks(comparison)],
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def heading(comparison: Comparison) -> list[str]:
    return [f"{side}: {_run(run.summary)}" for side, run in (("A", comparison.a), ("B", comparison.b))]


def _run(summary: RunSummary) -> str:
    taken = sum(cell.trials for cell in summary.cells)
    unfinished = "" if summary.complete else ", not finished"
    resumed = f", {resumed_in_words(summary)}" if summary.resumed else ""
    return f"run {summary.run} (plan {summary.plan.name}, {taken} trials{unfinished}{resumed})"


def row(cell: Compared) -> tuple[str, ...]:
    return _row(cell, whole)


def cost_row(cell: Compared) -> tuple[str, ...]:
    return _row(cell, lambda seconds: tenths(seconds, 99.95))


def more_rows(comparison: Comparison) -> list[tuple[Sequence[str], list[tuple[str, ...]]]]:
    """Headers and rows of the tables after that of rates: CPU time, memory and disk, if measured."""
    found = [
        (COST_HEADERS, [cost_row(cell) for cell in costs_shown(comparison)]),
        (MEMORY_HEADERS, [_row(cell, megabytes) for cell in _known(comparison.memory)]),
        (DISK_HEADERS, [_row(cell, whole) for cell in _known(comparison.disk)]),
    ]
    return [(headers, rows) for headers, rows in found if rows]


def costs_shown(comparison: Comparison) -> list[Compared]:
    """The cells whose CPU times are compared; none if no trial of either run has them."""
    return _known(comparison.costs)


def _known(cells: list[Compared]) -> list[Compared]:
    return cells if any(cell.a is not None or cell.b is not None for cell in cells) else []


def _row(cell: Compared, shown: Callable[[float | None], str]) -> tuple[str, ...]:
    interval = cell.interval
    return (
        cell.name,
        *map(shown, (cell.a, cell.b)),
        formatted(cell.ratio, ".3f"),
        NOT_MEASURED if interval is None else f"{interval.low:.3f}-{interval.high:.3f}",
        _verdict(cell),
    )


def _verdict(cell: Compared) -> str:
    star = " *" if cell.why else ""
    if cell.smallest_percent is None:
        return f"{cell.verdict}{star}"
    return f"{cell.verdict} (one of {cell.smallest_percent:.1f} % would show){star}"


def remarks(comparison: Comparison) -> list[str]:
    """The lines below the table: why a cell has no verdict, and the scope of the verdicts."""
    # What cannot be compared at all is listed once.
    others = (comparison.costs, comparison.memory, comparison.disk)
    shown = [*comparison.cells, *chain.from_iterable(map(_known, others))]
    whys = dict.fromkeys((cell.name, cell.why) for cell in shown if cell.why)
    lines = [f"* {name}: {why}" for name, why in whys]
    tested = sum(cell.interval is not None for cell in comparison.cells)
    if tested:
        lines.append(
            "each verdict holds at 5 % for its whole table"
            + (f" of {tested} cells that were tested" if tested > 1 else "")
            + "; each interval is of its own cell alone."
        )
    return [*lines, *_unaudited("A", comparison.a.summary), *_unaudited("B", comparison.b.summary)]


def _unaudited(side: str, summary: RunSummary) -> list[str]:
    """The cells of a run with trials that were not audited, a line each."""
    return [
        f"run {side}: {cell.cell}: not audited in {cell.not_audited} of {cell.trials} trials, so what is lost there is"
        " not known"
        for cell in summary.cells
        if cell.not_audited
    ]


def _cut(value: str) -> str:
    text = " ".join(value.split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
