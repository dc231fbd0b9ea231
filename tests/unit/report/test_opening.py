"""The first screen of a report: trials as points, a required rate, what was not tested."""

from dataclasses import replace
from pathlib import Path

import pytest

from sinkbench.cli.main import main
from sinkbench.errors import ReasonCode
from sinkbench.report.opening import about, opening, rates
from sinkbench.report.parts import Lines, Table
from sinkbench.results import Reason
from sinkbench.runs.reader import StoredRun, load_run
from tests.support.present import present
from tests.support.samplerun import keep_run

TWO = ("postgres/jdbc", "elasticsearch/camel-bulk")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep_run(tmp_path_factory.mktemp("run") / "results", TWO, multiples=(1,), blocks=3, seconds=4)


def test_every_trial_is_a_point_and_a_sink_a_colour(run: Path) -> None:
    kept = load_run(run)
    figure = present(rates(kept.summary, kept.trials, 20_000))
    (chart,) = figure.charts
    assert "postgres/jdbc " in chart.label
    texts = [each for name in ("postgres", "elasticsearch", "required: 20,000 records/s") for each in [f">{name}<"]]
    assert [text for text in texts if text not in chart.svg] == []
    assert rates(kept.summary.model_copy(update={"cells": []}), []) is None


def test_a_cell_that_is_not_final_is_hollow_and_says_so(run: Path) -> None:
    kept = load_run(run)
    first, other = kept.summary.cells
    reason = Reason(code=ReasonCode.NOT_WARM, text="still warming", figures={"records_per_second": 9.0})
    cold = first.model_copy(update={"at_least": reason, "records_per_second": None})
    summary = kept.summary.model_copy(update={"cells": [cold, other]})
    assert "postgres/jdbc 9 not final" in present(rates(summary, kept.trials)).charts[0].label


def test_a_required_rate_has_headroom_cores_and_disk(run: Path, tmp_path: Path) -> None:
    found = opening(load_run(run), 5_000)
    (table,) = [part for section in found.figures if section.key == "required" for part in section.parts]
    assert isinstance(table, Table)
    assert table.headers == ["pipeline", "records/s", "headroom", "cores at that rate", "disk GB a day"]
    assert [float(row[2].removesuffix(" times")) > 1 for row in table.rows] == [True, True]
    assert main(["report", str(run), "--rate", "90000", "--to", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("TOO SLOW") == 2
    assert page.index("At 90,000 records/s") < page.index("<nav")


def test_what_was_not_tested_and_how_to_repeat_it_is_said(run: Path) -> None:
    kept: StoredRun = load_run(run)
    config = {"config": {"camel.aggregation.size": "500"}}
    found = opening(replace(kept, connectors={**kept.connectors, TWO[1]: config}))
    risks, again = (
        [line for part in each.parts if isinstance(part, Lines) for line in part.lines] for each in found.asides
    )
    assert risks[0].startswith(f"Risk: {TWO[1]} loses buffered records when a task stops")
    assert any("sinkbench race faults" in line for line in risks)
    assert any(f"race results/{kept.summary.run}/plan.yaml" in line for line in again)
    assert any("MB/s" in line for line in about(kept))
