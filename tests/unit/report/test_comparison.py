"""A comparison as an HTML page: what is in it, and that nothing in it is read as HTML."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.cli.main import main
from sinkbench.report.comparison import grounds, lead, ratios
from sinkbench.report.plots import Dot, Mark, dots
from sinkbench.results import Interval
from sinkbench.runs.compare import Compared, Verdict
from tests.support.counts import count
from tests.support.page import Page
from tests.support.samplerun import SCRIPT, keep_run


def cell(name: str, verdict: Verdict, ratio: float | None = None, **fields: object) -> Compared:
    near = {"confidence": 0.95, "method": "b", "blocks": 6}
    interval = None if ratio is None else Interval(low=0.95 * ratio, high=1.05 * ratio, **near)  # type: ignore[arg-type]
    return replace(Compared(name, verdict, ratio=ratio, interval=interval), **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    shared = {"pipelines": ["postgres/jdbc"], "seconds": 5, "blocks": 6}
    # The second has another number of tasks, and its label is a script.
    first = keep_run(folder / "a" / "results", multiples=[1, 2], label=f"a {SCRIPT}", **shared)  # type: ignore[arg-type]
    second = keep_run(folder / "b" / "results", multiples=[1, 4], label=f"a {SCRIPT}", factor=0.8, **shared)  # type: ignore[arg-type]
    return str(first), str(second)


@pytest.fixture(scope="module")
def text(runs: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    to = tmp_path_factory.mktemp("page") / "page.html"
    assert main(["compare", *runs, "--format", "html", "--to", str(to), "--fail-if-slower", "5%"]) == 1
    return to.read_text(encoding="utf-8")


def test_the_answer_comes_first_then_cells_ratios_and_differences(text: str) -> None:
    page = Page(text)
    assert (page.open, page.sections) == ([], [None, "cells", "ratios", "differences", "figures"])
    said = " ".join(page.texts)
    assert "Run B against run A, 3 cells: 1 slower, 2 not comparable." in said
    assert "slower by more than 5 %" in said
    places = [
        said.index(each) for each in ("Run B against run A", "All cells, in the order of run A", "plan multiples")
    ]
    assert places == sorted(places)


def test_what_a_run_holds_is_text_and_nothing_is_loaded(text: str) -> None:
    page = Page(text)
    assert not page.all("script")
    assert SCRIPT not in text
    assert SCRIPT in "".join(page.texts)
    assert not re.search("https?://", text)
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


def test_the_chart_has_a_name_a_caption_and_its_numbers(text: str) -> None:
    (figure,) = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    page = Page(figure)
    assert [len(page.all(tag)) for tag in ("figcaption", "details", "table", "svg")] == [1] * 4
    (label,) = [each["aria-label"] for each in page.all("div") if each.get("role") == "img"]
    assert re.match(r"Ratio of run B to run A by cell: .*0\.8\d\d, slower$", str(label))
    assert "as fast as run A" in " ".join(page.texts)


def test_without_a_file_the_page_goes_to_the_output_in_letters_that_every_output_has(
    runs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", runs[0], runs[0], "--format", "html"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("<!DOCTYPE html>")
    assert out.isascii()
    assert "no difference found" in out
    assert "Environment, plan and connectors are the same." in out
    # Nothing was checked.
    assert "Checks:" not in out


def test_text_goes_to_a_file_too_and_one_that_cannot_be_written_is_one_line(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *runs]) == 0
    shown = capsys.readouterr().out
    assert main(["compare", *runs, "--to", str(tmp_path / "text")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "text").read_text(encoding="utf-8") == shown
    assert main(["compare", *runs, "--format", "html", "--to", str(tmp_path)]) == 2
    refusal = capsys.readouterr().err
    assert f"{tmp_path}: cannot be written" in refusal
    assert refusal.count("\n") == 1


def test_a_comparison_without_a_ratio_has_no_chart() -> None:
    assert ratios([cell("a", "not comparable")]) is None
    assert ratios([]) is None
    assert lead([]) == "There is no cell to compare."


def test_what_changed_most_and_what_no_longer_passes_is_named() -> None:
    many = [cell(f"c{place}", "faster", 1.1 + place / 100) for place in range(7)]
    found = grounds([*many, cell("half", "slower", 0.5), cell("gone", "not comparable", broken=True)])
    assert found[0] == "half: slower, 0.500 times as fast as in run A, 95 % interval 0.475 to 0.525."
    assert found[1].startswith("c6: faster, 1.160 times as fast")
    assert found[-2:] == ["And 2 more, which changed less.", "Passed in run A and not in run B: gone."]


@settings(max_examples=count(25, 5))
@given(st.lists(st.floats(min_value=1e-4, max_value=1e4), min_size=1, max_size=6))
def test_any_ratios_are_drawn_on_a_scale_with_few_ticks(found: list[float]) -> None:
    rows = [(f"cell {place}", [Dot("faster", ratio, 0.9 * ratio, 1.1 * ratio)]) for place, ratio in enumerate(found)]
    drawn = dots("k", rows, "run B / run A", Mark(1.0, "as fast"), ratios=True)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    ticks = [each for each in texts if re.fullmatch(r"[\d.e+-]+", each)]
    assert 1 <= len(ticks) <= 12
    assert len(set(ticks)) == len(ticks)
