"""The user's view of a run: a line for each trial and, on a terminal, a line that moves below them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, cast

from rich.console import Console
from rich.status import Status
from rich.text import Text

from loadgen.reading import printable
from sinkbench.live.events import Events, RunStep, duration, trial_line
from sinkbench.live.state import LiveRun
from sinkbench.results import TrialRecord
from sinkbench.secrets import redacted

# A log shows what goes on if nothing ended for so long.
SILENT_SECONDS = 60.0


class Lines(Events):
    """Prints messages, each warm-up as it begins, and a line for each trial that ended."""

    def __init__(self, console: Console, status: Status | None) -> None:
        self._console = console
        self._status = status
        self._step = RunStep(0, 0, "", "trial")
        self._began = self._printed = time.monotonic()
        self._doing = ""

    def say(self, line: str) -> None:
        self._printed = time.monotonic()
        self._console.print(printable(redacted(line)), markup=False, highlight=False, soft_wrap=True)

    def step(self, step: RunStep) -> None:
        self._step, self._began = step, time.monotonic()
        if step.kind == "pilot" and self._status is None:
            self.say(f"{step.name}{self._left()}")
        self._show("")

    def phase(self, text: str) -> None:
        self._show(text)

    def progress(self, done: int, total: int) -> None:
        # Where records are stored as fast as they come, the total is not known.
        self._show(f"{self._doing.partition(':')[0]}: {done:,} of {total:,} records")

    def ended(self, record: TrialRecord) -> None:
        self.say(f"{self._count()}{trial_line(record)}{self._left()}")

    def _show(self, doing: str) -> None:
        self._doing = doing
        now = f"{self._count()}{', '.join(filter(None, (self._step.name, doing)))}{self._left()}"
        if self._status is not None:
            self._status.update(Text(printable(redacted(now)), no_wrap=True, overflow="ellipsis"))
        elif time.monotonic() - self._printed >= SILENT_SECONDS:
            self.say(f"    {now}")

    def _count(self) -> str:
        return f"[{self._step.number} of {self._step.total}] " if self._step.number else ""

    def _left(self) -> str:
        if self._step.left_seconds is None:
            return ""
        left = max(self._step.left_seconds - (time.monotonic() - self._began), 0.0)
        return f", about {duration(left)} left"


class Both:
    """Passes events to a live run and to the user's view. An error of the live run ends only its events."""

    def __init__(self, live: Events, person: Events) -> None:
        self._live: Events | None = live
        self._person = person

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


@contextmanager
def choose_ui(console: Console, live: LiveRun | None = None) -> Iterator[Events]:
    """The lines of a run, whose events also reach the live run, if any."""
    terminal = console.is_interactive and console.file.isatty()
    with console.status("", spinner="line", refresh_per_second=2) if terminal else nullcontext() as status:
        lines = Lines(console, status)
        yield lines if live is None else cast("Events", Both(live, lines))
