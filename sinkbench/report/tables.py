"""The tables of a report: cells, verdicts, searches, invalid trials, environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import JsonValue
from rich.table import Table as RichTable

from sinkbench.metrics.format import NOT_MEASURED, whole
from sinkbench.metrics.names import cell_name
from sinkbench.metrics.recovery import RECOVERIES, STATUS
from sinkbench.report.parts import Chart, Figure, Part, Table, of_rich
from sinkbench.report.plots import LineSeries, lines
from sinkbench.report.timeline import figure_key, title_of
from sinkbench.results import CellSummary, RunSummary, TrialRecord
from sinkbench.tables.bounds import BOUND_HEADERS, bound_rows
from sinkbench.tables.faults import is_faults, matrix_cells, matrix_table
from sinkbench.tables.loads import is_load
from sinkbench.tables.percell import cell_table, cells_table, load_table

AnyPart = TypeVar("AnyPart", bound=Part)
# Wide enough for all columns.
_WHOLE_WIDTH = 10_000


def cells(summary: RunSummary) -> Table | None:
    """The table of cells; None if all are re-scales or have faults."""
    if is_faults(summary) or all(cell.rescale is not None for cell in summary.cells):
        return None
    table = load_table(summary) if is_load(summary) else cells_table(summary, _WHOLE_WIDTH)
    return of_rich(table, "All cells, in the plan's order")


def faults(summary: RunSummary) -> list[Table]:
    """The matrix of pipelines and faults, with links to trials, and each cell in full; empty without faults."""
    if not is_faults(summary):
        return []
    rows, columns, cells = matrix_cells(summary)
    places = {cell.cell: place for place, cell in enumerate(summary.cells)}
    links = {
        (row, 1 + column): figure_key(places[cell.cell])
        for row, fault in enumerate(rows)
        for column, pipeline in enumerate(columns)
        if (cell := cells.get((fault, pipeline))) is not None and cell.trials
    }
    matrix = of_rich(matrix_table(summary), "What became of each pipeline under each fault")
    return [
        replace(matrix, links=links),
        *some(
            of_cells(RECOVERIES, summary, "What became of the records, and when they came again"),
            of_cells(STATUS, summary, "What Connect said, what a person had to do, and what was left open"),
        ),
    ]


def of_cells(key: str, summary: RunSummary, caption: str) -> Table | None:
    return captioned(cell_table(key, summary), caption)


def captioned(table: RichTable | None, caption: str) -> Table | None:
    return None if table is None else of_rich(table, caption)


def some(*parts: AnyPart | None) -> list[AnyPart]:
    return [part for part in parts if part is not None]


def bounds(summary: RunSummary) -> Table | None:
    """How much cells can gain up to their sinks' limits on shared cores; None if no bound is known."""
    rows = bound_rows(summary)
    return Table(BOUND_HEADERS, rows, "What CPU time leaves to gain", numbers=range(1, 7)) if rows else None


def searches(summary: RunSummary) -> list[Figure]:
    """Each search for a capacity: the offered rates, and whether the lag stayed bounded."""
    found = [(place, cell) for place, cell in enumerate(summary.cells) if cell.search]
    return [_search(f"search-{place}", cell_name(cell, summary), cell) for place, cell in found]


def verdicts(summary: RunSummary) -> Table | None:
    """The bottleneck of each cell and its evidence; None without bottlenecks if every cell is ok."""
    if all(cell.bottleneck is None and cell.passed and not cell.notes for cell in summary.cells):
        return None
    return Table(
        headers=("cell", "verdict", "limited by", "evidence", "also found", "notes"),
        rows=[_verdict(cell, summary) for cell in summary.cells],
        caption="Verdicts, and what shows them",
        sentences=(3, 4, 5) if all(cell.passed for cell in summary.cells) else (1, 3, 4, 5),
    )


def invalid(summary: RunSummary, trials: Sequence[TrialRecord]) -> Table | None:
    """Every cell and trial left out of the figures, with its reasons; None if there is none."""
    names = {cell.cell: cell_name(cell, summary) for cell in summary.cells}
    rows = [
        (names[cell.cell], "all", reason)
        for cell in summary.cells
        for reason in (cell.invalid or ([] if cell.passed and cell.at_least is None else [cell.verdict]))
    ]
    rows += [
        (names.get(trial.cell, trial.label), f"{title_of(trial)}, {trial.trial}", why)
        for trial in trials
        for why in (trial.invalid or (["not warm"] if trial.warm is False and not trial.pilot else []))
    ]
    if not rows:
        return None
    return Table(("cell", "trials", "why"), rows, "Cells and trials that are in no figure", sentences=(2,))


def environment(summary: RunSummary) -> Table | None:
    """The environment of the run, a row per key; None if unknown."""
    rows = _flat("", summary.environment)
    return Table(("what", "found"), rows, "What the run was taken on", sentences=(1,)) if rows else None


def _verdict(cell: CellSummary, summary: RunSummary) -> tuple[str, ...]:
    limited: tuple[str, ...] = (NOT_MEASURED,) * 3
    if found := cell.bottleneck:
        what = ", ".join(dict.fromkeys(filter(None, (found.component, found.cause))))
        limited = (what, found.evidence, "\n".join(found.also) or "nothing")
    return cell_name(cell, summary), cell.verdict, *limited, "\n".join(cell.notes) or "none"


def _search(key: str, name: str, cell: CellSummary) -> Figure:
    steps = list(enumerate(cell.search, start=1))
    kinds: dict[str, list[tuple[int, float]]] = {}
    for number, step in steps:
        kind = f"{step.outcome}, to confirm" if step.confirms else step.outcome
        kinds.setdefault(kind, []).append((number, step.offered))
    series = [LineSeries(kind, *zip(*at, strict=True)) for kind, at in kinds.items()]
    ticks = range(1, len(steps) + 1, max(1, len(steps) // 12))
    svg = lines(key, series, "step", "records/s offered", joined=False, x_ticks=ticks)
    told = ", ".join(f"{step.offered:,.0f} ({step.outcome})" for step in cell.search)
    headers = ("step", "offered, records/s", "outcome", "lag grows/s", "to confirm", "why invalid")
    rows = [
        (
            f"{number}",
            f"{step.offered:,.0f}",
            step.outcome,
            whole(step.growth_per_second),
            "yes" if step.confirms else "no",
            step.problem or "",
        )
        for number, step in steps
    ]
    return Figure(
        f"{name}: the rates that the search offered, in turn, and whether the lag stayed bounded.",
        [Chart(f"{name}: offered {told} records a second", svg)],
        Table(headers, rows, f"{name}: the search for its capacity", numbers=(0, 1, 3)),
        meaning="Capacity",
    )


def _flat(above: str, found: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    rows = []
    for key, value in found.items():
        name = f"{above}{key}"
        rows += _flat(f"{name}: ", value) if isinstance(value, dict) else [(name, _value(value))]
    return rows


def _value(value: JsonValue) -> str:
    if value is None:
        return "not known"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value)
