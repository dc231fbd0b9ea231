"""The report of a run: its first screen, the course of its trials, and that nothing in it is read as HTML."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sinkbench.cli.main import main
from sinkbench.errors import ReasonCode
from sinkbench.report.charts import against_load
from sinkbench.report.opening import rates, untested
from sinkbench.report.parts import Figure
from sinkbench.report.plots import LineSeries, far_apart, lines, short, shortened, ticks
from sinkbench.report.timeline import Series, course_of, read_samples
from sinkbench.results import CellSummary, LatencyMs, Reason
from sinkbench.runs.reader import load_run
from sinkbench.runs.store import read_summary
from tests.support.commands import Command
from tests.support.page import Page
from tests.support.present import present
from tests.support.samplerun import DOOMED, SCRIPT, keep_run

LABEL = f'a {SCRIPT} $x_1$ "label" & \u6570 \U0001f680 more'


def written(run: Path, to: Path | None = None) -> str:
    assert main(["report", str(run), *(["--to", str(to)] if to else [])]) == 0
    return (to or run / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep_run(tmp_path_factory.mktemp("run") / "results", everything=True, label=LABEL)


@pytest.fixture(scope="module")
def text(run: Path) -> str:
    return written(run)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def plain(root: Path, blocks: int = 1) -> Path:
    """A small run of one pipeline."""
    return keep_run(root / "results", pipelines=["postgres/jdbc"], multiples=[1], blocks=blocks, seconds=5)


def test_the_path_is_printed_and_the_file_is_in_the_runs_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = plain(tmp_path)
    written(folder)
    assert capsys.readouterr().out == f"{folder}/report.html\n"
    assert written(folder / "summary.json", tmp_path / "other.html").startswith("<!DOCTYPE html>")


def test_a_run_with_everything_has_every_section(page: Page) -> None:
    first = [None, "rates", "risks", "again"]
    below = ["cells", "bottlenecks", "cpu", "memory", "cost", "pool", "notes", "trials"]
    below += ["course", "environment", "configuration", "figures"]
    assert page.sections == first + below
    links = {attributes["href"] or "" for attributes in page.all("a")}
    sections = {link for link in links if not link.startswith("#figure-")}
    assert sections == {"#main", *(f"#{section}" for section in below)}


def test_what_a_result_holds_is_text_and_no_html(page: Page, text: str) -> None:
    assert page.all("script") == page.all("b") == []
    assert SCRIPT not in text
    said = "".join(page.texts)
    assert [each for each in (LABEL, DOOMED, f"Xeon {SCRIPT}") if each not in said] == []


def test_the_page_loads_nothing_and_runs_nothing(page: Page, text: str) -> None:
    assert not re.search("https?://", text)
    assert "url(" not in re.sub(r"url\(#", "", text)
    loading = {"src", "href", "srcset", "data", "action"}
    addresses = [each[name] for _, each in page.elements for name in loading & each.keys()]
    assert all(address is not None and address.startswith(("#", "data:,")) for address in addresses)
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


def test_every_figure_has_a_caption_and_charts_with_names(text: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    assert len(figures) > 10
    for figure in figures:
        found = Page(figure)
        assert len(found.all("figcaption")) == 1
        charts = [attributes for attributes in found.all("div") if attributes.get("role") == "img"]
        assert len(charts) == len(found.all("svg")) > 0
        assert all(attributes["aria-label"] for attributes in charts)


def test_the_latency_is_drawn_against_the_load_where_a_pipeline_has_it_at_several_rates(run: Path) -> None:
    summary = read_summary(run)

    def at(rate: float, p99: float | None) -> CellSummary:
        told = {"latency_ms": None if p99 is None else LatencyMs(p50=1.0, p99=p99, count=1_000)}
        plain = {"fault": None, "reads_per_second": None, "offered_records_per_second": rate}
        return summary.cells[0].model_copy(update={**plain, **told})

    def drawn(*cells: CellSummary) -> Figure | None:
        return against_load(summary.model_copy(update={"cells": list(cells)}))

    assert " from 2.0 to 40.0 ms" in present(drawn(at(950, 40.0), at(500, 2.0), at(1_050, None))).charts[0].label
    assert drawn(at(500, 2.0), at(1_050, None)) is None


def test_the_elements_are_closed_in_their_order_and_no_id_is_there_twice(page: Page) -> None:
    assert page.open == []
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert [name for name, count in ids.items() if count > 1] == []
    referred = {value[1:] for _, each in page.elements if (value := each.get("href")) and value.startswith("#")}
    assert referred <= ids.keys()
    assert [len(page.all(tag)) for tag in ("main", "nav", "header", "h1", "title")] == [1] * 5


def test_colours_are_left_to_the_page(text: str) -> None:
    body = text[text.index("</style>") :]
    assert re.findall(r"(?:fill|stroke): ?#\w+", body) == []
    assert "font-family" not in body
    assert [each for each in ("prefers-color-scheme: dark", "@media print") if each not in text] == []


def test_a_run_with_one_trial_has_no_more_than_it_measured(tmp_path: Path) -> None:
    found = Page(written(plain(tmp_path)))
    assert "the run has nothing to compare" in " ".join(found.texts)
    assert not {"queries", "pool", "left-out"} & set(found.sections)
    assert {"rates", "cells", "cpu", "trials", "course", "environment"} <= set(found.sections)


def test_missing_and_damaged_samples_are_named_and_the_other_charts_stay(tmp_path: Path) -> None:
    folder = plain(tmp_path, blocks=3)
    first, second, third = sorted((folder / "samples").iterdir())
    first.unlink()
    second.write_text("seconds,stored\nnever,1\n")
    found = Page(written(folder))
    said = " ".join(found.texts)
    assert f"samples/{first.name} is missing" in said
    assert f"samples/{second.name} is damaged" in said
    assert len([each for each in found.all("div") if "over 5 seconds" in (each.get("aria-label") or "")]) == 1
    third.unlink()
    assert "course" not in Page(written(folder)).sections


def test_samples_outside_of_the_run_are_not_read(tmp_path: Path) -> None:
    folder = plain(tmp_path)
    trial = json.loads((folder / "trials.jsonl").read_text()) | {"samples": "../../secret.csv"}
    (folder / "trials.jsonl").write_text(json.dumps(trial) + "\n")
    assert "../../secret.csv is not in the run" in " ".join(Page(written(folder)).texts)


def test_a_file_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path, sinkbench: Command) -> None:
    run = plain(tmp_path / "a")
    # /proc takes no files, not even of root, as a disk that is read-only.
    for to in ("/proc/report.html", str(tmp_path), str(tmp_path / "no" / "such" / "folder.html")):
        assert f"{to}: cannot be written" in sinkbench.refused("report", run, "--to", to)


@pytest.mark.parametrize(
    ("ticks", "kept"), [([3, 6, 12, 24], [3, 6, 12, 24]), ([3, 6, 12, 24, 48, 96], [3, 12, 24, 48, 96]), ([5], [5])]
)
def test_labels_of_ticks_have_room(ticks: list[float], kept: list[float]) -> None:
    assert far_apart(ticks) == kept


def test_a_scale_has_room_for_the_longest_bar_and_its_numbers_are_round() -> None:
    bars = [LineSeries(name, [(3, 10, 5, 95), (6, 20, 15, 60)]) for name in "abc"]
    assert {"0", "20", "80"} <= set(re.findall(r">(\d+)</text>", lines("k", bars, "tasks", "records/s")))
    assert ticks(123_000) == [0, 50_000, 100_000]
    assert [short(value) for value in (0, 999, 1_500, 20_000, 1.2e6)] == ["0", "999", "1.5 k", "20 k", "1.2 M"]


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    assert shortened("a name\nof one line\x01", 30) == "a name of one line?"
    found = shortened("postgres/jdbc-with-quite-a-long-name with 24 tasks", 30)
    assert len(found) == 30
    assert found.startswith("postgres/jdbc")
    assert found.endswith("…h 24 tasks")


TWO = ("postgres/jdbc", "elasticsearch/camel-bulk")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep_run(tmp_path_factory.mktemp("run") / "results", TWO, multiples=(1,), blocks=3, seconds=4)


def test_every_trial_is_a_point_and_a_sink_a_colour(two: Path) -> None:
    kept = load_run(two)
    (chart,) = present(rates(kept.summary, kept.trials, 20_000)).charts
    assert "postgres/jdbc " in chart.label
    texts = [each for name in ("postgres", "elasticsearch", "required: 20,000 records/s") for each in [f">{name}<"]]
    assert [text for text in texts if text not in chart.svg] == []
    assert rates(kept.summary.model_copy(update={"cells": []}), []) is None


def test_a_cell_that_is_not_final_is_hollow_and_says_so(two: Path) -> None:
    kept = load_run(two)
    first, other = kept.summary.cells
    reason = Reason(code=ReasonCode.NOT_WARM, text="still warming", figures={"records_per_second": 9.0})
    cold = first.model_copy(update={"at_least": reason, "records_per_second": None})
    summary = kept.summary.model_copy(update={"cells": [cold, other]})
    assert "postgres/jdbc 9 not final" in present(rates(summary, kept.trials)).charts[0].label


def test_a_required_rate_has_a_table_above_the_sections(two: Path, tmp_path: Path) -> None:
    assert main(["report", str(two), "--rate", "90000", "--to", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("TOO SLOW") == 2
    assert page.index("At 90,000 records/s") < page.index("<nav")


def test_what_could_go_wrong_begins_with_the_records_that_a_connector_buffers(two: Path) -> None:
    kept = load_run(two)
    first, *_ = untested(
        replace(kept, connectors={**kept.connectors, TWO[1]: {"config": {"camel.aggregation.size": "5"}}})
    )
    assert first.startswith(f"Risk: {TWO[1]} loses buffered records when a task stops")


NAN = math.nan


def readings(seconds: list[float], stored: list[float], lag: list[float] | None = None) -> Series:
    return np.array([seconds, stored, lag or [NAN] * len(seconds)])


def test_all_that_was_stored_is_in_the_steps() -> None:
    draw = np.random.default_rng(2)
    times = np.cumsum(draw.uniform(0.1, 0.9, 200))
    stored = np.cumsum(draw.integers(0, 900, 200)).astype(float)
    course = present(course_of(np.array([times, stored, np.full(200, NAN)]), most=20))
    assert_allclose(np.nansum(course.records_per_second) * course.step_seconds, stored[-1] - stored[0])


def test_the_lag_of_a_step_is_its_largest_and_unknown_without_any() -> None:
    course = present(course_of(readings([0, 0.2, 0.4, 0.6, 1.0], [0, 1, 2, 3, 4], [5, 9, NAN, NAN, NAN]), most=120))
    assert course.lag[0] == 9
    assert math.isnan(course.lag[1])


def test_the_lag_is_what_is_in_the_topic_and_not_in_the_sink_if_both_were_read(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    file.write_text("seconds,stored,uncommitted,in_topic\n0,0,50,40\n1,30,50,40\n2,41,50,40\n3,,50,40\n4,40,50,\n")
    found = read_samples(file)
    assert not isinstance(found, str)
    assert_allclose(found[2], [40, 10, 0, NAN, NAN])
    file.write_text("seconds,stored,uncommitted\n0,0,50\n1,30,20\n")
    found = read_samples(file)
    assert not isinstance(found, str)
    assert_allclose(found[2], [50, 20])


def test_a_gap_in_the_samples_has_no_rate() -> None:
    course = present(course_of(readings([0, 0.5, 1.0, 3.0, 3.5, 4.0], [0, 5, 10, 30, 35, 40]), most=120))
    assert np.isnan(course.records_per_second).tolist() == [False, False, False, True, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "lacks the columns seconds and stored"),
        ("seconds,stored\n0,1\n", "fewer than two samples"),
        ("seconds,stored\n0,1\nsoon,2\n", "is damaged"),
        ("seconds,stored\n0,1\n1,\x00\n", "is not UTF-8 text"),
    ],
)
def test_a_file_of_samples_that_cannot_be_used_says_why(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    found = read_samples(tmp_path / "a.csv")
    assert isinstance(found, str)
    assert why in found
    assert str(tmp_path) not in found


def test_empty_places_are_unknown_and_a_torn_last_row_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("seconds,stored,uncommitted,x\n0,1,5,\n1,,,\n2,3,7,\n2.5,4")
    found = read_samples(tmp_path / "a.csv")
    assert not isinstance(found, str)
    assert_allclose(found[1], [1, NAN, 3])
    assert_allclose(found[2], [5, NAN, 7])
