"""A run for other programs: its cells as CSV, Parquet and Markdown, its summary as JSON. docs/format.md tells more."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

from sinkbench.analysis.limits import fastest
from sinkbench.analysis.rates import usable_rate
from sinkbench.errors import ResultsError
from sinkbench.results import CellSummary, RunSummary
from sinkbench.secrets import redacted
from sinkbench.summary.bound import bound_of
from sinkbench.tables.answers import answer_lines
from sinkbench.tables.cells import heading, rate_and_spread, remarks
from sinkbench.tables.columns import connections, counted
from sinkbench.tables.faults import is_faults, matrix_texts
from sinkbench.tables.format import formatted
from sinkbench.tables.markdown import escaped, markdown_table

__all__ = ["BY_SERVICE", "COLUMNS", "FORMATS", "Column", "export"]

Value = str | int | float | bool | None
VARCHAR, BIGINT, DOUBLE, BOOLEAN = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"


def export(summary: RunSummary, form: str) -> str | bytes:
    """The run in one of `FORMATS`, as bytes if that is no text; ResultsError for any other format."""
    if form not in FORMATS:
        raise ResultsError(f"--format {form}: is not a format of exports; known: {', '.join(FORMATS)}")
    return FORMATS[form](summary)


def _of(record: object, *names: str) -> Any:
    """The field of a record, or the field of its field; None if there is no record."""
    return reduce(lambda found, name: getattr(found, name, None), names, record)


def _of_recovery(name: str, _: RunSummary, cell: CellSummary) -> Value:
    """A time or a rate of what became of a fault."""
    found: Value = _of(cell.recovery, name)
    return found


def _limit(run: RunSummary, cell: CellSummary) -> object:
    """How the limit that the cell's rate is divided by scatters."""
    return None if cell.limit_records_per_second is None else _of(fastest(run.limits, cell.sink), "spread")


def _bounds(name: str, figure: Callable[[RunSummary, CellSummary], object]) -> dict[str, Column]:
    """The columns of both ends of a figure's interval."""

    def column(end: str) -> Column:
        return Column(DOUBLE, lambda run, cell: _of(figure(run, cell), "interval", end))

    return {f"{name}_interval_{end}": column(end) for end in ("low", "high")}


