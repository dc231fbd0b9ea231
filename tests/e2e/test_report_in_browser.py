"""The report in a real browser, as wide as on a phone and a desktop, on light and dark screens."""

from pathlib import Path

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.report.page import write_report
from sinkbench.results import Limit, Reason
from sinkbench.runs.store import RunFolder, read_summary
from tests.e2e.races import ALL_FOUR
from tests.support.browser import Browser
from tests.support.samplerun import SCRIPT, keep_run

pytestmark = pytest.mark.long
LUMINANCE = """
(colour => {
  const part = colour.match(/[0-9.]+/g).slice(0, 3).map(value => value / 255)
    .map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
})
"""
# WCAG 2.2: 4.5 for text, 3 for what is drawn.
CONTRASTS = f"""
(() => {{
  const luminance = {LUMINANCE};
  const paper = luminance(getComputedStyle(document.body).backgroundColor);
  const contrast = colour => {{
    const [low, high] = [paper, luminance(colour)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }};
  const least = (elements, name) => Math.min(...elements.map(each => contrast(getComputedStyle(each)[name])));
  const all = selector => [...document.querySelectorAll(selector)];
  return [
    least(all("svg text"), "fill"),
    least(all("p, figcaption, td, th, a, summary, caption"), "color"),
    least(all("svg [style*='stroke:var(--series']"), "stroke"),
  ];
}})()
"""
OVERLAPS = """
[...document.querySelectorAll("svg")].flatMap(svg => {
  const boxes = [...svg.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
  const crossing = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  return boxes.flatMap(([one, a], at) =>
    boxes.slice(at + 1).filter(([, b]) => crossing(a, b)).map(([other]) => `${one} | ${other}`));
})
"""
CLIPPED = """
[...document.querySelectorAll("svg")].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2;
  }).map(text => text.textContent);
})
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    return write_report(
        keep_run(
            folder / "results",
            everything=True,
            multiples=(1, 2, 4, 32),
            label=f"a {SCRIPT} with a long name",
            seconds=10,
        )
    )


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run of four cells of which one was not warm and one lost a record, with a limit that failed."""
    folder = keep_run(
        tmp_path_factory.mktemp("cold") / "results", pipelines=ALL_FOUR, multiples=(1,), blocks=3, seconds=5
    )
    found = read_summary(folder)
    reason = Reason(code=ReasonCode.NOT_WARM, text="still warming: it compiled", figures={"records_per_second": 1_363})
    costly = {"connect": 2_045.0, "elasticsearch": 2_257.0}
    changes: list[dict[str, object]] = [
        {"at_least": reason, "records_per_second": None, "cpu_seconds_per_million": costly},
        {"passed": False, "verdict": "LOST 3", "faults": [Reason(code=ReasonCode.LOST, text="LOST 3")]},
    ]
    cells = [cell.model_copy(update=change) for cell, change in zip(found.cells, [*changes, {}, {}], strict=True)]
    limit = Limit(sink="postgres", way="COPY", note="permission denied")
    RunFolder(folder).write_summary(found.model_copy(update={"cells": cells, "limits": [limit]}))
    return write_report(folder)


@pytest.fixture(scope="module", params=["report", "cold"])
def page(request: pytest.FixtureRequest) -> Path:
    """Each kind of page in turn."""
    found: Path = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(("width", "dark"), [(360, True), (900, False), (1600, True)])
def test_a_page_is_whole_and_readable(browser: Browser, page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    browser.open(page, width, dark)
    assert browser.complaints() == []
    assert {address.split(":")[0] for address in browser.requests()} <= {"file", "data"}
    # Nothing is wider than the screen, so that only tables and files scroll sideways, in boxes of their own.
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(OVERLAPS) == []
    assert browser.evaluate(CLIPPED) == []
    on_text, on_page, on_lines = browser.evaluate(CONTRASTS)
    assert min(on_text, on_page) >= 4.5
    assert on_lines >= 3
    picture = tmp_path / "page.png"
    browser.screenshot(picture)
    assert picture.stat().st_size > 20_000


@pytest.mark.parametrize(("width", "beside"), [(390, False), (900, False), (1400, True)])
def test_the_answer_is_the_first_thing_and_the_rates_stand_next_to_it_or_below(
    browser: Browser, cold: Path, width: int, beside: bool
) -> None:
    browser.open(cold, width, dark=False)
    boxes = "['.answer', '#rates', 'nav'].map(each => document.querySelector(each).getBoundingClientRect())"
    answer, rates, contents = browser.evaluate(f"{boxes}.map(box => [box.left, box.top, box.right, box.bottom])")
    assert (answer[2] < rates[0]) == beside == (rates[1] < answer[3])
    assert answer[1] < 400
    assert contents[1] > rates[3]
    smallest = """Math.min(...[...document.querySelectorAll(".first svg text")].map(each =>
        parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a))"""
    assert browser.evaluate(smallest) >= 8


def test_all_pictures_are_drawn_and_a_script_in_a_label_is_text(browser: Browser, report: Path) -> None:
    browser.open(report, 1280, dark=False)
    heights = browser.evaluate("[...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().height)")
    assert len(heights) > 50
    assert min(heights) > 50
    assert browser.evaluate("document.scripts.length") == 0
    assert SCRIPT in browser.evaluate("document.body.innerText")


def test_the_skip_link_comes_first_and_leads_to_the_answer(browser: Browser, page: Path) -> None:
    browser.open(page, 1280, dark=False)
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.evaluate("document.activeElement.className") == "skip"
    assert browser.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
    assert browser.evaluate("document.querySelector('#main h2').textContent") == "Answer"


def test_printed_it_is_dark_on_light_and_shows_no_links_within(browser: Browser, page: Path) -> None:
    # As wide as a sheet of A4 within its margins.
    browser.open(page, 720, dark=True)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.evaluate("document.documentElement.scrollWidth") <= 720
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert browser.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert browser.evaluate("getComputedStyle(document.querySelector('svg text')).fill") == "rgb(0, 0, 0)"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
