"""The documents: their links lead somewhere, and what they say of figures is what the tables and the report show."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from sinkbench.metrics import COLUMNS, MEANINGS, METHODS, WHERE, anchor
from sinkbench.report.parts import of_rich
from sinkbench.results import Fit, Scaling, ScalingPoint
from sinkbench.runs.compare import FIGURES
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.kind import Capabilities, Sink
from sinkbench.tables.cells import render
from sinkbench.tables.comparison import headers
from sinkbench.tables.export import BY_SERVICE
from sinkbench.tables.export import COLUMNS as EXPORTED
from sinkbench.tables.lines import scaling_table
from tests.support.present import present
from tests.support.trials import cell_summary, run_summary

DOCS = sorted((CHECKOUT / "docs").rglob("*.md"))
METHODS_PAGE = CHECKOUT / METHODS
METHODS_TEXT = METHODS_PAGE.read_text("utf-8")
# Columns that say what a row is of, and hold no figure.
NAMES = {"scaling", "time of one record", "cell"}
# The same of an export, and what counts trials or repeats the plan.
UNMEASURED = {
    *("run", "complete", "resumed", "plan", "plan_sha256", "stack", "cell", "label", "pipeline", "sink", "mode"),
    *("workers", "tasks", "tasks_per_worker", "tasks_before", "overrides", "target", "form", "partitions", "acks"),
    *("settings", "variables"),
    *("trials", "valid_trials", "notes"),
    *("currency", "fault", "recovered", "started_at", "commit"),
}


def prose(page: Path) -> str:
    """A page without its code, in which nothing is a link or a heading."""
    return re.sub(r"```.*?```|^ {4}.*?$|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def headings(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    return [re.sub(r"[`*]", "", heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]


@pytest.mark.parametrize("page", [CHECKOUT / "README.md", *DOCS], ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_link_within_the_checkout_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        file, _, place = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        if not there.exists() or (place and place not in {anchor(heading) for heading in headings(there)}):
            broken.append(target)
    assert broken == []


def test_readme_leads_to_every_page_of_the_manual_and_the_studies_have_a_list() -> None:
    linked = set(re.findall(r"\]\((docs/[\w.-]+\.md)", (CHECKOUT / "README.md").read_text(encoding="utf-8")))
    assert {f"docs/{page.name}" for page in DOCS if page.parent.name == "docs"} <= linked
    studies = {page.name for page in DOCS if page.parent.name == "studies"} - {"README.md"}
    listed = (CHECKOUT / "docs" / "studies" / "README.md").read_text(encoding="utf-8")
    assert studies == set(re.findall(r"\]\(([\w-]+\.md)\)", listed))


def test_the_contents_of_methods_are_its_sections_in_their_order() -> None:
    listed = re.findall(r"\]\(#([^)]+)\)", METHODS_TEXT.partition("\n## ")[0])
    assert listed == [anchor(section) for section in re.findall(r"^## (.+)$", METHODS_TEXT, re.MULTILINE)]


def section_of(figure: str) -> str:
    return METHODS_TEXT.partition(f"\n### {figure}\n\n")[2].partition("\n#")[0]


@pytest.mark.parametrize("figure", re.findall(r"^### (.+)$", METHODS_TEXT, re.MULTILINE))
def test_every_figure_of_methods_has_the_same_four_headings(figure: str) -> None:
    headed = re.findall(r"^- \*\*(\w+)\.\*\*", section_of(figure), re.MULTILINE)
    assert headed == ["Definition", "Formula", "Resolution", "Limits"]


@pytest.mark.parametrize("figure", MEANINGS)
def test_what_the_report_says_of_a_figure_is_its_definition_in_methods(figure: str) -> None:
    assert " ".join(section_of(figure).split()).startswith(f"- **Definition.** {MEANINGS[figure]}")


def test_the_report_lists_figures_in_the_order_of_methods() -> None:
    assert [heading for heading in headings(METHODS_PAGE) if heading in MEANINGS] == list(MEANINGS)


def test_every_column_of_the_terminals_tables_has_its_heading() -> None:
    law = Scaling(label="a", supported=True, points=[ScalingPoint(tasks=1, measured=1)], one_task=Fit(estimate=1))
    summary = run_summary(cell_summary("postgres/jdbc", 5e5))
    assert {*of_rich(present(scaling_table([law])), "").headers} - NAMES - COLUMNS.keys() == set()
    found = {head for figure in FIGURES if not figure.endswith(" ms") for head in headers(figure)}
    assert found - NAMES - COLUMNS.keys() == set()
    assert {*COLUMNS.values()} <= MEANINGS.keys()
    assert WHERE in render(summary)


def test_every_figure_of_an_export_leads_to_its_heading() -> None:
    rows = re.findall(r"^- (`.+?): (.*)$", (CHECKOUT / "docs" / "format.md").read_text(), re.MULTILINE)
    described = {name: text for names, text in rows for name in re.findall(r"`([\w.<>]+)`", names)}
    names = [*EXPORTED, *(f"{name}.<service>" for name in BY_SERVICE)]
    assert [name for name in names if name not in described] == []
    measured = [name for name in names if name not in UNMEASURED]
    assert [name for name in measured if not re.search(r"\((methods|trials)\.md#", described[name])] == []


def test_every_dependency_says_what_it_is_for() -> None:
    lines = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.scripts]")[0].splitlines()
    listed = [line for line in lines if line.startswith('    "')]
    assert len(listed) > 30
    assert [line for line in listed if not re.search(r'",  # \w', line)] == []


def test_the_page_on_sinks_lists_every_method_and_capability() -> None:
    page = (CHECKOUT / "docs" / "sinks.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", page))
    methods = {name for name in vars(Sink) if not name.startswith("_")}
    assert methods | {each.name for each in fields(Capabilities)} <= listed
