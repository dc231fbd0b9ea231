"""The notebook of docs/studies draws what stored runs hold."""

import json
from pathlib import Path
from shlex import join
from typing import Any, NamedTuple

import nbformat
import pytest
from nbclient import NotebookClient

from sinkbench.metrics.cpu import total_cpu_seconds
from sinkbench.metrics.queries import job_of
from sinkbench.metrics.taken import quotable
from sinkbench.runs.reader import StoredRun, load_run
from sinkbench.settings import CHECKOUT
from tests.frozen.make import stored_run

pytestmark = pytest.mark.long
NOTEBOOK = CHECKOUT / "docs" / "studies" / "from-export-to-figures.ipynb"
# The tests' own cell: what matplotlib has drawn, and the rows of the table.
SEEN = """
import json

def drawn(axis):
    return [[of.get_label(), *map(float, point)] for of in axis.collections for point in of.get_offsets()]

names = [[label.get_text() for label in axis.get_yticklabels()] for axis in rates.axes]
panels = [[axis.get_title(loc="left"), drawn(axis)] for axis in rates.axes]
print(json.dumps([panels, names, drawn(costs.axes[0]), table.fetchall()]))
"""


class Seen(NamedTuple):
    """What the executed notebook shows: panels with a title, and points with run, cell and rate."""

    panels: dict[str, set[tuple[str, str, float]]]
    costs: set[tuple[str, float, float]]
    table: list[list[Any]]
    text: str


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of one run not every cell has a final rate, and nothing was asked; in the other the cells do three jobs."""
    return [stored_run(name, tmp_path_factory.mktemp("it's stored")) for name in ("drain-quick", "drain-queries")]


@pytest.fixture(scope="module")
def seen(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Seen:
    book = nbformat.read(NOTEBOOK, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell(SEEN))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOTEBOOK_RUNS", join(map(str, runs)))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        NotebookClient(book, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    texts = ["".join(out.get("text", "") for out in cell.outputs) for cell in book.cells if cell.cell_type == "code"]
    panels, names, costs, table = json.loads(texts.pop())
    rates = {
        title.replace("\n", " "): {(run, labels[int(y)], rate) for run, rate, y in points}
        for (title, points), labels in zip(panels, names, strict=True)
    }
    assert sum("image/png" in out.get("data", {}) for cell in book.cells for out in cell.get("outputs", [])) == 2
    return Seen(rates, {(cell, rate, round(cpu, 6)) for cell, rate, cpu in costs}, table, "\n".join(texts))


def job(kept: StoredRun, cell: str) -> str:
    """A cell's job as the notebook calls it, by sinkbench's own rule."""
    found = job_of(next(each for each in kept.summary.cells if each.cell == cell))
    if found is None:
        return "job not known: no queries"
    return f"from an index: {', '.join(sorted(found)) or 'nothing'}"


def test_the_figures_have_a_point_for_each_trial_that_counts(runs: list[Path], seen: Seen) -> None:
    rates: dict[str, set[tuple[str, str, float]]] = {}
    costs = set()
    for kept in map(load_run, runs):
        for cell in {trial.cell for trial in kept.trials}:
            for trial in quotable(each for each in kept.trials if each.cell == cell):
                rate = trial.records_per_second or 0.0
                rates.setdefault(job(kept, cell), set()).add((kept.summary.run, cell, rate))
                costs.add((cell, rate, round(total_cpu_seconds(trial) or 0.0, 6)))
    assert seen.panels == rates
    assert len(rates) == 4
    count = sum(map(len, rates.values()))
    assert 6 < count < sum(len(load_run(run).trials) for run in runs)
    assert seen.costs == costs
    assert f"{count} trials count" in seen.text


def test_the_table_has_the_median_and_the_range_or_why_there_is_none(runs: list[Path], seen: Seen) -> None:
    run = load_run(runs[0]).summary.run
    shown = {cell: (rate, trials) for of, _, cell, rate, trials, _ in seen.table if of == run}
    assert len(seen.table) == 9
    assert shown["postgres/jdbc@3x1"] == ("65,199 (49,186-69,759)", 3)
    assert shown["elasticsearch/camel-bulk@3x1"][0].startswith("still warming: each trial was faster")
    assert all(text in seen.text for text in (run, "65,199 (49,186-69,759)", "version.debezium"))


def test_the_notebook_is_kept_without_outputs_and_every_cell_says_what_is_asked() -> None:
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell.cell_type for cell in book.cells] == ["markdown", "code"] * 7
    assert [cell for cell in book.cells[1::2] if cell.outputs or cell.execution_count is not None] == []
    assert [cell.source for cell in book.cells[::2] if "?**" not in cell.source] == []
