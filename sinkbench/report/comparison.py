"""A comparison of two runs as one HTML page: how many times as fast each cell is, and what else differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from sinkbench.columns import NOT_MEASURED
from sinkbench.compare import Compared, Comparison, Gate, Verdict
from sinkbench.comparetable import HEADERS, NUMBERS, SAME, heading, remarks, row
from sinkbench.report.html import html_of
from sinkbench.report.parts import Chart, Figure, Lines, Part, Section, Table
from sinkbench.report.plots import Dot, Mark, dots
from sinkbench.secrets import redacted

__all__ = ["as_html", "grounds", "lead", "ratios"]

_MOST_NAMED = 6


def as_html(comparison: Comparison, gate: Gate | None = None) -> str:
    """The page; `gate` is what --fail-if-slower came to, if that was asked."""
    chart = ratios(comparison.cells)
    sections = [
        Section("cells", "Cells", [_cells(comparison), Lines(remarks(comparison))]),
        Section("ratios", "How many times as fast", [] if chart is None else [chart]),
        Section("differences", "What else differs", [_differences(comparison)]),
    ]
    return redacted(
        html_of(
            title=f"Run {comparison.b.summary.run} compared with run {comparison.a.summary.run}",
            heading=heading(comparison),
            lead=lead(comparison.cells),
            grounds=grounds(comparison.cells),
            outcome="" if gate is None else _outcome(gate),
            sections=sections,
        )
    )


def lead(cells: Sequence[Compared]) -> str:
    """How many cells have which verdict, in one sentence."""
    counts = Counter(cell.verdict for cell in cells)
    found = [f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict]]
    if not found:
        return "There is no cell to compare."
    return f"Run B against run A, {len(cells)} {'cell' if len(cells) == 1 else 'cells'}: {', '.join(found)}."


def grounds(cells: Sequence[Compared]) -> list[str]:
    """The cells that changed most, with how sure that is, and those that no longer pass."""
    changed = sorted((cell for cell in cells if cell.verdict in ("faster", "slower")), key=_size, reverse=True)
    lines = [f"{cell.name}: {cell.verdict}, {_ratio(cell)}." for cell in changed[:_MOST_NAMED]]
    if len(changed) > _MOST_NAMED:
        lines.append(f"And {len(changed) - _MOST_NAMED} more, which changed less.")
    broken = [cell.name for cell in cells if cell.broken]
    return [*lines, *([f"Passed in run A and not in run B: {', '.join(broken)}."] if broken else [])]


def ratios(cells: Sequence[Compared]) -> Figure | None:
    """A row for each cell with a ratio, and its interval; None if no cell has one."""
    known = [(cell, cell.ratio) for cell in cells if cell.ratio is not None and cell.ratio > 0]
    if not known:
        return None
    rows = [
        (cell.name, [Dot(cell.verdict, ratio, *((cell.interval.low, cell.interval.high) if cell.interval else ()))])
        for cell, ratio in known
    ]
    return Figure(
        caption=(
            "The rate of run B divided by that of run A: right of 1 run B is faster. A bar is the 95 % interval of the "
            "ratio; where there are too few trials there is none. Only the verdict claims a difference."
        ),
        charts=[
            Chart(
                label="Ratio of run B to run A by cell: "
                + "; ".join(f"{cell.name} {ratio:.3f}, {cell.verdict}" for cell, ratio in known),
                svg=dots("ratios", rows, "run B / run A", Mark(1.0, "as fast as run A"), ratios=True),
            )
        ],
        table=Table(
            headers=("cell", "B/A", "from", "to", "verdict"),
            rows=[
                (
                    cell.name,
                    f"{ratio:.3f}",
                    *(
                        (NOT_MEASURED, NOT_MEASURED)
                        if cell.interval is None
                        else (f"{cell.interval.low:.3f}", f"{cell.interval.high:.3f}")
                    ),
                    cell.verdict,
                )
                for cell, ratio in known
            ],
            caption="Ratios of the cells, with their 95 % intervals",
            numbers=frozenset({1, 2, 3}),
        ),
    )


def _cells(comparison: Comparison) -> Table:
    return Table(
        HEADERS, [row(cell) for cell in comparison.cells], "All cells, in the order of run A", frozenset(NUMBERS)
    )


def _differences(comparison: Comparison) -> Part:
    found = comparison.differences
    if not found:
        return Lines([SAME])
    rows = [(each.what, each.a, each.b) for each in found]
    return Table(("differs", "A", "B"), rows, "Environment, plan and connectors, where they differ")


def _size(cell: Compared) -> float:
    """How large a change is, the same of twice and of half as fast."""
    ratio = cell.ratio or 1.0
    return max(ratio, 1 / ratio)


def _ratio(cell: Compared) -> str:
    said = f"{cell.ratio:.3f} times as fast as in run A" if cell.ratio is not None else "no ratio"
    if cell.interval is None:
        return said
    return f"{said}, 95 % interval {cell.interval.low:.3f} to {cell.interval.high:.3f}"


def _outcome(gate: Gate) -> str:
    return "; ".join([*(gate.failures or ["no cell is slower than it may be"]), *gate.remarks])
