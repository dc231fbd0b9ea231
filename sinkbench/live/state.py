"""Where a run stands: fed by its events, read as plain values that JSON can hold. Touches no service and no screen."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, TypedDict, cast

from sinkbench.live.readings import Course, Readings
from sinkbench.probes import Sample
from sinkbench.results import TrialRecord
from sinkbench.secrets import redacted
from sinkbench.ui import Rate, Step, trial_line

__all__ = ["MOST_LINES", "CellNow", "Ending", "Line", "LiveRun", "News", "RunNow", "Snapshot", "StepNow"]

MOST_LINES = 50

State = Literal["waiting", "pilot", "running", "done", "invalid"]
Ending = Literal["complete", "interrupted", "failed"]


class RunNow(TypedDict):
    """The run as a whole: its id, empty until it has one; how it has ended; how long it has taken and will take."""

    name: str
    ending: Ending | None
    elapsed_seconds: float
    left_seconds: float | None


class StepNow(TypedDict):
    """What goes on: the step (none before the first), its phase, and records so far, of how many, at which rate."""

    number: int
    total: int
    name: str
    phase: str
    done: int | None
    records: int | None
    rate: float | None


class CellNow(TypedDict):
    """A cell: trials taken of at most so many, those of them that are invalid, the median of the valid ones' rates."""

    cell: str
    state: State
    taken: int
    of: int | None
    invalid: int
    lost: int
    records_per_second: float | None


class Line(TypedDict):
    """A line that was said: its number, from 1 on; whether it is the verdict of a trial, and whether a bad one."""

    number: int
    text: str
    verdict: bool
    bad: bool


class News(TypedDict, total=False):
    """The parts of a snapshot that have changed."""

    run: RunNow
    step: StepNow
    cells: list[CellNow]
    readings: Readings
    lines: list[Line]


class Snapshot(TypedDict):
    """All of it."""

    run: RunNow
    step: StepNow
    cells: list[CellNow]
    readings: Readings
    lines: list[Line]


@dataclass
class _Cell:
    of: int | None
    active: Literal["pilot", "running"] | None = None
    tried: bool = False
    taken: int = 0
    invalid: int = 0
    lost: int = 0
    rates: list[float] = field(default_factory=list)

    @property
    def state(self) -> State:
        if self.active is not None:
            return self.active
        if not self.tried:
            return "waiting"
        return "invalid" if self.taken and self.invalid == self.taken else "done"


