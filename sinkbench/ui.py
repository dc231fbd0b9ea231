"""What a run tells those who watch it, in which words; and plain lines of it for a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from rich.console import Console

from sinkbench.lag import lag_in_words
from sinkbench.probes import Sample
from sinkbench.results import TrialRecord
from sinkbench.secrets import redacted

__all__ = ["Events", "Lines", "PlainUi", "Rate", "Step", "Ui", "duration", "trial_line"]

PLAIN_SECONDS = 10.0


@dataclass(frozen=True)
class Step:
    """A pilot, a limit or a trial that begins.

    Attributes:
        number, total: which of how many; the total may change while the run goes on.
        name: what it is, for a person.
        kind: which of the three.
        cells: the keys of the cells that it is of; none of a limit.
        left_seconds: how long the rest of the run takes, with this step, as far as is known.
    """

    number: int
    total: int
    name: str
    kind: Literal["pilot", "limit", "trial"]
    cells: tuple[str, ...] = ()
    left_seconds: float | None = None


class Events(Protocol):
    """Is told what a run is doing. Its `phase`, `progress` and `sample` make it the observer of a trial, too."""

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        """A run begins: its id, the keys of its cells, and how many trials of each there will be at most, if known.

        `kept` are the trials of a run that is taken up again.
        """
        ...

    def say(self, line: str) -> None:
        """One line that stays."""
        ...

    def step(self, step: Step) -> None:
        """A pilot, a limit or a trial begins."""
        ...

    def phase(self, text: str) -> None:
        """The step goes on to something else."""
        ...

    def progress(self, done: int, total: int) -> None:
        """Records so far in the topic or in the sink."""
        ...

    def sample(self, sample: Sample) -> None:
        """One reading of everything, while a connector runs."""
        ...

    def ended(self, record: TrialRecord) -> None:
        """A trial has ended, with this record."""
        ...


class Ui(Events, Protocol):
    """What a person sees of a run, from when it is entered until it is left."""

    def __enter__(self) -> Ui: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def duration(seconds: float) -> str:
    """Seconds as a person says them: 45 s, 3 min 20 s, 1 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def trial_line(record: TrialRecord) -> str:
    """A finished trial in one line."""
    if record.invalid:
        return f"{record.cell}: invalid: {'; '.join(record.invalid)}"
    if record.offered_records_per_second is None:
        line = f"{record.cell}: {record.records_per_second:,.0f} records/s over {record.window_seconds:.1f} s"
    else:
        line = f"{record.cell}: offered {record.offered_records_per_second:,.0f} records/s, {lag_in_words(record.lag)}"
    if record.audit is not None:
        line += f", {record.audit.lost:,} lost, {record.audit.duplicates:,} duplicated of {record.audit.produced:,}"
    return line


class Rate:
    """Records per second, smoothed over the last few readings; `clock` tells the time in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: list[tuple[float, int]] = []

    def add(self, done: int) -> float:
        """Takes in how many records there are by now, and says how many come a second."""
        now = self._clock()
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        self._seen = [*self._seen[-11:], (now, done)]
        first, last = self._seen[0], self._seen[-1]
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0


class Lines:
    """Says lines, among them one for each trial that has ended, and nothing else: what views have in common."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        return None

    def say(self, line: str) -> None:
        self._console.print(redacted(line), markup=False, highlight=False, soft_wrap=True)

    def step(self, step: Step) -> None:
        return None

    def phase(self, text: str) -> None:
        return None

    def progress(self, done: int, total: int) -> None:
        return None

    def sample(self, sample: Sample) -> None:
        return None

    def ended(self, record: TrialRecord) -> None:
        self.say(trial_line(record))


class PlainUi(Lines):
    """Lines for a log: every step, and how far it is every ten seconds."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._rate = Rate()
        self._phase = ""
        self._printed = 0.0

    def step(self, step: Step) -> None:
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
