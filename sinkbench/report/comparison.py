"""A comparison of two runs as one HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from sinkbench.metrics import COLUMNS
from sinkbench.metrics.format import formatted, how_many
from sinkbench.report.html import html_of
from sinkbench.report.parts import Chart, Figure, Lines, Opening, PageSection, Part, Table
from sinkbench.report.plots import Dot, Mark, dots
from sinkbench.runs.compare import Compared, Comparison, Verdict
from sinkbench.runs.gate import Gate
from sinkbench.tables.comparison import HEADERS, NUMBERS, SAME, costs_shown, heading, more_rows, remarks, row

_MOST_NAMED = 6
_COMPARED = {**COLUMNS, "verdict": "Faster or slower"}
_CAPTIONS = {
    "A CPU s per million": "CPU seconds of all services for a million records",
    "A peak MB": "The most memory that the services of a cell's path held, in 10^6 bytes",
    "A bytes/record": "Bytes of a stored record on the sink's disk",
}


def as_html(comparison: Comparison, gate: Gate | None = None) -> str:
    """The page; `gate` is the outcome of --fail-if-slower and --fail-if-cpu-higher, if given."""
    chart = ratios(comparison.cells)
    sections = [
        PageSection("cells", "Cells", [_cells(comparison), Lines(remarks(comparison))]),
        PageSection("costs", "CPU time, memory and disk", _more(comparison)),
        PageSection("ratios", "How many times as fast", [] if chart is None else [chart]),
        PageSection("differences", "What else differs", [_differences(comparison)]),
    ]
    return html_of(
        title=f"Run {comparison.b.summary.run} compared with run {comparison.a.summary.run}",
        heading=heading(comparison),
        opening=Opening(
            lead=[lead(comparison.cells), *cost_lead(comparison)],
            grounds=grounds(comparison.cells),
            outcome="" if gate is None else _outcome(gate),
        ),
        sections=sections,
    )


def lead(cells: Sequence[Compared]) -> str:
    """The number of cells with each verdict, in one sentence."""
    counts = Counter(cell.verdict for cell in cells)
    found = [f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict]]
    if not found:
        return "There is no cell to compare."
    return f"Run B against run A, {how_many(len(cells), 'cell')}: {', '.join(found)}."


def cost_lead(comparison: Comparison) -> list[str]:
    """How many cells use less or more CPU time, in one sentence; empty if not measured."""
    counts = Counter(cell.verdict for cell in costs_shown(comparison))
    found = [f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict]]
    return [f"By CPU time for a million records: {', '.join(found)}."] if found else []


def grounds(cells: Sequence[Compared]) -> list[str]:
    """The cells that changed most, and those that no longer pass."""
    changed = sorted((cell for cell in cells if cell.verdict in ("faster", "slower")), key=_size, reverse=True)
    lines = [f"{cell.name}: {cell.verdict}, {_ratio(cell)}." for cell in changed[:_MOST_NAMED]]
    if len(changed) > _MOST_NAMED:
        lines.append(f"And {len(changed) - _MOST_NAMED} more, which changed less.")
    if broken := [cell.name for cell in cells if cell.broken]:
        lines.append(f"Passed in run A and not in run B: {', '.join(broken)}.")
    return lines


def ratios(cells: Sequence[Compared]) -> Figure | None:
    """A row per cell with a ratio; None if no cell has one."""
    known = [(cell, cell.ratio) for cell in cells if cell.ratio is not None and cell.ratio > 0]
    if not known:
        return None
    spans = [(cell.interval.low, cell.interval.high) if cell.interval else (None, None) for cell, _ in known]
    found = list(zip(known, spans, strict=True))
    dotted = [(cell.name, [Dot(cell.verdict, ratio, *span)]) for (cell, ratio), span in found]
    rows = [
        (cell.name, *(formatted(value, ".3f") for value in (ratio, *span)), cell.verdict)
        for (cell, ratio), span in found
    ]
    told = "; ".join(f"{cell.name} {ratio:.3f}, {cell.verdict}" for cell, ratio in known)
    svg = dots("ratios", dotted, "run B / run A", Mark(1.0, "as fast as run A"), ratios=True)
    caption = "Ratios of the cells, with their 95 % intervals"
    return Figure(
        "The rate of run B divided by that of run A: right of 1 run B is faster. A bar is the 95 % interval of the "
        "ratio; where there are too few trials there is none. Only the verdict claims a difference.",
        [Chart(f"Ratio of run B to run A by cell: {told}", svg)],
        Table(("cell", "B/A", "from", "to", "verdict"), rows, caption, numbers=(1, 2, 3)),
        meaning="Change",
    )


def _cells(comparison: Comparison) -> Table:
    rows = [row(cell) for cell in comparison.cells]
    return Table(HEADERS, rows, "All cells, in the order of run A", NUMBERS, meanings=_COMPARED)


def _more(comparison: Comparison) -> list[Part]:
    return [
        Table(headers, rows, f"{_CAPTIONS[headers[1]]}, in the order of run A", NUMBERS, meanings=_COMPARED)
        for headers, rows in more_rows(comparison)
    ]


def _differences(comparison: Comparison) -> Part:
    found = comparison.differences
    if not found:
        return Lines([SAME])
    rows = [(each.what, each.a, each.b) for each in found]
    return Table(("differs", "A", "B"), rows, "Environment, plan and connectors, where they differ")


def _size(cell: Compared) -> float:
    ratio = cell.ratio or 1.0
    return max(ratio, 1 / ratio)


def _ratio(cell: Compared) -> str:
    said = f"{cell.ratio:.3f} times as fast as in run A" if cell.ratio is not None else "no ratio"
    if cell.interval is None:
        return said
    return f"{said}, 95 % interval {cell.interval.low:.3f} to {cell.interval.high:.3f}"


def _outcome(gate: Gate) -> str:
    found = [*gate.failures, *gate.inconclusive] or ["no cell is slower, or takes more CPU time, than it may"]
    return "; ".join([*found, *gate.remarks])
