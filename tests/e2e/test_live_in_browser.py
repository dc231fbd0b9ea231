"""The live page in a real browser: opened late, while the connection drops, and when the run ends."""

import time
from pathlib import Path

import pytest

from sinkbench.live.events import RunStep
from sinkbench.live.page import live_page
from sinkbench.live.state import LiveRun
from tests.support.browser import Browser
from tests.support.liverun import CELLS, RUN, began, drained, record
from tests.support.ports import free_ports
from tests.support.waiting import until

SCRIPT = "<script>alert(1)</script>"

pytestmark = pytest.mark.long


@pytest.fixture
def live() -> LiveRun:
    live = LiveRun()
    began(live)
    live.say(f"said {SCRIPT}")
    live.ended(record(CELLS[1], rate=None, invalid=["2 of 3 tasks FAILED"]))
    live.ended(record())
    live.step(RunStep(7, 40, f"{CELLS[2].key}, trial 1 of 3", "trial", (CELLS[2].key,), 300.0))
    live.phase("draining")
    drained(live, 90)
    return live


def wait_for(browser: Browser, script: str) -> None:
    """Waits until an expression in the page is true."""
    until(lambda: browser.evaluate(script))


def connection(text: str) -> str:
    return f"document.querySelector('#connection').textContent.startsWith({text!r})"


@pytest.mark.parametrize(("width", "dark"), [(360, True), (1280, False)])
def test_opened_in_the_middle_it_shows_all_there_is(
    browser: Browser, live: LiveRun, tmp_path: Path, width: int, dark: bool
) -> None:
    with live_page(live, 0) as page:
        begun = len(browser.requests())
        browser.open(page, width, dark)
        wait_for(browser, connection("live"))
        assert all(address.startswith((page, "data:")) for address in browser.requests()[begun:])
        text = browser.evaluate("document.body.innerText")
        for part in (RUN, "trial 7 of 40", "about ", "draining: 7,", SCRIPT, "2 of 3 tasks FAILED", CELLS[-1].key):
            assert part in text, part
        assert browser.evaluate("document.scripts.length") == 1
        charts = browser.evaluate("[...document.querySelectorAll('figure > svg')].map(svg => svg.children.length)")
        assert charts == [1, 1, 2, 5]
        assert browser.evaluate("Math.min(...[...document.querySelectorAll('path')].map(p => p.getTotalLength()))") > 10
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        states = browser.evaluate("[...document.querySelectorAll('tbody .state')].map(each => each.textContent)")
        assert states == ["done", "invalid", "running"] + ["waiting"] * (len(CELLS) - 3)
        # The newest verdict is read first, and nothing else is read aloud.
        assert browser.evaluate("document.querySelector('#lines li').className") == "verdict"
        assert browser.evaluate("document.querySelectorAll('[aria-live=polite]').length") == 1
        dark_paper = browser.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark_paper == dark
        browser.screenshot(tmp_path / "page.png")
        browser.call("Page.navigate", url="about:blank")


def test_it_finds_the_run_again_after_its_connection_dropped_and_hears_the_end(browser: Browser, live: LiveRun) -> None:
    (port,) = free_ports(1)
    with live_page(live, port) as page:
        browser.open(page, 1280, dark=False)
        wait_for(browser, connection("live"))
    wait_for(browser, connection("connection lost, trying again"))
    live.say("said meanwhile")
    with live_page(live, port):
        wait_for(browser, connection("live"))
        assert browser.evaluate("document.querySelector('#lines li').textContent") == "said meanwhile"
        # What it had shown is not shown twice.
        assert browser.evaluate("document.querySelectorAll('#lines li').length") == 4
        live.ended(record(CELLS[2]))
        wait_for(browser, "document.querySelectorAll('#lines li').length == 5")
        live.end("complete")
        wait_for(browser, connection("The run has ended"))
    # Nobody is there any more, and it does not mind.
    time.sleep(1)
    assert browser.evaluate(connection("The run has ended"))


def test_it_says_nothing_to_the_console(browser: Browser, live: LiveRun) -> None:
    with live_page(live, 0) as page:
        begun = len(browser.events)
        browser.open(page, 360, dark=False)
        wait_for(browser, connection("live"))
        live.end("interrupted")
        wait_for(browser, connection("The run was interrupted"))
    browser.events = browser.events[begun:]
    # When it hears the end it closes the connection, often before the server does.
    assert [each for each in browser.complaints() if "'canceled': True" not in each] == []
