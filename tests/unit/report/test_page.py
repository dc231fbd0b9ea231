"""The report of a run: what is in it, what is left out, and that nothing in it is read as HTML."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from sinkbench.cli.main import main
from sinkbench.report.charts import against_load
from sinkbench.report.parts import Figure
from sinkbench.report.plots import LineSeries, far_apart, lines, short, shortened, ticks
from sinkbench.results import CellSummary, LatencyMs, RunSummary
from sinkbench.runs.store import RunFolder, read_summary
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


def changed(run: Path, **fields: object) -> RunSummary:
    found = read_summary(run).model_copy(update=fields)
    RunFolder(run).write_summary(found)
    return found


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
    summary = read_summary(RunFolder(run).summary_path)

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
    bars = [LineSeries(name, [3, 6], [10, 20], low=[5, 15], high=[95, 60]) for name in "abc"]
    numbers = re.findall(r">(\d+)</text>", lines("k", bars, "tasks", "records/s", [3, 6]))
    assert {"0", "20", "80"} <= set(numbers)
    assert ticks(123_000) == [0, 50_000, 100_000]
    assert [short(value) for value in (0, 999, 1_500, 20_000, 1.2e6)] == ["0", "999", "1.5 k", "20 k", "1.2 M"]


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    assert shortened("a name\nof one line\x01", 30) == "a name of one line?"
    found = shortened("postgres/jdbc-with-quite-a-long-name with 24 tasks", 30)
    assert len(found) == 30
    assert found.startswith("postgres/jdbc")
    assert found.endswith("…h 24 tasks")
