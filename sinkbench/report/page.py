"""The report of a run: which parts come in which order, and what is left out because the run has no data for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sinkbench.kept import KeptRun, load_run
from sinkbench.limits.efficiency import limit_line
from sinkbench.loadtable import is_load, load_lines
from sinkbench.report import costs, tables
from sinkbench.report.html import html_of
from sinkbench.report.latencies import latencies
from sinkbench.report.lead import answer_or_why_not, grounds, outcome
from sinkbench.report.parts import File, Lines, Part, Section
from sinkbench.report.pictures import write_charts
from sinkbench.report.throughput import against_tasks, side_by_side
from sinkbench.report.timeline import courses_of, drawn, timeline
from sinkbench.results import RunSummary
from sinkbench.scalingtable import scaling_line
from sinkbench.secrets import redacted
from sinkbench.store import write_text
from sinkbench.table import cell_name, heading, remarks

__all__ = ["NAME", "report_of", "sections_of", "write_report"]

NAME = "report.html"
_WIDE = 1_000
"""Columns for the remarks: a page has room for all that a terminal may leave out."""
_MOST_NAMED = 20


def write_report(run: Path, to: Path | None = None, charts: Path | None = None) -> Path:
    """Writes the report of a run and returns the file.

    Args:
        run: the run's folder, or its summary.json.
        to: the file; None for report.html in the run's folder.
        charts: a folder for the charts as files of their own, too; None for none.

    Raises:
        UserError: the run cannot be read, or the file cannot be written.
    """
    kept = load_run(run)
    folder = run if run.is_dir() else run.parent
    file = folder / NAME if to is None else to
    sections = sections_of(kept, folder)
    write_text(file, report_of(kept, sections))
    if charts is not None:
        write_charts(sections, charts)
    return file


def report_of(kept: KeptRun, sections: Sequence[Section]) -> str:
    """The HTML text of a report with these sections."""
    summary = kept.summary
    return redacted(
        html_of(
            title=f"Run {summary.run}",
            heading=heading(summary)[1:],
            lead=answer_or_why_not(summary),
            grounds=grounds(summary),
            outcome=outcome(summary),
            sections=sections,
        )
    )


def sections_of(kept: KeptRun, folder: Path) -> list[Section]:
    """What a report consists of; `folder` is where the run's samples, plan and connector files are."""
    summary = kept.summary
    trials, undrawn = drawn(kept.trials)
    courses, missing = courses_of(folder, trials)
    late, damaged = latencies(summary)
    files, unread = _files(folder)
    names = {cell.cell: cell_name(cell, summary) for cell in summary.cells}
    names |= {trial.cell: trial.label for trial in kept.trials if trial.cell not in names}
    return [
        Section("cells", "Cells", [*_some(tables.cells(summary)), *_lines(_remarks(summary))]),
        Section(
            "throughput",
            "Throughput",
            [
                *_some(against_tasks(summary), side_by_side(summary), tables.scaling(summary)),
                *_lines([scaling_line(each) for each in summary.scaling]),
            ],
        ),
        Section("rescale", "Running connectors, re-scaled", _some(tables.rescales(summary))),
        Section("search", "Search for the capacity", tables.searches(summary)),
        Section("latency", "Latency", late),
        Section(
            "limits",
            "The limits of the sinks",
            [
                *_some(costs.efficiency(summary), tables.stages(summary)),
                *_lines([] if is_load(summary) else [limit_line(each) for each in summary.limits]),
            ],
        ),
        Section("cpu", "CPU time", _some(costs.cpu(summary))),
        Section("connections", "Connections", _some(costs.connections(summary))),
        Section("placement", "Tasks by worker", _some(costs.placement(summary))),
        Section("verdicts", "Verdicts and their evidence", _some(tables.verdicts(summary))),
        Section("invalid", "What is not used, and why", _some(tables.invalid(summary, kept.trials))),
        Section("course", "Each trial over time", timeline(names, trials, courses)),
        Section("environment", "Environment", _some(tables.environment(summary))),
        Section("configuration", "Plan and connectors", files),
        Section("left-out", "Not in this report", _left_out([*undrawn, *missing, *damaged, *unread])),
    ]


def _remarks(summary: RunSummary) -> list[str]:
    """What must be known of the table of cells; what limits a cell, and its notes, are among the verdicts."""
    said = load_lines(summary) + [limit_line(each) for each in summary.limits] if is_load(summary) else []
    bare = [cell.model_copy(update={"bottleneck": None, "notes": []}) for cell in summary.cells]
    noted = any(cell.notes for cell in summary.cells)
    return [
        *said,
        *remarks(summary.model_copy(update={"cells": bare}), _WIDE),
        *(["* There is a note below, among the verdicts."] if noted else []),
    ]


def _files(folder: Path) -> tuple[list[Part], list[str]]:
    """The plan and the connector files as they are, and which cannot be read."""
    parts: list[Part] = []
    unread = []
    for path in [folder / "plan.yaml", *sorted((folder / "connectors").glob("*/*.json"))]:
        name = path.relative_to(folder).as_posix()
        try:
            parts.append(File(name, path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as failed:
            unread.append(f"{name}: cannot be read ({failed})")
    return parts, unread


def _left_out(lines: list[str]) -> list[Part]:
    """Lines of their own for the first twenty; a folder without its samples would fill pages."""
    more = len(lines) - _MOST_NAMED
    return [Lines([*lines[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])], bullets=True)] if lines else []


def _some(*parts: Part | None) -> list[Part]:
    return [part for part in parts if part is not None]


def _lines(lines: list[str]) -> list[Part]:
    return [Lines(lines)] if lines else []
