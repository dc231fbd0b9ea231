"""The view of a run on a terminal of any size, and the lines of one where there is no terminal."""

import io
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sinkbench.analysis.samples import Sample
from sinkbench.live.events import RunStep
from sinkbench.live.state import LiveRun, Snapshot
from sinkbench.live.views import BLOCKS, TerminalUi, choose_ui, rows, spark, view_height
from tests.support.liverun import CELLS, Clock, began, drained, record


@pytest.fixture
def now() -> Snapshot:
    live = LiveRun(Clock())
    began(live, list(reversed(CELLS)))
    live.ended(record(CELLS[0], rate=None, invalid=["2 of 3 tasks FAILED"]))
    live.ended(record(CELLS[1]))
    live.step(RunStep(17, 40, f"{CELLS[5].key}, trial 2 of 3", "trial", (CELLS[5].key,), 754.0))
    live.phase("draining")
    drained(live, 100)
    return live.snapshot()


def shown(now: Snapshot, columns: int, height: int, *, plain: bool = False) -> list[str]:
    return [row.plain for row in rows(now, columns, view_height(height), plain=plain)]


@pytest.mark.parametrize(("columns", "height"), [(80, 24), (40, 10), (200, 60)])
def test_it_fits_and_shows_what_goes_on(now: Snapshot, columns: int, height: int) -> None:
    found = shown(now, columns, height)
    assert len(found) < height
    assert any(re.match(r"\d+ more cells$", row) for row in found) == (height < 60)
    assert max(map(len, found)) <= columns
    text = "\n".join(found)
    assert found[0].startswith("step 17 of 40, 0 s, about 12 min 34 s"[: columns - 5])
    assert any(re.match(rf"{CELLS[5].key}\s+running", row) for row in found)
    assert re.search(r"draining  \d+ %  7,9", text)
    for label in ("rate", "lag", "conns", "CPU"):
        (row,) = [row for row in found if row.startswith(label)]
        assert set(row) & set(BLOCKS), row
        assert re.search(r"\d", row), row


def test_a_wide_terminal_shows_every_cell_and_every_service(now: Snapshot) -> None:
    found = shown(now, 200, 60)
    for cell in CELLS:
        assert any(row.startswith(f"{cell.key} ") for row in found)
    services = [name for name in found[-1].split() if name.isalpha()]
    assert services[:6] == ["CPU", "cores", "postgres", "connect", "kafka", "pgbouncer"]
    assert any(re.search(r"invalid\s+1 of 3, 1 invalid$", row) for row in found)
    assert any(re.search(r"done\s+81,000/s  1 of 3$", row) for row in found)


@given(columns=st.integers(1, 250), height=st.integers(1, 100), plain=st.booleans())
def test_it_fits_every_terminal(columns: int, height: int, plain: bool) -> None:
    live = LiveRun(Clock())
    for at in ("before", "begun", "going on"):
        if at == "begun":
            began(live)
        elif at == "going on":
            drained(live, 3)
        found = shown(live.snapshot(), columns, height, plain=plain)
        assert 1 <= len(found) <= max(1, height - 1)
        assert max(map(len, found)) <= columns
        if plain:
            assert "\n".join(found).isascii()


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=200), st.integers(0, 130))
def test_a_spark_has_a_bar_for_each_of_the_last_values(values: list[float | None], columns: int) -> None:
    found = spark(values, columns)
    assert len(found) == columns
    last = values[-columns:] if columns else []
    assert [bar != " " for bar in found[columns - len(last) :]] == [value is not None for value in last]
    known = [value for value in last if value]
    assert (BLOCKS[-1] in found) == bool(known)


@contextmanager
def terminal(columns: int, height: int) -> Iterator[tuple[Console, int, list[bytes]]]:
    """A console on a terminal of this size, its other end, and what has been written to it once the context is left."""
    ours, theirs = pty.openpty()
    resize(theirs, columns, height)
    written: list[bytes] = []

    def read() -> None:
        try:
            while more := os.read(ours, 1 << 16):
                written.append(more)
        except OSError:
            return

    thread = threading.Thread(target=read)
    thread.start()
    with os.fdopen(theirs, "w", encoding="utf-8") as file:
        console = Console(file=file, force_terminal=True, force_interactive=True, _environ={"TERM": "xterm"})
        yield console, theirs, written
    thread.join()
    os.close(ours)


def resize(file: int, columns: int, height: int) -> None:
    ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", height, columns, 0, 0))


def test_lines_stay_above_it_and_it_leaves_nothing_behind() -> None:
    with terminal(80, 24) as (console, file, written), choose_ui(console) as ui:
        began(ui)
        drained(ui, 5)
        ui.say("a line [of mine]")
        resize(file, 40, 10)
        ui.ended(record())
        resize(file, 7, 2)
        ui.say("another")
    text = b"".join(written).decode()
    for line in ("a line [of mine]", f"{CELLS[0].key}: 81,000 records/s over 15.0 s", "another", "CPU"):
        assert line in text
    assert text.index("a line") < text.index("another")
    # The cursor is shown again, and every row that was drawn is erased.
    assert "\x1b[?25h" in text
    assert text.rstrip().endswith("\x1b[2K")


class Undrawable(LiveRun):
    def snapshot(self) -> Snapshot:
        raise ValueError("x")


def test_a_fault_of_the_drawing_is_one_row() -> None:
    console = Console(file=io.StringIO(), record=True)
    console.print(TerminalUi(console, Undrawable()))
    assert console.export_text() == "the view cannot be drawn: ValueError\n"


def plain_lines(feed: Console) -> str:
    return feed.file.getvalue()  # type: ignore[attr-defined]


def test_a_log_gets_one_line_a_trial_and_no_control_codes() -> None:
    # As in a CI job that asks for colours.
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    with choose_ui(console) as ui:
        began(ui)
        drained(ui, 20)
        ui.ended(record())
        ui.step(RunStep(2, 40, "next", "trial"))
    assert plain_lines(console).splitlines() == [
        "[1/40] postgres/jdbc@3x1, trial 1 of 3, about 12 min 30 s left",
        "postgres/jdbc@3x1: 81,000 records/s over 15.0 s, 0 lost, 0 duplicated of 1,000,000",
        "[2/40] next",
    ]


class Faulty(LiveRun):
    """A live run whose samples cannot be taken in."""

    def sample(self, sample: Sample) -> None:
        raise RuntimeError("out of order")


def test_a_fault_of_the_view_ends_no_run_and_is_said_once() -> None:
    console = Console(file=io.StringIO(), width=200)
    live = Faulty()
    with choose_ui(console, live) as ui:
        began(ui)
        drained(ui, 5)
        ui.ended(record())
    lines = plain_lines(console).splitlines()
    assert (lines[1], len(lines)) == ("the live view stands still from here on: RuntimeError: out of order", 3)
    assert live.snapshot()["lines"] == []
