"""Runs over time: one Parquet file with a row for each cell of a run, and since when a cell's level is another.

Cells of another machine, or of another plan, are another series."""

import fcntl
import hashlib
import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from sinkbench.analysis.changes import change_points
from sinkbench.analysis.words import NOT_MEASURED, few_of, significant
from sinkbench.errors import ResultsError
from sinkbench.runs.differences import conditions, machine_of, versions_of
from sinkbench.runs.reader import StoredRun
from sinkbench.runs.store import replacing, writing
from sinkbench.tables.export import COLUMNS
from sinkbench.tables.parquet import database, write_rows
from sinkbench.tables.text import new_table, plain_text, words

FIGURES = {"records/s": "records_per_second", "CPU s per million records": "total_cpu_seconds_per_million"}
_ENDS = ("records_per_second_interval_low", "records_per_second_interval_high")
_EXPORTED = ("run", "started_at", "plan", "cell", "passed", *FIGURES.values(), *_ENDS)
_TYPES: dict[str, str] = {name: COLUMNS[name].sql for name in _EXPORTED}
_TYPES |= dict.fromkeys(("commit", "conditions", "machine", "versions"), "VARCHAR")
Row = Mapping[str, Any]
"""A cell of a run by the columns of exports; `commit` of what was measured, `conditions` a digest of the plan without
its pipelines, `versions` a JSON object."""


class Change(NamedTuple):
    """The first row of a new level, and in words by how much it differs, and what else is new there."""

    figure: str
    row: Row
    in_words: str


def rows_of(kept: StoredRun, commit: str | None) -> list[Row]:
    summary, environment = kept.summary, kept.summary.environment
    digest = hashlib.sha256(json.dumps(conditions(kept.plan), sort_keys=True).encode()).hexdigest()[:7]
    about = {"commit": commit or environment.get("commit"), "conditions": digest, "machine": machine_of(environment)}
    about["versions"] = json.dumps(versions_of(environment), sort_keys=True)
    return [{**{name: COLUMNS[name].of(cell, summary) for name in _EXPORTED}, **about} for cell in summary.cells]


def add(file: Path, rows: Sequence[Row]) -> None:
    """Adds rows in place of those of the same runs, in turn with other writers. UserError: the old file is kept."""
    new = {(row["run"], row["machine"]) for row in rows}
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            old = [row for row in _read(file) if (row["run"], row["machine"]) not in new] if file.exists() else []
            with replacing(file) as temporary:
                ordered = sorted([*old, *rows], key=lambda row: (row["started_at"] or "~", row["run"]))
                write_rows(temporary, _TYPES, ordered)
        finally:
            os.close(folder)


def read(file: Path) -> list[list[Row]]:
    """The rows of each series by their start. ResultsError if there is no history, or it is damaged."""
    if not file.exists():
        raise ResultsError(f"{file}: there is no history; `sinkbench history add RUN` makes one")
    series: dict[str, list[Row]] = {}
    for row in _read(file):
        series.setdefault(f"{heading_of(row)} {row['cell']}", []).append(row)
    return list(series.values())


def _read(file: Path) -> list[Row]:
    with database(file, "is no history of this sinkbench", "move it away") as opened:
        found = opened.read_parquet(str(file)).select(*_TYPES).fetchall()
    return [dict(zip(_TYPES, values, strict=True)) for values in found]


def heading_of(row: Row) -> str:
    return f"plan {row['plan']} ({row['conditions']}), {row['machine']}"


def changes(rows: Sequence[Row]) -> Iterator[Change]:
    for figure, name in FIGURES.items():
        known = [row for row in rows if row[name]]
        values = [row[name] for row in known]
        places = change_points(values)
        levels = [statistics.median(values[start:end] or [0]) for start, end in pairwise([0, *places, len(values)])]
        for place, (before, after) in zip(places, pairwise(levels), strict=True):
            row, much = known[place], f"{100 * (after / before - 1):+.1f} % {figure}"
            since = (row["started_at"] or row["run"])[:16].replace("T", " ")
            yield Change(figure, row, f"{much} since {since} ({_news(known[place - 1], row)})")


def _news(before: Row, after: Row) -> str:
    was, now = ({"commit": (row["commit"] or "unknown")[:10], **json.loads(row["versions"])} for row in (before, after))
    new = [f"{key} {was.get(key)} to {now.get(key)}" for key in {**was, **now} if was.get(key) != now.get(key)]
    return few_of(new) or "same commit and versions"


def shown(row: Row, figure: str) -> str:
    return NOT_MEASURED if row[FIGURES[figure]] is None else significant(row[FIGURES[figure]])


def history_text(found: Sequence[Sequence[Row]]) -> str:
    by: dict[str, list[tuple[str, ...]]] = {}
    for rows in found:
        ends = (" ".join(shown(row, figure) for row in rows[-3:]) for figure in FIGURES)
        changed = "; ".join(each.in_words for each in changes(rows)) or NOT_MEASURED
        by.setdefault(heading_of(rows[-1]), []).append((rows[0]["cell"], f"{len(rows)}", *ends, changed))
    last = [f"last {figure}" for figure in FIGURES]
    blocks = ((head, new_table("cell", "runs", *last, words("changed"), rows=rows), "") for head, rows in by.items())
    return plain_text(part for block in blocks for part in block)
