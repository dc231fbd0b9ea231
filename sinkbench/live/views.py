"""The user's view of a run: charts on a terminal that can draw them, else lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Self, cast

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from loadgen.reading import printable
from sinkbench.live.draw import rows, view_height
from sinkbench.live.events import Events, Rate, RunStep, Ui, duration, trial_line
from sinkbench.live.state import LiveRun
from sinkbench.results import TrialRecord
from sinkbench.secrets import redacted

REFRESHES_PER_SECOND = 2
PLAIN_SECONDS = 10.0


class QuietUi(Ui):
    """Prints messages and a line for each trial."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        self._console.print(printable(redacted(line)), markup=False, highlight=False, soft_wrap=True)

    def ended(self, record: TrialRecord) -> None:
        self.say(trial_line(record))


class PlainUi(QuietUi):
    """Also prints each step, and its progress every ten seconds: for a log."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._rate = Rate()
        self._phase = ""
        self._printed = 0.0

    def step(self, step: RunStep) -> None:
        left = "" if step.left_seconds is None else f", about {duration(step.left_seconds)} left"
        self.say(f"[{step.number}/{step.total}] {step.name}{left}")
        self._printed = time.monotonic()

    def phase(self, text: str) -> None:
        self._phase = text
        self._rate = Rate()

    def progress(self, done: int, total: int) -> None:
        rate = self._rate.add(done)
        if time.monotonic() - self._printed >= PLAIN_SECONDS:
            self._printed = time.monotonic()
            self.say(f"    {self._phase}: {done:,} of {total:,} records, {rate:,.0f} records/s")


class TerminalUi(QuietUi):
    """Draws a live run twice a second in a separate thread, so that events cost nothing; messages stand above it."""

    def __init__(self, console: Console, live: LiveRun) -> None:
        super().__init__(console)
        self._now = live.snapshot
        self._live = Live(self, console=console, transient=True, refresh_per_second=REFRESHES_PER_SECOND)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = view_height(options.size.height)
        try:
            yield from rows(self._now(), options.max_width, height, plain=options.ascii_only)
        except Exception as fault:  # noqa: BLE001 - drawn in the midst of a trial, which must not end by it
            yield f"the view cannot be drawn: {type(fault).__name__}"

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


class Both:
    """Passes events to a live run and to the user's view. An error of the live run ends only its events."""

    def __init__(self, live: Events, person: Ui) -> None:
        self._live: Events | None = live
        self._person = person

    def __enter__(self) -> Self:
        self._person.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._person.__exit__(*exception)

    def __getattr__(self, event: str) -> Callable[..., None]:
        return partial(self._tell, event)

    def _tell(self, event: str, *details: Any) -> None:
        if self._live is not None:
            try:
                getattr(self._live, event)(*details)
            except Exception as fault:  # noqa: BLE001 - a view must not end the measurement
                self._live = None
                self._person.say(f"the live view stands still from here on: {type(fault).__name__}: {fault}")
        getattr(self._person, event)(*details)


def choose_ui(console: Console, live: LiveRun | None = None) -> Ui:
    """Returns charts on a terminal that can draw them, else lines, as for a CI job with `FORCE_COLOR`."""
    live = LiveRun() if live is None else live
    moves = console.is_interactive and console.file.isatty()
    return cast("Ui", Both(live, TerminalUi(console, live) if moves else PlainUi(console)))
