"""The history of cells as one HTML page: a chart of each figure, with marks at changes, and the runs with links."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sinkbench.metrics import COLUMNS
from sinkbench.report.page import NAME, html_of
from sinkbench.report.parts import Chart, Figure, Opening, PageSection, Table
from sinkbench.report.plots import LineSeries, lines
from sinkbench.runs.store import write_text
from sinkbench.tables.history import FIGURES, Change, Row, changes, heading_of, shown


def write_history(found: Sequence[Sequence[Row]], to: Path, results: Path) -> None:
    """Writes the page to the file `to`; runs link to their reports below `results`, if there are any."""
    files = {row["run"]: results / row["run"] / NAME for rows in found for row in rows}
    links = {run: os.path.relpath(file, to.parent) for run, file in files.items() if file.exists()}
    lead, sections = [], []
    for place, rows in enumerate(found):
        new, heading = list(changes(rows)), heading_of(rows[0])
        lead += [f"{rows[0]['cell']}: {each.in_words}; {heading}" for each in new]
        marks = {each.row["run"]: each.in_words for each in new}
        texts = [(row["run"], row["commit"] or "", *(shown(row, each) for each in FIGURES)) for row in rows]
        texts = [(*each, marks.get(each[0], "")) for each in texts]
        table = Table(("run", "commit", *FIGURES, "changed"), texts, heading, (2, 3), (4,), links=links)
        sections.append(PageSection(f"cell-{place}", rows[0]["cell"], [*_figures(f"{place}", rows, new), table]))
    opening = Opening("What changed between the runs?", lead or ["No change was found."])
    write_text(to, html_of("History", ["Changes are never searched across machines or plans."], opening, sections))


def _figures(key: str, rows: Sequence[Row], new: Sequence[Change]) -> Iterator[Figure]:
    for figure, name in FIGURES.items():
        known = {number: row for number, row in enumerate(rows, start=1) if row[name] is not None}
        changed = [each for each in new if each.figure == figure]
        marked = {number: row for number, row in known.items() if any(each.row is row for each in changed)}
        drawn = [_line(*each, name) for each in (("run", known), ("first run after a change", marked)) if each[1]]
        if drawn:
            text = f"{figure} of {len(known)} runs: {', '.join(each.in_words for each in changed) or 'no change'}"
            svg = lines(f"{name}-{key}", drawn, "run", figure)
            note = "From the oldest to the newest run; a bar is the 95 % interval."
            yield Figure(note, [Chart(text, svg)], COLUMNS[figure])


def _line(title: str, rows: Mapping[int, Row], name: str) -> LineSeries:
    points = [
        (x, row[name], row.get(f"{name}_interval_low") or row[name], row.get(f"{name}_interval_high") or row[name])
        for x, row in rows.items()
    ]
    return LineSeries(title, points, [(x, y) for x, y, *_ in points] if title == "run" else [])
