"""Who watches a run: a person at a terminal or a log, and what stands behind every other view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from rich.console import Console

from sinkbench.live.state import LiveRun
from sinkbench.live.terminal import TerminalUi
from sinkbench.probes import Sample
from sinkbench.results import TrialRecord
from sinkbench.ui import Events, PlainUi, Step, Ui

__all__ = ["Views", "choose_ui"]


class Views:
    """Passes every event on to a live run and to a person's view.

    A fault of the live run never ends what is measured: the person is told of the first one, and it is told no more.
    """

    def __init__(self, live: Events, person: Ui) -> None:
        self._live: Events | None = live
        self._person = person

    def __enter__(self) -> Views:
        self._person.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._person.__exit__(kind, error, trace)

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        self._tell(lambda view: view.begin(run, cells, trials, kept))

    def say(self, line: str) -> None:
        self._tell(lambda view: view.say(line))

    def step(self, step: Step) -> None:
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
            except Exception as fault:  # noqa: BLE001 - whoever watches must not end what is watched
                self._live = None
                self._person.say(f"the live view stands still from here on: {type(fault).__name__}: {fault}")
        event(self._person)


def choose_ui(console: Console, live: LiveRun | None = None) -> Ui:
    """Moving charts where there is a person at a terminal that can draw them, else lines.

    Args:
        console: where they go. A terminal that is one only by name (`FORCE_COLOR` in a CI job) gets lines.
        live: is told all that happens, for other views; None for one of its own.
    """
    live = LiveRun() if live is None else live
    moves = console.is_interactive and console.file.isatty()
    return Views(live, TerminalUi(console, live) if moves else PlainUi(console))
