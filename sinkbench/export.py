"""A run's cells for other programs: a flat table as CSV or Parquet, the summary as JSON, and a table as Markdown.

docs/format.md describes the columns.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sinkbench.columns import NOT_MEASURED, connections, counted
from sinkbench.errors import ResultsError
from sinkbench.markdown import escaped, markdown_table
from sinkbench.results import CellSummary, RunSummary
from sinkbench.secrets import redacted
from sinkbench.table import answer, heading, remarks

__all__ = ["COLUMNS", "FORMATS", "Column", "export"]

Value = str | int | float | bool | None
VARCHAR, BIGINT, DOUBLE, BOOLEAN = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"


def export(summary: RunSummary, form: str) -> str | bytes:
    """The run in one of the `FORMATS`, bytes where it is no text; ResultsError for any other."""
    if form not in FORMATS:
        raise ResultsError(f"--format {form}: is not a format of exports; known: {', '.join(FORMATS)}")
    return FORMATS[form](summary)


def _of(record: object, name: str) -> Any:
    """A field of a record that may be absent itself."""
    return getattr(record, name, None)


@dataclass(frozen=True)
class Column:
    """One column: its type in SQL, and what it takes of a run and one of its cells; None for what was not measured."""

    sql: str
    of: Callable[[RunSummary, CellSummary], Value]


COLUMNS: dict[str, Column] = {
    "run": Column(VARCHAR, lambda run, _: run.run),
    "complete": Column(BOOLEAN, lambda run, _: run.complete),
    "resumed": Column(BIGINT, lambda run, _: len(run.resumed)),
    "plan": Column(VARCHAR, lambda run, _: run.plan.name),
    "plan_sha256": Column(VARCHAR, lambda run, _: run.plan.sha256),
    "stack": Column(VARCHAR, lambda run, _: str(run.environment.get("stack") or "") or None),
    "cell": Column(VARCHAR, lambda _, cell: cell.cell),
    "label": Column(VARCHAR, lambda _, cell: cell.label),
    "pipeline": Column(VARCHAR, lambda _, cell: cell.pipeline),
    "sink": Column(VARCHAR, lambda _, cell: cell.sink),
    "mode": Column(VARCHAR, lambda _, cell: cell.mode),
    "workers": Column(BIGINT, lambda _, cell: cell.workers),
    "tasks": Column(BIGINT, lambda _, cell: cell.tasks),
    "tasks_per_worker": Column(DOUBLE, lambda _, cell: cell.tasks_per_worker),
    "tasks_before": Column(BIGINT, lambda _, cell: _of(cell.rescale, "tasks_before")),
    "overrides": Column(
        VARCHAR, lambda _, cell: json.dumps(cell.overrides, ensure_ascii=False) if cell.overrides else None
    ),
    "trials": Column(BIGINT, lambda _, cell: cell.trials),
    "valid_trials": Column(
        BIGINT, lambda _, cell: 0 if cell.records_per_second is None else len(cell.records_per_second.values)
    ),
    "offered_records_per_second": Column(DOUBLE, lambda _, cell: cell.offered_records_per_second),
    "records_per_second": Column(DOUBLE, lambda _, cell: _of(cell.records_per_second, "median")),
    "records_per_second_lowest": Column(DOUBLE, lambda _, cell: _of(cell.records_per_second, "low")),
    "records_per_second_highest": Column(DOUBLE, lambda _, cell: _of(cell.records_per_second, "high")),
    "records_per_second_interval_low": Column(
        DOUBLE, lambda _, cell: _of(_of(cell.records_per_second, "interval"), "low")
    ),
    "records_per_second_interval_high": Column(
        DOUBLE, lambda _, cell: _of(_of(cell.records_per_second, "interval"), "high")
    ),
    "ratio_to": Column(VARCHAR, lambda _, cell: _of(cell.ratio, "to")),
    "ratio": Column(DOUBLE, lambda _, cell: _of(cell.ratio, "estimate")),
    "ratio_interval_low": Column(DOUBLE, lambda _, cell: _of(_of(cell.ratio, "interval"), "low")),
    "ratio_interval_high": Column(DOUBLE, lambda _, cell: _of(_of(cell.ratio, "interval"), "high")),
    "records_per_write": Column(DOUBLE, lambda _, cell: cell.records_per_write),
    "clients_peak": Column(BIGINT, lambda _, cell: cell.connections.clients_peak),
    "server_peak": Column(BIGINT, lambda _, cell: cell.connections.server_peak),
    "failed_tasks": Column(BIGINT, lambda _, cell: cell.failed_tasks),
    "produced": Column(BIGINT, lambda _, cell: _of(cell.audit, "produced")),
    "stored": Column(BIGINT, lambda _, cell: _of(cell.audit, "stored")),
    "lost": Column(BIGINT, lambda _, cell: _of(cell.audit, "lost")),
    "duplicates": Column(BIGINT, lambda _, cell: _of(cell.audit, "duplicates")),
    "foreign": Column(BIGINT, lambda _, cell: _of(cell.audit, "foreign")),
    "lag_verdict": Column(VARCHAR, lambda _, cell: _of(cell.lag, "verdict")),
    "lag_growth_per_second": Column(DOUBLE, lambda _, cell: _of(cell.lag, "growth_per_second")),
    "latency_p50_ms": Column(DOUBLE, lambda _, cell: _of(cell.latency_ms, "p50")),
    "latency_p95_ms": Column(DOUBLE, lambda _, cell: _of(cell.latency_ms, "p95")),
    "latency_p99_ms": Column(DOUBLE, lambda _, cell: _of(cell.latency_ms, "p99")),
    "latency_p999_ms": Column(DOUBLE, lambda _, cell: _of(cell.latency_ms, "p999")),
    "searchable_p99_ms": Column(DOUBLE, lambda _, cell: _of(cell.searchable_ms, "p99")),
    "limit_records_per_second": Column(DOUBLE, lambda _, cell: cell.limit_records_per_second),
    "efficiency": Column(DOUBLE, lambda _, cell: cell.efficiency),
    "limited_by": Column(VARCHAR, lambda _, cell: _of(cell.bottleneck, "component")),
    "limited_by_cause": Column(VARCHAR, lambda _, cell: _of(cell.bottleneck, "cause") or None),
    "passed": Column(BOOLEAN, lambda _, cell: cell.passed),
    "verdict": Column(VARCHAR, lambda _, cell: cell.verdict),
    "invalid": Column(VARCHAR, lambda _, cell: "; ".join(cell.invalid) or None),
    "notes": Column(VARCHAR, lambda _, cell: "; ".join(cell.notes) or None),
}
"""The columns that every run has, in their order; `cpu_seconds_per_million.<service>` come after them."""


def _columns(summary: RunSummary) -> dict[str, Column]:
    """All columns of one run."""

    def cpu(service: str) -> Column:
        return Column(DOUBLE, lambda _, cell: cell.cpu_seconds_per_million.get(service))

    services = sorted({service for cell in summary.cells for service in cell.cpu_seconds_per_million})
    return {**COLUMNS, **{f"cpu_seconds_per_million.{service}": cpu(service) for service in services}}


def _rows(summary: RunSummary) -> list[list[Value]]:
    columns = _columns(summary).values()
    return [[column.of(summary, cell) for column in columns] for cell in summary.cells]


def _csv(summary: RunSummary) -> str:
    """A header and a row a cell. What was not measured is empty; true and false are words."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_columns(summary))
    for values in _rows(summary):
        writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in values])
    return text.getvalue()


def _parquet(summary: RunSummary) -> bytes:
    """The same rows with their types, which a column keeps in which nothing was measured."""
    # Here, since no other format needs it.
    import duckdb

    columns = _columns(summary)
    rows = [[redacted(value) if isinstance(value, str) else value for value in row] for row in _rows(summary)]
    with tempfile.TemporaryDirectory(prefix="sinkbench-") as folder, duckdb.connect(":memory:") as database:
        file = Path(folder) / "cells.parquet"
        types = ", ".join(f"{_quoted(name)} {column.sql}" for name, column in columns.items())
        database.execute(f"CREATE TABLE cells ({types})")
        if rows:
            marks = ", ".join("?" for _ in columns)
            database.executemany(f"INSERT INTO cells VALUES ({marks})", rows)  # noqa: S608 - question marks alone
        database.table("cells").write_parquet(str(file))
        return file.read_bytes()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


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


FORMATS: dict[str, Callable[[RunSummary], str | bytes]] = {
    "csv": _csv,
    "json": _json,
    "md": _markdown,
    "parquet": _parquet,
}
