"""The state of a run, from its events, as plain JSON values. Accesses no service and no screen."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, TypedDict, cast

from sinkbench.analysis.samples import Sample
from sinkbench.live.events import Rate, RunStep, trial_line
from sinkbench.live.readings import ChartSeries, LastMinute
from sinkbench.metrics.standing import at_least, rated
from sinkbench.results import TrialRecord
from sinkbench.secrets import redacted

MOST_LINES = 50
_NO_STEP = RunStep(0, 0, "", "trial")

State = Literal["waiting", "pilot", "running", "done", "invalid"]
Ending = Literal["complete", "interrupted", "failed"]


class RunNow(TypedDict):
    """The run: its id, its end, the time spent and the time left."""

    name: str
    ending: Ending | None
    elapsed_seconds: float
    left_seconds: float | None


class StepNow(TypedDict):
    """The current step, empty before the first, with its phase and progress."""

    number: int
    total: int
    name: str
    phase: str
    done: int | None
    records: int | None
    rate: float | None


class CellNow(TypedDict):
    """A cell: trials taken of the maximum, invalid ones, records lost, and the median of its valid rates."""

    cell: str
    state: State
    taken: int
    of: int | None
    invalid: int
    lost: int
    records_per_second: float | None


class LogLine(TypedDict):
    """A printed line: its number, from 1; whether it is a trial's verdict, and a bad one."""

    number: int
    text: str
    verdict: bool
    bad: bool


class Snapshot(TypedDict, total=False):
    """The known parts of a run, or in news those that changed."""

    run: RunNow
    step: StepNow
    cells: list[CellNow]
    readings: ChartSeries
    lines: list[LogLine]


@dataclass
class _Cell:
    of: int | None
    active: Literal["pilot", "running"] | None = None
    tried: bool = False
    taken: int = 0
    invalid: int = 0
    lost: int = 0
    valid: list[TrialRecord] = field(default_factory=list)

    @property
    def state(self) -> State:
        if self.active is not None:
            return self.active
        if not self.tried:
            return "waiting"
        return "invalid" if self.taken and self.invalid == self.taken else "done"


class LiveRun:
    """The state of a run, updated by `Events`, each in constant time and from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._started = clock()
        self._ended: float | None = None
        self._ending: Ending | None = None
        self._name = ""
        self._cells: dict[str, _Cell] = {}
        self._shown: dict[str, str] = {}
        self._step = _NO_STEP
        self._step_began = 0.0
        self._phase = ""
        self._done: tuple[int, int] | None = None
        self._rate: float | None = None
        self._rates = Rate(clock)
        self._course = LastMinute()
        self._lines: deque[LogLine] = deque(maxlen=MOST_LINES)
        self._said = 0
        self._count = 1
        self._changed = dict.fromkeys(("run", "step", "cells", "readings", "lines"), 1)

    @property
    def ending(self) -> Ending | None:
        return self._ending

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        with self._lock:
            self._name = redacted(run)
            self._cells = {key: _Cell(trials) for key in cells}
            self._shown = {key: redacted(key) for key in cells}
            for record in kept:
                self._count_in(record)
            self._note("run", "cells")

    def say(self, line: str) -> None:
        with self._lock:
            self._add_line(line, verdict=False, bad=False)

    def step(self, step: RunStep) -> None:
        with self._lock:
            self._step, self._step_began = step, self._clock()
            self._phase, self._done, self._rate = "", None, None
            self._course, self._rates = LastMinute(), Rate(self._clock)
            for cell in self._cells.values():
                cell.active = None
            for key in step.cells:
                if key in self._cells:
                    self._cells[key].active = "pilot" if step.kind == "pilot" else "running"
            self._note("run", "step", "cells", "readings")

    def phase(self, text: str) -> None:
        with self._lock:
            self._phase, self._done, self._rate = redacted(text), None, None
            self._rates = Rate(self._clock)
            self._note("step")

    def progress(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._rate = (done, total), round(self._rates.add(done), 1)
            self._note("step")

    def sample(self, sample: Sample) -> None:
        with self._lock:
            if self._course.add(sample):
                self._note("readings")

    def ended(self, record: TrialRecord) -> None:
        with self._lock:
            self._count_in(record)
            self._add_line(trial_line(record), verdict=True, bad=bool(record.invalid or _lost(record)))
            self._note("cells")

    def end(self, ending: Ending) -> None:
        """The run ended; no event follows."""
        with self._lock:
            self._ending, self._ended = ending, self._clock()
            self._step, self._phase, self._done, self._rate = _NO_STEP, "", None, None
            for cell in self._cells.values():
                cell.active = None
            self._note("run", "step", "cells")

    def snapshot(self) -> Snapshot:
        return self.news()[1]

    def news(self, since: int = 0) -> tuple[int, Snapshot]:
        """Returns the number of this call, and the changes since call number `since`; 0: everything."""
        with self._lock:
            parts: dict[str, Callable[[], object]] = {
                "run": self._run_now,
                "step": self._step_now,
                "cells": self._cells_now,
                "readings": self._course.readings,
                "lines": lambda: list(self._lines),
            }
            found = {part: now() for part, now in parts.items() if self._changed[part] > since}
            return self._count, cast("Snapshot", found)

    def _count_in(self, record: TrialRecord) -> None:
        cell = self._cells.get(record.cell)
        if cell is None:
            return
        cell.active, cell.tried = None, True
        cell.lost += _lost(record)
        # A pilot does not count as a trial of the cell.
        if not record.pilot:
            kept = [each for each in cell.valid if each.trial != record.replaces]
            # A trial that is replaced is no longer a trial of the cell, nor an invalid one.
            if record.replaces is None:
                cell.taken += 1
            elif len(kept) == len(cell.valid):
                cell.invalid -= 1
            cell.valid = kept
            cell.invalid += bool(record.invalid)
            if record.records_per_second is not None and not record.invalid:
                cell.valid.append(record)

    def _note(self, *parts: str) -> None:
        self._count += 1
        self._changed.update(dict.fromkeys(parts, self._count))

    def _add_line(self, text: str, *, verdict: bool, bad: bool) -> None:
        self._said += 1
        self._lines.append({"number": self._said, "text": redacted(text), "verdict": verdict, "bad": bad})
        self._note("lines")

    def _run_now(self) -> RunNow:
        now = self._clock() if self._ended is None else self._ended
        left = self._step.left_seconds
        return {
            "name": self._name,
            "ending": self._ending,
            "elapsed_seconds": round(now - self._started, 1),
            "left_seconds": None if left is None else round(max(left - (now - self._step_began), 0.0), 1),
        }

    def _step_now(self) -> StepNow:
        done, records = (None, None) if self._done is None else self._done
        return {
            "number": self._step.number,
            "total": self._step.total,
            "name": redacted(self._step.name),
            "phase": self._phase,
            "done": done,
            "records": records,
            "rate": self._rate,
        }

    def _cells_now(self) -> list[CellNow]:
        return [
            {
                "cell": self._shown[key],
                "state": cell.state,
                "taken": cell.taken,
                "of": cell.of,
                "invalid": cell.invalid,
                "lost": cell.lost,
                "records_per_second": _rate(cell.valid),
            }
            for key, cell in self._cells.items()
        ]


def _lost(record: TrialRecord) -> int:
    return 0 if record.audit is None else record.audit.lost + (record.audit.missing or 0)


def _rate(valid: Sequence[TrialRecord]) -> float | None:
    rates = [] if at_least(valid) is not None else [trial.records_per_second for trial in rated(valid)]
    known = [rate for rate in rates if rate is not None]
    return median(known) if known else None
