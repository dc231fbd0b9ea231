"""A run for other programs: CSV, Markdown, JSON and JUnit's XML. See docs/format.md."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from functools import partial

from sinkbench.analysis.words import formatted
from sinkbench.errors import ResultsError
from sinkbench.metrics import METRICS
from sinkbench.metrics.audit import counted
from sinkbench.metrics.connections import connections
from sinkbench.metrics.metric import ByService, Export, Value
from sinkbench.metrics.rate import has_interval, rate_and_spread
from sinkbench.results import CellSummary, RunSummary
from sinkbench.tables.answers import answer_lines
from sinkbench.tables.cells import heading, remarks
from sinkbench.tables.faults import is_faults, matrix_texts
from sinkbench.tables.junit import junit
from sinkbench.tables.text import escaped, markdown_table


def export(summary: RunSummary, form: str) -> str:
    """The run in one of `FORMATS`; ResultsError for any other format."""
    if form not in FORMATS:
        raise ResultsError(f"--format {form}: is not a format of exports; known: {', '.join(FORMATS)}")
    return FORMATS[form](summary)


_OF_RUN = (
    Export("run", "VARCHAR", lambda _, run: run.run),
    Export("complete", "BOOLEAN", lambda _, run: run.complete),
    Export("resumed", "BIGINT", lambda _, run: len(run.resumed)),
    Export("plan", "VARCHAR", lambda _, run: run.plan.name),
    Export("plan_sha256", "VARCHAR", lambda _, run: run.plan.sha256),
    Export("stack", "VARCHAR", lambda _, run: str(run.environment.get("stack") or "") or None),
)
_IN_ORDER = sorted(METRICS, key=lambda metric: metric.place)
COLUMNS = {each.name: each for each in (*_OF_RUN, *(each for metric in _IN_ORDER for each in metric.exports))}
"""The columns of every run, in order; `_columns` adds those of its services."""
BY_SERVICE = {each.name: each for metric in METRICS for each in metric.services}


def _columns(summary: RunSummary) -> dict[str, Export]:
    return {**COLUMNS, **{each.name: each for each in _of_services(summary)}}


def _of_services(summary: RunSummary) -> Iterator[Export]:
    for each in BY_SERVICE.values():
        for service in sorted({service for cell in summary.cells for service in each.of(cell)}):
            yield Export(f"{each.name}.{service}", "DOUBLE", partial(_of_service, each, service))


def _of_service(figure: ByService, service: str, cell: CellSummary, _: RunSummary) -> Value:
    return figure.of(cell).get(service)


def _csv(summary: RunSummary) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = _columns(summary)
    writer.writerow(columns)
    for cell in summary.cells:
        values = [column.of(cell, summary) for column in columns.values()]
        writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in values])
    return text.getvalue()


def _json(summary: RunSummary) -> str:
    return json.dumps(summary.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def _markdown(summary: RunSummary) -> str:
    lines = [*heading(summary), *answer_lines(summary), *remarks(summary)]
    above = [f"- {escaped(line)}" for line in lines[:2]]
    below = [f"- {escaped(line.removeprefix('* '))}" for line in lines[2:]]
    span = "95 % CI or (min-max)" if any(map(has_interval, summary.cells)) else "min-max"
    heads = ("cell", "tasks", "records/s", span, "records/write", "peak conns", "lost", "dupl.", "verdict")
    rows = markdown_table(heads, map(_markdown_row, summary.cells), range(1, 8))
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


FORMATS: dict[str, Callable[[RunSummary], str]] = {
    "csv": _csv,
    "json": _json,
    "junit": junit,
    "md": _markdown,
}
