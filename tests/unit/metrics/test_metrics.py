"""A figure that is declared once is summed up, shown, exported and explained."""

import csv
import io
from dataclasses import replace

import pytest

from sinkbench.analysis.words import whole
from sinkbench.metrics import METRICS, connections, cpu, memory
from sinkbench.metrics.memory import RESOURCES
from sinkbench.metrics.metric import Seen, fields_of, scalar
from sinkbench.results import TrialRecord
from sinkbench.summary.cells import summarize
from sinkbench.tables import export, percell
from sinkbench.tables.text import plain_text
from tests.support.trials import CELL, run_summary, sample, trial

PAGES = scalar(
    "pages_per_record",
    "Pages",
    "Pages of the database that a record has dirtied.",
    lambda seen: max((each.signs.get("pages", 0) for each in seen.samples), default=0) / seen.records,
    (RESOURCES, 55, "dirty\npages", whole),
)
SEEN = Seen(samples=[sample(0, 0, signs={"pages": 100.0}), sample(1, 10, signs={"pages": 300.0})], records=10)


def test_a_figure_of_a_trial_is_kept_by_its_name() -> None:
    found = trial(**fields_of([PAGES], lambda metric: metric.of_trial(SEEN)))
    assert found.figures == {"pages_per_record": 30.0}
    assert TrialRecord.model_validate(found.model_dump()).figures == found.figures


def test_a_new_figure_is_summed_up_shown_and_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [trial(block=block, figures={"pages_per_record": each}) for block, each in enumerate((10, 30, 20), start=1)]
    summary = run_summary(*summarize([CELL], taken, metrics=[*METRICS, PAGES]))
    assert summary.cells[0].figures["pages_per_record"].median == 20
    monkeypatch.setattr(percell, "METRICS", [*METRICS, PAGES])
    fetched = summary.cells[0].model_copy(update={"fetched_bytes_per_record": 9.0})
    table = percell.cell_table(RESOURCES, run_summary(fetched))
    assert table is not None
    assert "postgres/jdbc 24 - - - - 20 9" in " ".join(plain_text([table]).split())
    monkeypatch.setitem(export.COLUMNS, "pages_per_record", PAGES.exports[0])
    text = export.export(summary, "csv")
    assert isinstance(text, str)
    assert next(csv.DictReader(io.StringIO(text)))["pages_per_record"] == "20.0"


def test_a_figure_that_a_trial_lacks_is_none_of_the_cell() -> None:
    taken = [trial(figures={"pages_per_record": 1.0}), trial(block=2)]
    (cell,) = summarize([CELL], taken, metrics=[*METRICS, PAGES])
    assert cell.figures == {}


def test_every_figure_with_a_column_says_what_it_means() -> None:
    meant = {each.heading for each in METRICS if each.meaning}
    assert {each.heading for each in METRICS if each.columns or each.heads} <= meant


@pytest.mark.parametrize("module", [connections, cpu, memory])
def test_of_a_trial_without_samples_nothing_is_0(module: object) -> None:
    found = fields_of(module.METRICS, lambda metric: metric.of_trial(Seen(records=9)))  # type: ignore[attr-defined]
    assert {value for value in found.values() if isinstance(value, float | int)} == set()


def test_counters_that_began_again_and_a_topic_that_was_not_read_leave_no_figures() -> None:
    seen = replace(SEEN, task_metrics={"tasks_fetched_bytes_total": 6_400.0})
    assert fields_of(memory.METRICS, lambda metric: metric.of_trial(seen))["fetched_bytes_per_record"] == 640.0
    unread = replace(seen, read_all=False, counters_go_on=False)
    assert fields_of(memory.METRICS, lambda metric: metric.of_trial(unread))["fetched_bytes_per_record"] is None
    assert fields_of(cpu.METRICS, lambda metric: metric.of_trial(unread))["cpu_seconds_per_million"] == {}
