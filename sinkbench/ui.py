"""What a person sees while a run goes on: moving bars on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from sinkbench.lag import lag_in_words
from sinkbench.results import TrialRecord
from sinkbench.secrets import redacted

__all__ = ["PlainUi", "TerminalUi", "Ui", "choose_ui", "duration", "trial_line"]

PLAIN_SECONDS = 10.0


class Ui(Protocol):
    """Is told what a run is doing. Its `phase` and `progress` make it the observer of a trial, too."""

    def __enter__(self) -> Ui: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def say(self, line: str) -> None:
        """One line that stays."""
        ...

    def step(self, number: int, total: int, name: str, left_seconds: float | None) -> None:
        """A pilot or a trial begins: which of how many, what, and how long the rest of the run takes, if known."""
        ...

    def phase(self, text: str) -> None:
        """The step goes on to something else."""
        ...

    def progress(self, done: int, total: int) -> None:
        """Records so far in the topic or in the sink."""
        ...


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


class _Rate:
    """Records per second, smoothed over the last few readings."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def add(self, done: int) -> float:
        now = time.monotonic()
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        self._seen = [*self._seen[-11:], (now, done)]
        first, last = self._seen[0], self._seen[-1]
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0


class PlainUi:
    """Lines for a log: every step, and how far it is every ten seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rate = _Rate()
        self._phase = ""
        self._printed = 0.0

    def __enter__(self) -> PlainUi:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def say(self, line: str) -> None:
        self._console.print(redacted(line), markup=False, highlight=False, soft_wrap=True)

    def step(self, number: int, total: int, name: str, left_seconds: float | None) -> None:
        left = "" if left_seconds is None else f", about {duration(left_seconds)} left"
        self.say(f"[{number}/{total}] {name}{left}")
        self._printed = time.monotonic()

    def phase(self, text: str) -> None:
        self._phase = text
        self._rate = _Rate()

    def progress(self, done: int, total: int) -> None:
        rate = self._rate.add(done)
        if time.monotonic() - self._printed >= PLAIN_SECONDS:
            self._printed = time.monotonic()
            self.say(f"    {self._phase}: {done:,} of {total:,} records, {rate:,.0f} records/s")


class TerminalUi:
    """Two bars at the foot of the terminal: the run, and the step that is going on."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[detail]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            refresh_per_second=4,
        )
        self._run: TaskID | None = None
        self._step: TaskID | None = None
        self._rate = _Rate()

    def __enter__(self) -> TerminalUi:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        self._progress.console.print(redacted(line), markup=False, highlight=False, soft_wrap=True)

    def step(self, number: int, total: int, name: str, left_seconds: float | None) -> None:
        left = "" if left_seconds is None else f"about {duration(left_seconds)} left"
        if self._run is None:
            self._run = self._progress.add_task("run", total=total, detail=left)
        self._progress.update(self._run, completed=number - 1, detail=left, description=f"{number} of {total}")
        if self._step is not None:
            self._progress.remove_task(self._step)
        self._step = self._progress.add_task(redacted(name), total=None, detail="")

    def phase(self, text: str) -> None:
        self._rate = _Rate()
        if self._step is not None:
            self._progress.update(self._step, total=None, completed=0, detail=redacted(text))

    def progress(self, done: int, total: int) -> None:
        rate = self._rate.add(done)
        if self._step is not None:
            detail = f"{done:,} of {total:,} records, {rate:,.0f}/s"
            self._progress.update(self._step, completed=done, total=total, detail=detail)


def choose_ui(console: Console) -> Ui:
    """Bars where there is a person at a terminal, else lines."""
    return TerminalUi(console) if console.is_terminal else PlainUi(console)