@dataclass(frozen=True)
class Column:
    """The type of a column in SQL, and its value for a cell of a run; None for what was not measured."""

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
    "target": Column(VARCHAR, lambda _, cell: cell.target),
    "form": Column(VARCHAR, lambda _, cell: cell.form),
    "durability": Column(VARCHAR, lambda _, cell: _of(cell.durability, "text") or None),
    "durability_nodes": Column(BIGINT, lambda _, cell: _of(cell.durability, "nodes")),
    "durability_nodes_on_disk": Column(BIGINT, lambda _, cell: _of(cell.durability, "on_disk")),
    "durability_in_kafka": Column(VARCHAR, lambda _, cell: _of(cell.durability, "kafka") or None),
    "acks": Column(VARCHAR, lambda _, cell: cell.acks),
    "settings": Column(
        VARCHAR, lambda _, cell: json.dumps(cell.settings, ensure_ascii=False) if cell.settings else None
    ),
    "trials": Column(BIGINT, lambda _, cell: cell.trials),
    "valid_trials": Column(BIGINT, lambda _, cell: len(_of(usable_rate(cell), "values") or [])),
    "offered_records_per_second": Column(DOUBLE, lambda _, cell: cell.offered_records_per_second),
    "records_per_second": Column(DOUBLE, lambda _, cell: _of(usable_rate(cell), "median")),
    "records_per_second_lowest": Column(DOUBLE, lambda _, cell: _of(usable_rate(cell), "low")),
    "records_per_second_highest": Column(DOUBLE, lambda _, cell: _of(usable_rate(cell), "high")),
    **_bounds("records_per_second", lambda _, cell: usable_rate(cell)),
    "records_per_second_at_least": Column(
        DOUBLE, lambda _, cell: (_of(cell.at_least, "figures") or {}).get("records_per_second")
    ),
    "not_warm_or_steady": Column(VARCHAR, lambda _, cell: _of(cell.at_least, "text")),
    "compiling_share": Column(DOUBLE, lambda _, cell: cell.compiling_share),
    "total_cpu_seconds_per_million": Column(DOUBLE, lambda _, cell: _of(cell.total_cpu_seconds_per_million, "median")),
    **_bounds("total_cpu_seconds_per_million", lambda _, cell: cell.total_cpu_seconds_per_million),
    "total_peak_memory_bytes": Column(DOUBLE, lambda _, cell: _of(cell.total_peak_memory_bytes, "median")),
    **_bounds("total_peak_memory_bytes", lambda _, cell: cell.total_peak_memory_bytes),
    "disk_bytes_per_record": Column(DOUBLE, lambda _, cell: _of(cell.disk_bytes_per_record, "median")),
    "fetched_bytes_per_record": Column(DOUBLE, lambda _, cell: cell.fetched_bytes_per_record),
    "currency": Column(VARCHAR, lambda run, _: _of(run.prices, "currency")),
    "cost_per_million": Column(DOUBLE, lambda _, cell: _of(cell.cost, "per_million")),
    "cpu_cost_per_million": Column(DOUBLE, lambda _, cell: _of(cell.cost, "cpu")),
    "memory_cost_per_million": Column(DOUBLE, lambda _, cell: _of(cell.cost, "memory")),
    "disk_cost_per_million": Column(DOUBLE, lambda _, cell: _of(cell.cost, "disk")),
    "foreign_cores": Column(DOUBLE, lambda _, cell: cell.foreign_cores),
    "stolen_cores": Column(DOUBLE, lambda _, cell: cell.stolen_cores),
    "monitoring_overhead_cores": Column(DOUBLE, lambda _, cell: cell.monitoring_overhead_cores),
    "ratio_to": Column(VARCHAR, lambda _, cell: _of(cell.ratio, "to")),
    "ratio": Column(DOUBLE, lambda _, cell: _of(cell.ratio, "estimate")),
    **_bounds("ratio", lambda _, cell: cell.ratio),
    "records_per_write": Column(DOUBLE, lambda _, cell: cell.records_per_write),
    "clients_peak": Column(BIGINT, lambda _, cell: cell.connections.clients_peak),
    "server_peak": Column(BIGINT, lambda _, cell: cell.connections.server_peak),
    "other_connections": Column(BIGINT, lambda _, cell: cell.connections.others),
    "pool_mode": Column(VARCHAR, lambda _, cell: _of(cell.pool, "mode")),
    "pool_size": Column(BIGINT, lambda _, cell: _of(cell.pool, "size")),
    "pool_prepared_statements": Column(BIGINT, lambda _, cell: _of(cell.pool, "prepared_statements")),
    "pool_most_waiting": Column(BIGINT, lambda _, cell: _of(cell.pool, "most_waiting")),
    "pool_longest_wait_ms": Column(DOUBLE, lambda _, cell: _of(cell.pool, "longest_wait_ms")),
    "pool_wait_ms_per_query": Column(DOUBLE, lambda _, cell: _of(cell.pool, "wait_ms_per_query")),
    "pool_wait_ms_per_transaction": Column(DOUBLE, lambda _, cell: _of(cell.pool, "wait_ms_per_transaction")),
    "fault": Column(VARCHAR, lambda _, cell: cell.fault),
    "recovered": Column(BOOLEAN, lambda _, cell: _of(cell.recovery, "recovered")),
    **{
        name: Column(DOUBLE, partial(_of_recovery, name))
        for name in (
            *("first_record_seconds", "standstill_seconds", "rate_seconds", "lag_seconds"),
            *("before_records_per_second", "during_records_per_second", "after_records_per_second"),
            *("failed_seconds", "told_seconds", "stuck_seconds", "latest_seconds"),
        )
    },
    "late_records": Column(BIGINT, lambda _, cell: _of(cell.recovery, "late_records")),
    "connections_left": Column(BIGINT, lambda _, cell: _of(cell.recovery, "connections_left")),
    "dead_letters": Column(BIGINT, lambda _, cell: _of(cell.recovery, "dead_letters")),
    "acts": Column(BIGINT, lambda _, cell: None if cell.recovery is None else len(cell.recovery.acts)),
    "failed_tasks": Column(BIGINT, lambda _, cell: cell.failed_tasks),
    "produced": Column(BIGINT, lambda _, cell: _of(cell.audit, "produced")),
    "stored": Column(BIGINT, lambda _, cell: _of(cell.audit, "stored")),
    "lost": Column(BIGINT, lambda _, cell: _of(cell.audit, "lost")),
    "duplicates": Column(BIGINT, lambda _, cell: _of(cell.audit, "duplicates")),
    "foreign": Column(BIGINT, lambda _, cell: _of(cell.audit, "foreign")),
    "stale": Column(BIGINT, lambda _, cell: _of(cell.audit, "stale")),
    "missing": Column(BIGINT, lambda _, cell: _of(cell.audit, "missing")),
    "not_deleted": Column(BIGINT, lambda _, cell: _of(cell.audit, "not_deleted")),
    "dead_rows": Column(BIGINT, lambda _, cell: _of(cell.bloat, "dead_rows")),
    "deadlocks": Column(BIGINT, lambda _, cell: _of(cell.bloat, "deadlocks")),
    "rollbacks": Column(BIGINT, lambda _, cell: _of(cell.bloat, "rollbacks")),
    "bytes_before": Column(BIGINT, lambda _, cell: _of(cell.bloat, "bytes_before")),
    "bytes_after": Column(BIGINT, lambda _, cell: _of(cell.bloat, "bytes_after")),
    "not_audited": Column(BIGINT, lambda _, cell: cell.not_audited),
    "lag_verdict": Column(VARCHAR, lambda _, cell: _of(cell.lag, "verdict")),
    "lag_growth_per_second": Column(DOUBLE, lambda _, cell: _of(cell.lag, "growth_per_second")),
    "latency_p50_ms": Column(DOUBLE, lambda _, cell: _of(cell.latency_ms, "p50")),
    "latency_p95_ms": Column(DOUBLE, lambda _, cell: _of(cell.latency_ms, "p95")),
    "latency_p99_ms": Column(DOUBLE, lambda _, cell: _of(cell.latency_ms, "p99")),
    "latency_p999_ms": Column(DOUBLE, lambda _, cell: _of(cell.latency_ms, "p999")),
    "searchable_p99_ms": Column(DOUBLE, lambda _, cell: _of(cell.searchable_ms, "p99")),
    "limit_records_per_second": Column(DOUBLE, lambda _, cell: cell.limit_records_per_second),
    **_bounds("limit_records_per_second", _limit),
    "efficiency": Column(DOUBLE, lambda _, cell: cell.efficiency),
    **_bounds("efficiency", lambda _, cell: cell.efficiency_by_block),
    "limited_by": Column(VARCHAR, lambda _, cell: _of(cell.bottleneck, "component")),
    "limited_by_cause": Column(VARCHAR, lambda _, cell: _of(cell.bottleneck, "cause") or None),
    "cpu_bound": Column(DOUBLE, lambda run, cell: _of(bound_of(cell, run), "share")),
    "passed": Column(BOOLEAN, lambda _, cell: cell.passed),
    "verdict": Column(VARCHAR, lambda _, cell: cell.verdict),
    "invalid": Column(VARCHAR, lambda _, cell: "; ".join(cell.invalid) or None),
    "notes": Column(VARCHAR, lambda _, cell: "; ".join(cell.notes) or None),
}
"""The columns of every run, in their order; `_columns` has those that depend on the run, too."""


