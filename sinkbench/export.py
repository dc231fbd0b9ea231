"""A run's cells for other programs: a flat table as CSV, the summary as JSON, and a table as Markdown.

docs/format.md describes the columns.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from sinkbench.columns import NOT_MEASURED, connections, counted
from sinkbench.errors import ResultsError
from sinkbench.markdown import escaped, markdown_table
from sinkbench.results import CellSummary, RunSummary
from sinkbench.table import answer, heading, remarks

__all__ = ["COLUMNS", "FORMATS", "export"]

Value = str | int | float | bool | None


def export(summary: RunSummary, form: str) -> str:
    """The run in one of the `FORMATS`; ResultsError for any other."""
    if form not in FORMATS:
        raise ResultsError(f"--format {form}: is not a format of exports; known: {', '.join(FORMATS)}")
    return FORMATS[form](summary)


def _of(record: object, name: str) -> Any:
    """A field of a record that may be absent itself."""
    return getattr(record, name, None)


COLUMNS: dict[str, Callable[[RunSummary, CellSummary], Value]] = {
    "run": lambda run, _: run.run,
    "complete": lambda run, _: run.complete,
    "resumed": lambda run, _: len(run.resumed),
    "plan": lambda run, _: run.plan.name,
    "plan_sha256": lambda run, _: run.plan.sha256,
    "stack": lambda run, _: str(run.environment.get("stack") or "") or None,
    "cell": lambda _, cell: cell.cell,
    "label": lambda _, cell: cell.label,
    "pipeline": lambda _, cell: cell.pipeline,
    "sink": lambda _, cell: cell.sink,
    "mode": lambda _, cell: cell.mode,
    "workers": lambda _, cell: cell.workers,
    "tasks": lambda _, cell: cell.tasks,
    "tasks_per_worker": lambda _, cell: cell.tasks_per_worker,
    "tasks_before": lambda _, cell: _of(cell.rescale, "tasks_before"),
    "overrides": lambda _, cell: json.dumps(cell.overrides, ensure_ascii=False) if cell.overrides else None,
    "trials": lambda _, cell: cell.trials,
    "valid_trials": lambda _, cell: 0 if cell.records_per_second is None else len(cell.records_per_second.values),
    "offered_records_per_second": lambda _, cell: cell.offered_records_per_second,
    "records_per_second": lambda _, cell: _of(cell.records_per_second, "median"),
    "records_per_second_lowest": lambda _, cell: _of(cell.records_per_second, "low"),
    "records_per_second_highest": lambda _, cell: _of(cell.records_per_second, "high"),
    "records_per_second_interval_low": lambda _, cell: _of(_of(cell.records_per_second, "interval"), "low"),
    "records_per_second_interval_high": lambda _, cell: _of(_of(cell.records_per_second, "interval"), "high"),
    "ratio_to": lambda _, cell: _of(cell.ratio, "to"),
    "ratio": lambda _, cell: _of(cell.ratio, "estimate"),
    "ratio_interval_low": lambda _, cell: _of(_of(cell.ratio, "interval"), "low"),
    "ratio_interval_high": lambda _, cell: _of(_of(cell.ratio, "interval"), "high"),
    "records_per_write": lambda _, cell: cell.records_per_write,
    "clients_peak": lambda _, cell: cell.connections.clients_peak,
    "server_peak": lambda _, cell: cell.connections.server_peak,
    "failed_tasks": lambda _, cell: cell.failed_tasks,
    "produced": lambda _, cell: _of(cell.audit, "produced"),
    "stored": lambda _, cell: _of(cell.audit, "stored"),
    "lost": lambda _, cell: _of(cell.audit, "lost"),
    "duplicates": lambda _, cell: _of(cell.audit, "duplicates"),
    "foreign": lambda _, cell: _of(cell.audit, "foreign"),
    "lag_verdict": lambda _, cell: _of(cell.lag, "verdict"),
    "lag_growth_per_second": lambda _, cell: _of(cell.lag, "growth_per_second"),
    "latency_p50_ms": lambda _, cell: _of(cell.latency_ms, "p50"),
    "latency_p95_ms": lambda _, cell: _of(cell.latency_ms, "p95"),
    "latency_p99_ms": lambda _, cell: _of(cell.latency_ms, "p99"),
    "latency_p999_ms": lambda _, cell: _of(cell.latency_ms, "p999"),
    "searchable_p99_ms": lambda _, cell: _of(cell.searchable_ms, "p99"),
    "limit_records_per_second": lambda _, cell: cell.limit_records_per_second,
    "efficiency": lambda _, cell: cell.efficiency,
    "limited_by": lambda _, cell: _of(cell.bottleneck, "component"),
    "limited_by_cause": lambda _, cell: _of(cell.bottleneck, "cause") or None,
    "passed": lambda _, cell: cell.passed,
    "verdict": lambda _, cell: cell.verdict,
    "invalid": lambda _, cell: "; ".join(cell.invalid) or None,
    "notes": lambda _, cell: "; ".join(cell.notes) or None,
}
"""What each column of the CSV takes of a cell, in their order; `cpu_seconds_per_million.<service>` come after them."""


def _csv(summary: RunSummary) -> str:
    """A header and a row a cell. What was not measured is empty; true and false are words."""
    services = sorted({service for cell in summary.cells for service in cell.cpu_seconds_per_million})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *(f"cpu_seconds_per_million.{service}" for service in services)])
    for cell in summary.cells:
        values = [column(summary, cell) for column in COLUMNS.values()]
        values += [cell.cpu_seconds_per_million.get(service) for service in services]
        writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in values])
    return text.getvalue()


def _json(summary: RunSummary) -> str:
    return json.dumps(summary.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


_MARKDOWN = ("cell", "tasks", "records/s", "95 % interval", "records/write", "peak conns", "lost", "dupl.", "verdict")


def _markdown(summary: RunSummary) -> str:
    lines = [*heading(summary), *filter(None, [answer(summary)]), *remarks(summary)]
    above = [f"- {escaped(line)}" for line in lines[:2]]
    below = [f"- {escaped(line.removeprefix('* '))}" for line in lines[2:]]
    rows = markdown_table(_MARKDOWN, map(_markdown_row, summary.cells), range(1, 8))
    return "\n\n".join("\n".join(part) for part in (above, rows, below) if part) + "\n"


def _markdown_row(cell: CellSummary) -> tuple[str, ...]:
    rate = None if cell.invalid else cell.records_per_second
    interval = None if rate is None else rate.interval
    span = NOT_MEASURED if rate is None else f"({rate.low:,.0f}-{rate.high:,.0f})"
    return (
        cell.cell,
        f"{cell.tasks}",
        NOT_MEASURED if rate is None else f"{rate.median:,.0f}",
        span if interval is None else f"{interval.low:,.0f}-{interval.high:,.0f}",
        NOT_MEASURED if cell.records_per_write is None else f"{cell.records_per_write:,.1f}",
        connections(cell),
        *counted(cell),
        cell.verdict,
    )


FORMATS: dict[str, Callable[[RunSummary], str]] = {"csv": _csv, "json": _json, "md": _markdown}
