"""Several runs: listed, or compared as text and Markdown, two cell by cell with what else differs, more in columns."""

from collections.abc import Iterable, Sequence
from functools import partial

from rich.table import Table

from sinkbench.analysis.words import NOT_MEASURED, formatted, tenths
from sinkbench.metrics import WHERE
from sinkbench.metrics.names import in_short
from sinkbench.metrics.rate import rate_and_spread
from sinkbench.results import RunSummary
from sinkbench.runs.arms import compare_arms
from sinkbench.runs.compare import RATE, Compared, Comparison
from sinkbench.runs.reader import RunRow, StoredRun, started_at
from sinkbench.tables.cells import machine_in_words, resumed_in_words
from sinkbench.tables.text import cut, new_table, plain_text, words

_LONGEST_VALUE = 44
SAME = "Environment, plan and connectors are the same."


def headers(figure: str) -> tuple[str, ...]:
    return ("cell", f"A {figure}", f"B {figure}", "B/A", "95 % interval", "verdict")


Part = str | Table


def compared(comparison: Comparison) -> list[list[Part]]:
    """A comparison of two runs in blocks: the runs, what differs, a table for each figure, and remarks."""
    found = [
        (each.what, *(cut(" ".join(text.split()), _LONGEST_VALUE) for text in (each.a, each.b)))
        for each in comparison.differences
    ]
    blocks: list[list[Part]] = [
        [f"{side}: {_run(run.summary)}" for side, run in (("A", comparison.a), ("B", comparison.b))],
        [new_table("differs", words("A"), words("B"), rows=found) if found else SAME],
    ]
    for figure, cells in comparison.by.items():
        first, *others, last = headers(figure)
        blocks.append([new_table(first, *others, words(last), rows=map(_row, cells))])
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
        [new_table("records/s", *names[:-1], words(names[-1]), rows=rows)],
        ["For verdicts compare two of them: sinkbench compare RUN RUN"],
    ]


def arm_lines(kept: StoredRun) -> list[str]:
    """The verdict on each pipeline of each arm but the first, by the figure that its mode measures."""
    lines = []
    for found in compare_arms(kept):
        a, b = (run.summary.run.rpartition(" ")[2] for run in (found.a, found.b))
        figure = next((name for name in (RATE, "p99 ms") if any(cell.ratio for cell in found.by.get(name, ()))), RATE)
        for cell in found.by[figure]:
            ratio = "" if cell.ratio is None else f"{cell.ratio:.2f} times the {figure}"
            ends = "" if cell.interval is None else f" (95 % CI {cell.interval.low:.2f}-{cell.interval.high:.2f})"
            why = f": {cell.why}" if cell.why else ""
            lines.append(f"{cell.name}, {b} against {a}: {', '.join(filter(None, [ratio + ends, cell.verdict]))}{why}.")
    return lines


def as_text(blocks: Iterable[Sequence[Part]]) -> str:
    """For a terminal or a pipe; long names of cells make it wide."""
    return plain_text([*(part for block in blocks for part in (*block, *([""] if block else []))), WHERE])


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
    if tested := sum(cell.interval is not None for cell in comparison.cells):
        of = f" of {tested} cells that were tested" if tested > 1 else ""
        lines.append(f"Each verdict holds at 5 % for its whole table{of}; each interval is of its own cell alone.")
    return lines + [
        f"run {side}: {cell.cell}: not audited in {cell.not_audited} of {cell.trials} trials: losses there are unknown"
        for side, run in (("A", comparison.a), ("B", comparison.b))
        for cell in run.summary.cells
        if cell.not_audited
    ]


def runs_table(rows: Sequence[RunRow]) -> str:
    heads = [words(head) for head in ("started (UTC)", "plan", "machine", "stack", "trials", "complete", "passed", "")]
    heads[4].justify = "right"
    starts = ((started_at(row.run) or NOT_MEASURED).replace("T", " ").removesuffix("Z") for row in rows)
    texts = [(row.run, start, *_told(row)) for row, start in zip(rows, starts, strict=True)]
    return plain_text([new_table("run", *heads, rows=texts)])


def _told(row: RunRow) -> tuple[str, ...]:
    if (summary := row.summary) is None:
        return *([NOT_MEASURED] * 6), " ".join(row.damage.split())
    return (
        summary.plan.name,
        machine_in_words(summary.environment) or NOT_MEASURED,
        str(summary.environment.get("stack") or NOT_MEASURED),
        f"{sum(cell.trials for cell in summary.cells)}",
        *("yes" if each else "no" for each in (summary.complete, summary.passed)),
        resumed_in_words(summary),
    )