BY_SERVICE = {
    "peak_memory_bytes": ("peak_memory", "resident_bytes"),
    "peak_heap_bytes": ("peak_memory", "heap_bytes"),
}
"""Columns with one for each service: the field of a cell with its services, and which figure of these it is."""


def _columns(summary: RunSummary) -> dict[str, Column]:

    def cpu(service: str) -> Column:
        return Column(DOUBLE, lambda _, cell: cell.cpu_seconds_per_million.get(service))

    def of(figures: str, figure: str, service: str) -> Column:
        return Column(DOUBLE, lambda _, cell: _of(getattr(cell, figures).get(service), figure))

    services = sorted({service for cell in summary.cells for service in cell.cpu_seconds_per_million})
    more = {
        f"{name}.{service}": of(figures, figure, service)
        for name, (figures, figure) in BY_SERVICE.items()
        for service in sorted({service for cell in summary.cells for service in getattr(cell, figures)})
    }
    return {**COLUMNS, **{f"cpu_seconds_per_million.{service}": cpu(service) for service in services}, **more}


def _rows(summary: RunSummary) -> list[list[Value]]:
    columns = _columns(summary).values()
    return [[column.of(summary, cell) for column in columns] for cell in summary.cells]


def _csv(summary: RunSummary) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_columns(summary))
    for values in _rows(summary):
        writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in values])
    return text.getvalue()


def _parquet(summary: RunSummary) -> bytes:
    """The same rows; a column has its type even if nothing was measured."""
    # Imported here, since no other format needs it.
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
    lines = [*heading(summary), *answer_lines(summary), *remarks(summary)]
    above = [f"- {escaped(line)}" for line in lines[:2]]
    below = [f"- {escaped(line.removeprefix('* '))}" for line in lines[2:]]
    rows = markdown_table(_MARKDOWN, map(_markdown_row, summary.cells), range(1, 8))
    if is_faults(summary):
        headers, texts = matrix_texts(summary)
        rows = markdown_table(headers, [[text.replace("\n", ", ") for text in row] for row in texts])
    return "\n\n".join("\n".join(part) for part in (above, rows, below) if part) + "\n"


def _markdown_row(cell: CellSummary) -> tuple[str, ...]:
    return (
        cell.cell,
        f"{cell.tasks}",
        *rate_and_spread(cell, in_brackets=True),
        formatted(cell.records_per_write, ",.1f"),
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
