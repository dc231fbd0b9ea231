"""The events of a run, and views that print them as plain lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from rich.console import Console

from loadgen.reading import printable
from sinkbench.analysis.lag import lag_in_words
from sinkbench.analysis.samples import Sample
from sinkbench.analysis.words import percent
from sinkbench.results import Recovery, TrialRecord
from sinkbench.secrets import redacted

PLAIN_SECONDS = 10.0


@dataclass(frozen=True)
class RunStep:
    """A pilot, limit or trial that begins, with its position, its cells' keys, and the seconds left."""

    number: int
    total: int
    name: str
    kind: Literal["pilot", "limit", "trial"]
    cells: tuple[str, ...] = ()
    left_seconds: float | None = None


class Events(Protocol):
    """What a run reports to its observers; `phase`, `progress` and `sample` also serve a trial's observer."""

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        """A run begins with at most `trials` trials per cell; a resumed run already has `kept`."""
        return

    def say(self, line: str) -> None:
        """A message for the user."""

    def step(self, step: RunStep) -> None:
        return

    def phase(self, text: str) -> None:
        return

    def progress(self, done: int, total: int) -> None:
        """Number of records so far in the topic or in the sink."""
        return

    def sample(self, sample: Sample) -> None:
        return

    def ended(self, record: TrialRecord) -> None:
        """A trial ended."""


class Ui(Events, Protocol):
    """A view of a run, shown from its entry to its exit."""

    def __enter__(self) -> Ui: ...

    def __exit__(self, *_: object) -> None: ...


def duration(seconds: float) -> str:
    """As 45 s, 3 min 20 s, 1 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def trial_line(record: TrialRecord) -> str:
    """A trial in one line: its rate or lag, and its audit; or why it is invalid."""
    if record.invalid:
        return f"{record.cell}: invalid: {'; '.join(record.invalid)}; {_audit(record)}"
    if record.recovery is not None:
        line = f"{record.cell}: {_recovery(record.recovery)}"
    elif record.offered_records_per_second is None:
        line = f"{record.cell}: {record.records_per_second:,.0f} records/s over {record.window_seconds:.1f} s"
        if record.warm is False and record.compiling_share is not None:
            line += f", not warm ({percent(record.compiling_share)} of the CPU time spent compiling)"
    else:
        line = f"{record.cell}: offered {record.offered_records_per_second:,.0f} records/s, {lag_in_words(record.lag)}"
    return f"{line}, {_audit(record)}"


def _recovery(found: Recovery) -> str:
    if not found.recovered:
        return "did not recover"
    if found.is_silent:
        return "nothing was stored any more"
    if not found.target:
        return "nothing was broken"
    back = "recovered" if found.rate_seconds is None else f"rate as before after {found.rate_seconds:.1f} s"
    return f"{back}, restarted manually" if found.acts else back


def _audit(record: TrialRecord) -> str:
    if record.audit is None:
        return f"not audited: {record.not_audited}" if record.not_audited else "not audited"
    found = record.audit
    words = [f"{found.lost:,} lost", f"{found.duplicates:,} duplicated"]
    if found.stale is not None:
        words = [
            f"{found.stale:,} stale",
            f"{found.missing or 0:,} missing",
            f"{found.not_deleted or 0:,} not deleted keys",
        ]
    if found.dead_letters:
        words.append(f"{found.dead_letters:,} dead letters")
    return f"{', '.join(words)} of {found.produced:,}"


class Rate:
    """Records per second over the last 12 readings; `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: list[tuple[float, int]] = []

    def add(self, done: int) -> float:
        """Returns the rate after a reading of `done` records; a lower count resets it."""
        now = self._clock()
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        self._seen = [*self._seen[-11:], (now, done)]
        first, last = self._seen[0], self._seen[-1]
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0


class QuietUi(Ui):
    """Prints messages and a line for each trial."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

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
