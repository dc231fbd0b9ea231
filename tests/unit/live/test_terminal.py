"""The line of a run that moves on a terminal of any size, and the lines where there is no terminal."""

import io
from unittest.mock import Mock

import pytest
from rich.console import Console, ConsoleDimensions

from sinkbench.live.events import RunStep
from sinkbench.live.state import LiveRun
from sinkbench.live.views import SILENT_SECONDS, choose_ui
from tests.support.liverun import CELLS, Clock, began, drained, record


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_stay_above_it_and_it_leaves_nothing_behind() -> None:
    console = Console(file=Terminal(), force_terminal=True, force_interactive=True, _environ={"TERM": "xterm"})
    with choose_ui(console) as ui:
        began(ui)
        drained(ui, 5)
        ui.say("a line [of mine]")
        console.size = ConsoleDimensions(40, 10)
        ui.ended(record())
        console.size = ConsoleDimensions(7, 2)
        ui.say("another")
    text = console.file.getvalue()
    for line in ("a line [of mine]", f"{CELLS[0].key}: 81,000 records/s over 15.0 s", "another", "[1 of 40] "):
        assert line in text
    assert text.index("a line") < text.index("another")
    # The cursor is shown again, and every row that was drawn is erased.
    assert "\x1b[?25h" in text
    assert text.rstrip().endswith("\x1b[2K")


def test_a_log_gets_one_line_a_trial_and_no_control_codes() -> None:
    # As in a CI job that asks for colours.
    log = io.StringIO()
    console = Console(file=log, force_terminal=True, width=200)
    with choose_ui(console) as ui:
        ui.step(RunStep(0, 40, "warming up postgres/jdbc@3x1", "pilot"))
        began(ui)
        drained(ui, 20)
        ui.ended(record())
        ui.step(RunStep(2, 40, "next", "trial"))
    said = "[1 of 40] postgres/jdbc@3x1: 81,000 records/s over 15.0 s, 0 lost, 0 duplicated of 1,000,000"
    assert log.getvalue().splitlines() == ["warming up postgres/jdbc@3x1", f"{said}, about 12 min 30 s left"]


def test_a_log_shows_what_goes_on_if_nothing_has_ended_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    log, clock = io.StringIO(), Clock()
    monkeypatch.setattr("sinkbench.live.views.time.monotonic", clock)
    with choose_ui(Console(file=log, width=200)) as ui:
        began(ui)
        ui.phase("draining")
        ui.progress(5_000, 10_000)
        clock.now += SILENT_SECONDS
        ui.progress(6_000, 10_000)
    said = "    [1 of 40] postgres/jdbc@3x1, trial 1 of 3, draining: 6,000 of 10,000 records, about 11 min 30 s left"
    assert log.getvalue().splitlines() == [said]


def test_a_fault_of_the_view_ends_no_run_and_is_said_once() -> None:
    log = io.StringIO()
    live = LiveRun()
    live.sample = Mock(side_effect=RuntimeError("out of order"))  # type: ignore[method-assign]
    with choose_ui(Console(file=log, width=200), live) as ui:
        began(ui)
        drained(ui, 5)
        ui.ended(record())
    lines = log.getvalue().splitlines()
    assert (lines[0], len(lines)) == ("the live view stands still from here on: RuntimeError: out of order", 2)
    assert live.snapshot()["lines"] == []
