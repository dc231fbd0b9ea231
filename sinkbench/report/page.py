"""The report of a run: its sections in order, without those that have no data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sinkbench.metrics.changes import CHANGES
from sinkbench.metrics.cost import with_prices
from sinkbench.metrics.names import cell_name
from sinkbench.metrics.pool import POOLS
from sinkbench.metrics.queries import READS
from sinkbench.metrics.rescale import RESCALES
from sinkbench.report import costs, resources, tables
from sinkbench.report.html import html_of
from sinkbench.report.latencies import latencies
from sinkbench.report.overview import cells_shown, opening
from sinkbench.report.parts import File, Lines, PageSection, Part
from sinkbench.report.pictures import write_charts
from sinkbench.report.tables import captioned, some
from sinkbench.report.throughput import against_tasks, side_by_side
from sinkbench.report.timeline import courses_of, drawn, timeline
from sinkbench.results import Prices, RunSummary
from sinkbench.runs.reader import StoredRun, load_run
from sinkbench.runs.store import write_text
from sinkbench.tables.cells import heading, remarks
from sinkbench.tables.faults import fault_lines, is_faults
from sinkbench.tables.loads import is_load, load_lines
from sinkbench.tables.percell import durability_table
from sinkbench.tables.prices import price_lines
from sinkbench.tables.queries import query_lines, query_table
from sinkbench.tables.scaling import scaling_line, scaling_table
from sinkbench.tables.stages import limit_line, stage_table

NAME = "report.html"
_WIDE = 1_000
"""Columns for the remarks: unlike a terminal, a page has room for everything."""
_MOST_NAMED = 20


def write_report(run: Path, to: Path | None = None, charts: Path | None = None, prices: Prices | None = None) -> Path:
    """Writes the report of `run`, a folder or its summary.json, to `to` or the folder's report.html, and returns the
    path. `charts` is a folder for charts as separate files, `prices` replace those of the run. UserError if the run
    cannot be read, or a file cannot be written."""
    kept = load_run(run)
    if prices is not None:
        kept = replace(kept, summary=with_prices(kept.summary, prices))
    folder = run if run.is_dir() else run.parent
    file = folder / NAME if to is None else to
    summary, first, sections = kept.summary, opening(kept.summary), sections_of(kept, folder)
    page = html_of(title=f"Run {summary.run}", heading=heading(summary)[1:], opening=first, sections=sections)
    write_text(file, page)
    if charts is not None:
        write_charts([*first.sections, *sections], charts)
    return file


def sections_of(kept: StoredRun, folder: Path) -> list[PageSection]:
    """The sections below the first screen; `folder` has the run's samples, plan and connector files."""
    summary = kept.summary
    # If the first screen shows every cell, nothing is repeated.
    rest = summary.cells if len(cells_shown(summary)) < len(summary.cells) else []
    trials, undrawn = drawn(kept.trials)
    courses, missing = courses_of(folder, trials)
    late, damaged = latencies(summary)
    files, unread = _files(folder)
    names = {cell.cell: cell_name(cell, summary) for cell in summary.cells}
    names |= {trial.cell: trial.label for trial in kept.trials if trial.cell not in names}
    rates = some(against_tasks(summary), side_by_side(summary) if rest else None)
    law = captioned(scaling_table(summary.scaling) if summary.scaling else None, "Measured and fitted rates by tasks")
    asked = captioned(query_table(summary), "What each index or table answers, and in what time")
    reads = tables.of_cells(READS, summary, "Queries during the load, and on the idle sink after it")
    rescales = tables.of_cells(RESCALES, summary, "Running connectors that were given another number of tasks")
    changes = tables.of_cells(CHANGES, summary, "Wrong keys, and what changes have left in the sinks")
    stages = captioned(stage_table(summary), "What each stage takes of the time of one record, in microseconds")
    durable = captioned(
        durability_table(summary, always=True), "What is on how many nodes when a record counts as stored"
    )
    pools = tables.of_cells(POOLS, summary, "What connectors waited for in the pooler")
    fault_texts = fault_lines(summary) if is_faults(summary) else []
    limits = [] if is_load(summary) else [limit_line(each) for each in summary.limits]
    return [
        PageSection("cells", "Cells", [*some(tables.cells(summary)), *_lines(_remarks(summary))]),
        PageSection(
            "throughput", "Throughput", [*rates, *some(law), *_lines([scaling_line(each) for each in summary.scaling])]
        ),
        PageSection("queries", "Queries", [*some(asked, reads), *_lines(query_lines(summary))]),
        PageSection("faults", "Faults", [*tables.faults(summary), *_lines(fault_texts)]),
        PageSection("rescale", "Running connectors, re-scaled", some(rescales)),
        PageSection("changes", "Changes of keys", some(changes)),
        PageSection("search", "Search for the capacity", tables.searches(summary)),
        PageSection("latency", "Latency", late),
        PageSection(
            "limits",
            "The limits of the sinks",
            [*some(costs.efficiency(summary), tables.bounds(summary), stages), *_lines(limits)],
        ),
        PageSection("cpu", "CPU time", some(costs.cpu(summary, rest))),
        PageSection("memory", "Memory and disk", some(resources.memory(summary), resources.disk(summary))),
        PageSection("durability", "Durability", some(durable)),
        PageSection("money", "Money", [*some(resources.cost(summary)), *_lines(price_lines(summary))]),
        PageSection("connections", "Connections", some(costs.connections(summary), pools)),
        PageSection("placement", "Tasks by worker", some(costs.placement(summary))),
        PageSection("verdicts", "Verdicts and their evidence", some(tables.verdicts(summary))),
        PageSection("invalid", "What is not used, and why", some(tables.invalid(summary, kept.trials))),
        PageSection("course", "Each trial over time", timeline(names, trials, courses)),
        PageSection("environment", "Environment", some(tables.environment(summary))),
        PageSection("configuration", "Plan and connectors", files),
        PageSection("left-out", "Not in this report", _left_out([*undrawn, *missing, *damaged, *unread])),
    ]


def _remarks(summary: RunSummary) -> list[str]:
    """The lines below the table of cells; limits and notes of a cell are among the verdicts."""
    said = load_lines(summary) + [limit_line(each) for each in summary.limits] if is_load(summary) else []
    # Cells that are not warm or not steady are on the first screen.
    bare = [cell.model_copy(update={"bottleneck": None, "notes": [], "at_least": None}) for cell in summary.cells]
    noted = any(cell.notes for cell in summary.cells)
    return [
        *said,
        *remarks(summary.model_copy(update={"cells": bare}), _WIDE),
        *(["* There is a note below, among the verdicts."] if noted else []),
    ]


def _files(folder: Path) -> tuple[list[Part], list[str]]:
    parts: list[Part] = []
    unread = []
    patterns = ("connectors/*/*.json", "targets/*/*", "queries/*.yaml")
    for path in [folder / "plan.yaml", *(file for pattern in patterns for file in sorted(folder.glob(pattern)))]:
        name = path.relative_to(folder).as_posix()
        try:
            parts.append(File(name, path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as failed:
            unread.append(f"{name}: cannot be read ({failed})")
    return parts, unread


def _left_out(lines: list[str]) -> list[Part]:
    """The first twenty lines: a folder without samples would fill pages."""
    more = len(lines) - _MOST_NAMED
    return [Lines([*lines[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])], bullets=True)] if lines else []


def _lines(lines: list[str]) -> list[Part]:
    return [Lines(lines)] if lines else []
