"""Selects the user's view of a run and passes each event to it and to the live run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console

from sinkbench.analysis.samples import Sample
from sinkbench.live.events import Events, PlainUi, RunStep, Ui
from sinkbench.live.state import LiveRun
from sinkbench.live.terminal import TerminalUi
from sinkbench.results import TrialRecord


class Views:
    """Passes events to a live run and to the user's view. An error of the live run ends only its events."""

    def __init__(self, live: Events, person: Ui) -> None:
        self._live: Events | None = live
        self._person = person

    def __enter__(self) -> Views:
        self._person.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._person.__exit__(*exception)

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        self._tell(lambda view: view.begin(run, cells, trials, kept))

    def say(self, line: str) -> None:
        self._tell(lambda view: view.say(line))

    def step(self, step: RunStep) -> None:
        self._tell(lambda view: view.step(step))

    def phase(self, text: str) -> None:
        self._tell(lambda view: view.phase(text))

    def progress(self, done: int, total: int) -> None:
        self._tell(lambda view: view.progress(done, total))

    def sample(self, sample: Sample) -> None:
        self._tell(lambda view: view.sample(sample))

    def ended(self, record: TrialRecord) -> None:
        self._tell(lambda view: view.ended(record))

    def _tell(self, event: Callable[[Events], None]) -> None:
        if self._live is not None:
            try:
                event(self._live)
            except Exception as fault:  # noqa: BLE001 - a view must not end the measurement
                self._live = None
                self._person.say(f"the live view stands still from here on: {type(fault).__name__}: {fault}")
        event(self._person)


def choose_ui(console: Console, live: LiveRun | None = None) -> Ui:
    """Returns charts on a terminal that can draw them, else lines, as for a CI job with `FORCE_COLOR`."""
    live = LiveRun() if live is None else live
    moves = console.is_interactive and console.file.isatty()
    return Views(live, TerminalUi(console, live) if moves else PlainUi(console))