class LiveRun:
    """A run while it goes on. Every event takes constant time; all methods may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: tells the time in seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._started = clock()
        self._ended: float | None = None
        self._ending: Ending | None = None
        self._name = ""
        self._cells: dict[str, _Cell] = {}
        self._shown: dict[str, str] = {}
        self._step: Step | None = None
        self._step_began = 0.0
        self._phase = ""
        self._done: tuple[int, int] | None = None
        self._rate: float | None = None
        self._rates = Rate(clock)
        self._course = Course()
        self._lines: deque[Line] = deque(maxlen=MOST_LINES)
        self._said = 0
        self._count = 1
        self._changed = dict.fromkeys(("run", "step", "cells", "readings", "lines"), 1)

    @property
    def ending(self) -> Ending | None:
        """How it has ended; None while it goes on."""
        return self._ending

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        """A run begins: its id, the keys of its cells, and how many trials of each there will be at most, if known.

        `kept` are the trials of a run that is taken up again.
        """
        with self._lock:
            self._name = redacted(run)
            self._cells = {key: _Cell(trials) for key in cells}
            self._shown = {key: redacted(key) for key in cells}
            for record in kept:
                self._count_in(record)
            self._note("run", "cells")

    def say(self, line: str) -> None:
        """One line that stays."""
        with self._lock:
            self._add_line(line, verdict=False, bad=False)

    def step(self, step: Step) -> None:
        """A pilot, a limit or a trial begins."""
        with self._lock:
            self._step, self._step_began = step, self._clock()
            self._phase, self._done, self._rate = "", None, None
            self._course, self._rates = Course(), Rate(self._clock)
            for cell in self._cells.values():
                cell.active = None
            for key in step.cells:
                if key in self._cells:
                    self._cells[key].active = "pilot" if step.kind == "pilot" else "running"
            self._note("run", "step", "cells", "readings")

    def phase(self, text: str) -> None:
        """The step goes on to something else."""
        with self._lock:
            self._phase, self._done, self._rate = redacted(text), None, None
            self._rates = Rate(self._clock)
            self._note("step")

    def progress(self, done: int, total: int) -> None:
        """Records so far in the topic or in the sink."""
        with self._lock:
            self._done, self._rate = (done, total), round(self._rates.add(done), 1)
            self._note("step")

    def sample(self, sample: Sample) -> None:
        """One reading of everything."""
        with self._lock:
            if self._course.add(sample):
                self._note("readings")

    def ended(self, record: TrialRecord) -> None:
        """A trial has ended, with this record."""
        with self._lock:
            self._count_in(record)
            self._add_line(trial_line(record), verdict=True, bad=bool(record.invalid or _lost(record)))
            self._note("cells")

    def end(self, ending: Ending) -> None:
        """The run is over; nothing comes after it."""
        with self._lock:
            self._ending, self._ended = ending, self._clock()
            self._step, self._phase, self._done, self._rate = None, "", None, None
            for cell in self._cells.values():
                cell.active = None
            self._note("run", "step", "cells")

    def snapshot(self) -> Snapshot:
        """How everything is now."""
        return cast("Snapshot", self.news()[1])

    def news(self, since: int = 0) -> tuple[int, News]:
        """What has changed since another call returned `since` (0: everything), and the number for the next call."""
        found: News = {}
        with self._lock:
            changed = {part for part, count in self._changed.items() if count > since}
            if "run" in changed:
                found["run"] = self._run_now()
            if "step" in changed:
                found["step"] = self._step_now()
            if "cells" in changed:
                found["cells"] = self._cells_now()
            if "readings" in changed:
                found["readings"] = self._course.readings()
            if "lines" in changed:
                found["lines"] = list(self._lines)
            return self._count, found

    def _count_in(self, record: TrialRecord) -> None:
        cell = self._cells.get(record.cell)
        if cell is None:
            return
        cell.active, cell.tried = None, True
        cell.lost += _lost(record)
        # One that only tells how to take another is none of the cell's trials.
        if not record.pilot:
            cell.taken += 1
            cell.invalid += bool(record.invalid)
            if record.records_per_second is not None and not record.invalid:
                cell.rates.append(record.records_per_second)

    def _note(self, *parts: str) -> None:
        self._count += 1
        self._changed.update(dict.fromkeys(parts, self._count))

    def _add_line(self, text: str, *, verdict: bool, bad: bool) -> None:
        self._said += 1
        self._lines.append({"number": self._said, "text": redacted(text), "verdict": verdict, "bad": bad})
        self._note("lines")

    def _run_now(self) -> RunNow:
        now = self._clock() if self._ended is None else self._ended
        left = None if self._step is None else self._step.left_seconds
        return {
            "name": self._name,
            "ending": self._ending,
            "elapsed_seconds": round(now - self._started, 1),
            "left_seconds": None if left is None else round(max(left - (now - self._step_began), 0.0), 1),
        }

    def _step_now(self) -> StepNow:
        done, records = (None, None) if self._done is None else self._done
        step = self._step
        return {
            "number": 0 if step is None else step.number,
            "total": 0 if step is None else step.total,
            "name": "" if step is None else redacted(step.name),
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
                "records_per_second": median(cell.rates) if cell.rates else None,
            }
            for key, cell in self._cells.items()
        ]


def _lost(record: TrialRecord) -> int:
    return 0 if record.audit is None else record.audit.lost
