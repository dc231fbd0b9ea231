"""A run for other programs: CSV, Markdown, JSON, JUnit's XML, OpenMetrics and Parquet. See docs/format.md."""

import csv
import io
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

from loadgen.reading import printable
from sinkbench.errors import ResultsError
from sinkbench.metrics import METRICS
from sinkbench.metrics.metric import Export, Value
from sinkbench.results import RunSummary
from sinkbench.runs.differences import versions_of
from sinkbench.runs.reader import started_at
from sinkbench.runs.store import writing
from sinkbench.secrets import redacted
from sinkbench.summary.thresholds import outcomes
from sinkbench.tables.answers import answer_lines
from sinkbench.tables.cells import heading, main_tables, remarks
from sinkbench.tables.openmetrics import openmetrics
from sinkbench.tables.text import markdown

_ANY_WIDTH = 10_000
PARQUET = "parquet"


def export(summary: RunSummary, form: str, *more: RunSummary) -> str:
    """The run in one of `FORMATS`, several as CSV; ResultsError for any other format."""
    if form not in FORMATS:
        raise ResultsError(f"--format {form}: is not a format of exports; known: {', '.join([*FORMATS, PARQUET])}")
    if more and form != "csv":
        raise ResultsError(f"--format {form}: has one run; export several as csv or parquet, or one after the other")
    return _csv(summary, *more) if more else FORMATS[form](summary)


def write_parquet(to: Path, *runs: RunSummary) -> None:
    """Writes a file with the columns and rows of the runs' CSV, and types; UserError if it cannot be written."""
    # Imported here: it loads DuckDB, which no other format needs.
    from sinkbench.tables.parquet import write_rows

    types = {column.name: column.sql for column in _columns(runs)}
    rows = [
        {name: redacted(value) if isinstance(value, str) else value for name, value in zip(types, row, strict=True)}
        for row in _rows(list(_columns(runs)), runs)
    ]
    with writing(to):
        write_rows(to, types, rows)


_OF_RUN = (
    Export("run", "VARCHAR", lambda _, run: run.run),
    Export("started_at", "VARCHAR", lambda _, run: started_at(run.run)),
    Export("commit", "VARCHAR", lambda _, run: str(run.environment.get("commit") or "") or None),
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


def _columns(runs: Sequence[RunSummary]) -> Iterator[Export]:
    yield from COLUMNS.values()
    for each in BY_SERVICE.values():
        for name in sorted({service for run in runs for cell in run.cells for service in each.of(cell)}):
            value = partial(lambda of, key, cell, _: of(cell).get(key), each.of, name)
            yield Export(f"{each.name}.{name}", "DOUBLE", value)
    for name in sorted({name for run in runs for name in versions_of(run.environment)}):
        version = partial(lambda key, _, run: versions_of(run.environment).get(key), name)
        yield Export(f"version.{name}", "VARCHAR", version)


def _csv(*runs: RunSummary) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = list(_columns(runs))
    writer.writerow(column.name for column in columns)
    for values in _rows(columns, runs):
        writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in values])
    return text.getvalue()


def _rows(columns: Collection[Export], runs: Sequence[RunSummary]) -> Iterator[list[Value]]:
    return ([column.of(cell, run) for column in columns] for run in runs for cell in run.cells)


def _json(summary: RunSummary) -> str:
    return json.dumps(summary.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def _markdown(summary: RunSummary) -> str:
    parts = main_tables(summary, _ANY_WIDTH)
    below = [line.removeprefix("* ") for line in [*answer_lines(summary), *remarks(summary)]]
    return markdown([heading(summary), parts[:1], [*parts[1:], *below]])


def junit(summary: RunSummary) -> str:
    """The run as a test suite; a threshold that is not decided is skipped, which is neither passed nor failed."""
    cases = [(cell.cell, "checks", cell.passed if cell.trials else None, cell.verdict) for cell in summary.cells]
    cases += [(each.cell, f"{each.figure} {each.bound}", each.passed, each.line[2:]) for each in outcomes(summary)]
    verdicts = [passed for _, _, passed, _ in cases]
    counts = {"tests": len(cases), "failures": verdicts.count(False), "skipped": verdicts.count(None)}
    numbers = {name: str(count) for name, count in counts.items()}
    suite = ET.Element("testsuite", {"name": _text(summary.run), "errors": "0", **numbers})
    for cell, name, passed, line in cases:
        case = ET.SubElement(suite, "testcase", {"classname": _text(cell), "name": _text(name)})
        if passed is not True:
            ET.SubElement(case, "skipped" if passed is None else "failure", {"message": _text(line)})
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, "unicode") + "\n"


def _text(text: str) -> str:
    """A text without secrets and without characters that XML cannot hold."""
    return printable(redacted(text)).encode("utf-8", "replace").decode("utf-8")


FORMATS: dict[str, Callable[[RunSummary], str]] = {
    **{"csv": _csv, "json": _json, "junit": junit, "md": _markdown},
    "openmetrics": lambda summary: openmetrics(summary, COLUMNS.values(), BY_SERVICE.values()),
}
