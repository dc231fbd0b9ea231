"""The report of a run: its first screen, then the sections of `sinkbench show --all` with charts, as one HTML text in
which everything from a result is escaped."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import JsonValue
from rich.table import Table as RichTable

from sinkbench.metrics import MEANINGS, METHODS, anchor
from sinkbench.metrics.cost import with_prices
from sinkbench.metrics.names import cell_name
from sinkbench.report import charts
from sinkbench.report.opening import about, opening
from sinkbench.report.parts import Figure, File, Lines, Meanings, Opening, PageSection, Part, Table, of_rich
from sinkbench.report.timeline import courses_of, timeline
from sinkbench.results import Prices, Profile, RunSummary
from sinkbench.runs.differences import flat
from sinkbench.runs.reader import StoredRun, load_run
from sinkbench.runs.store import write_text
from sinkbench.secrets import redacted
from sinkbench.tables.cells import sections

NAME = "report.html"
# Unlike a terminal, a page has room for everything.
_WIDE = 10_000
_MOST_NAMED = 20


def write_report(run: Path, to: Path | None = None, prices: Prices | None = None, rate: float | None = None) -> Path:
    """Writes the report of `run`, a folder or its summary.json, to `to` or the folder's report.html, and returns the
    path. `prices` replace those of the run, `rate` is the required one. UserError if it cannot be read or written."""
    kept = load_run(run)
    if prices is not None:
        kept = replace(kept, summary=with_prices(kept.summary, prices))
    folder = run if run.is_dir() else run.parent
    file = folder / NAME if to is None else to
    page = html_of(f"Run {kept.summary.run}", about(kept), opening(kept, rate), sections_of(kept, folder))
    write_text(file, page)
    return file


def sections_of(kept: StoredRun, folder: Path) -> list[PageSection]:
    """The sections below the first screen; `folder` has the run's samples, plan and connector files."""
    summary = kept.summary
    courses, missing = courses_of(folder, kept.trials)
    files, unread = _files(folder)
    names = {cell.cell: cell_name(cell, summary) for cell in summary.cells}
    names |= {trial.cell: trial.label for trial in kept.trials if trial.cell not in names}
    pictures = {"cells": [charts.against_tasks(summary), charts.against_load(summary)], "cpu": [charts.cpu(summary)]}
    found = []
    for section in sections(summary, _WIDE, kept.trials):
        figures = [figure for figure in pictures.get(section.key, ()) if figure is not None]
        found.append(PageSection(section.key, section.title, [*figures, *_parts(section.title, section.parts)]))
    left_out = [*missing, *unread]
    more = len(left_out) - _MOST_NAMED
    rest = [*left_out[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
    return [
        *found,
        PageSection("course", "Each trial over time", timeline(names, kept.trials, courses)),
        PageSection("profiles", "Flame graphs", _flame_graphs(summary.profiles)),
        PageSection("environment", "Environment", _environment(summary)),
        PageSection("configuration", "Plan and connectors", files),
        PageSection("left-out", "Not in this report", [Lines(rest, bullets=True)] if rest else []),
    ]


def _parts(title: str, parts: Sequence[str | RichTable]) -> Iterator[Part]:
    for is_text, some in groupby(parts, key=lambda part: isinstance(part, str)):
        if is_text:
            yield Lines([str(line) for line in some])
        else:
            yield from (of_rich(part, title) for part in some if isinstance(part, RichTable))


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


def _flame_graphs(profiles: Sequence[Profile]) -> list[Table]:
    """Links below the run's folder, where the report is unless it was written elsewhere."""
    rows = {f"{each.cell}, {each.service}": each for each in profiles}
    links = {name: each.file for name, each in rows.items()}
    shown = [(name, f"{each.samples:,}") for name, each in rows.items()]
    caption = "Stacks of one more trial a cell, in no figure"
    return [Table(("flame graph", "samples"), shown, caption, numbers=(1,), links=links)] if rows else []


def _environment(summary: RunSummary) -> list[Table]:
    rows = [(name, _value(value)) for name, value in flat(summary.environment, ": ")]
    return [Table(("what", "found"), rows, "What the run was taken on", sentences=(1,))] if rows else []


def _value(value: JsonValue) -> str:
    if value is None:
        return "not known"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def html_of(title: str, heading: Sequence[str], opening: Opening, sections: Sequence[PageSection]) -> str:
    """The whole page: title, heading, first screen, and the sections that have parts. Secrets are redacted."""
    files = PackageLoader("sinkbench.report", ".")
    pages = Environment(loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.tests["of"] = lambda part, kind: type(part).__name__ == kind
    # Only these are already HTML: the drawings of draw.py, and this package's style.
    pages.filters["as_svg"] = Markup
    pages.filters["anchor"] = anchor
    style = Markup(pages.get_template("style.css").render())  # noqa: S704
    shown = [section for section in sections if section.parts]
    if meanings := _meanings([*opening.figures, *opening.asides, *shown]):
        shown.append(PageSection("figures", "What each figure means", [Meanings(meanings)]))
    texts = {"title": title, "heading": heading, "opening": opening}
    page = pages.get_template("page.html")
    return redacted(page.render(texts, sections=shown, style=style, methods=METHODS))


def _meanings(sections: Sequence[PageSection]) -> dict[str, str]:
    """The figures in the sections and their meanings, in the order of docs/methods.md."""
    shown = set()
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, Figure):
            shown.add(part.meaning)
        elif isinstance(part, Table):
            shown |= {part.meanings[header] for header in part.headers if header in part.meanings}
    return {heading: said for heading, said in MEANINGS.items() if heading in shown}
