"""The tables of a report: the cells as the terminal shows them, verdicts, searches, invalid trials, environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from sinkbench.columns import NOT_MEASURED
from sinkbench.loadtable import is_load, load_table
from sinkbench.report.parts import Chart, Figure, Table, of_rich
from sinkbench.report.plots import Line, lines
from sinkbench.rescaletable import rescale_table
from sinkbench.results import CellSummary, RunSummary, TrialRecord
from sinkbench.scalingtable import scaling_table
from sinkbench.stagetable import stage_table
from sinkbench.table import cell_name, cells_table

__all__ = ["cells", "environment", "invalid", "rescales", "scaling", "searches", "stages", "verdicts"]

# Wide enough for every column that the table can have.
_WHOLE_WIDTH = 10_000


def cells(summary: RunSummary) -> Table | None:
    """The run's table; None if it has no cells that keep their tasks."""
    if all(cell.rescale is not None for cell in summary.cells):
        return None
    table = load_table(summary) if is_load(summary) else cells_table(summary, _WHOLE_WIDTH)
    return of_rich(table, "All cells, in the plan's order")


def rescales(summary: RunSummary) -> Table | None:
    """Running connectors that were given other tasks; None if there are none."""
    if all(cell.rescale is None for cell in summary.cells):
        return None
    return of_rich(rescale_table(summary.cells), "Running connectors that were given another number of tasks")


def scaling(summary: RunSummary) -> Table | None:
    """What the scaling law says of each number of tasks; None if there is no law to fit."""
    return of_rich(scaling_table(summary.scaling), "Measured and fitted rates by tasks") if summary.scaling else None


def stages(summary: RunSummary) -> Table | None:
    """Which stage of a cell's path takes how much of the time of a record; None if no limit was measured."""
    table = stage_table(summary)
    return None if table is None else of_rich(table, "What each stage takes of the time of one record, in microseconds")


def searches(summary: RunSummary) -> list[Figure]:
    """The way of each search for a capacity: what was offered, and whether it was kept up with."""
    found = [(place, cell) for place, cell in enumerate(summary.cells) if cell.search]
    return [_search(f"search-{place}", cell_name(cell, summary), cell) for place, cell in found]


def verdicts(summary: RunSummary) -> Table | None:
    """What limits each cell and what shows it; None if that was not looked at and every cell is ok."""
    if all(cell.bottleneck is None and cell.passed and not cell.notes for cell in summary.cells):
        return None
    return Table(
        headers=("cell", "verdict", "limited by", "evidence", "also found", "notes"),
        rows=[_verdict(cell, summary) for cell in summary.cells],
        caption="Verdicts, and what shows them",
        sentences=frozenset({3, 4, 5} if all(cell.passed for cell in summary.cells) else {1, 3, 4, 5}),
    )


def invalid(summary: RunSummary, trials: Sequence[TrialRecord]) -> Table | None:
    """Every cell and every trial whose numbers are not used, with its reasons; None if there are none."""
    rows = [
        (cell_name(cell, summary), "all", reason)
        for cell in summary.cells
        for reason in (cell.invalid or ([] if cell.passed else [cell.verdict]))
    ]
    names = {cell.cell: cell_name(cell, summary) for cell in summary.cells}
    rows += [
        (
            names.get(trial.cell, trial.label),
            f"{'pilot' if trial.pilot else f'block {trial.block}'}, {trial.trial}",
            why,
        )
        for trial in trials
        for why in trial.invalid
    ]
    return (
        Table(("cell", "trials", "why"), rows, "Cells and trials that are in no figure", sentences=frozenset({2}))
        if rows
        else None
    )


def environment(summary: RunSummary) -> Table | None:
    """What the run was taken on, a row a key; None if nothing is known."""
    rows = [*_flat("", summary.environment)]
    if not rows:
        return None
    return Table(("what", "found"), rows, "What the run was taken on", sentences=frozenset({1}))


def _verdict(cell: CellSummary, summary: RunSummary) -> tuple[str, ...]:
    found = cell.bottleneck
    limited = (
        (NOT_MEASURED, NOT_MEASURED, NOT_MEASURED)
        if found is None
        else (
            ", ".join(dict.fromkeys(filter(None, (found.component, found.cause)))),
            found.evidence,
            "\n".join(found.also) or "nothing",
        )
    )
    return cell_name(cell, summary), cell.verdict, *limited, "\n".join(cell.notes) or "none"


def _search(key: str, name: str, cell: CellSummary) -> Figure:
    steps = list(enumerate(cell.search, start=1))
    kinds: dict[str, list[tuple[int, float]]] = {}
    for number, step in steps:
        kind = f"{step.outcome}, to confirm" if step.confirms else step.outcome
        kinds.setdefault(kind, []).append((number, step.offered))
    series = [Line(kind, [number for number, _ in at], [offered for _, offered in at]) for kind, at in kinds.items()]
    return Figure(
        caption=f"{name}: the rates that the search offered, in turn, and whether the lag stayed bounded.",
        charts=[
            Chart(
                label=f"{name}: offered "
                + ", ".join(f"{step.offered:,.0f} ({step.outcome})" for _, step in steps)
                + " records a second",
                svg=lines(
                    key,
                    series,
                    "step",
                    "records/s offered",
                    joined=False,
                    x_ticks=[number for number, _ in steps][:: max(1, len(steps) // 12)],
                ),
            )
        ],
        table=Table(
            headers=("step", "offered, records/s", "outcome", "lag grows/s", "to confirm", "why invalid"),
            rows=[
                (
                    f"{number}",
                    f"{step.offered:,.0f}",
                    step.outcome,
                    NOT_MEASURED if step.growth_per_second is None else f"{round(step.growth_per_second):,}",
                    "yes" if step.confirms else "no",
                    step.problem or "",
                )
                for number, step in steps
            ],
            caption=f"{name}: the search for its capacity",
            numbers=frozenset({0, 1, 3}),
        ),
    )


def _flat(above: str, found: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    rows = []
    for key, value in found.items():
        name = f"{above}{key}"
        if isinstance(value, dict):
            rows += _flat(f"{name}: ", value)
        else:
            rows.append((name, _value(value)))
    return rows


def _value(value: JsonValue) -> str:
    if value is None:
        return "not known"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value)
