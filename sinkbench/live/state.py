"""The state of a run, from its events, as plain JSON values. Accesses no service and no screen."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal

from sinkbench.analysis.samples import Sample, connection_peaks
from sinkbench.live.events import Events, RunStep, trial_line
from sinkbench.metrics.taken import at_least, rated
from sinkbench.results import RunSummary, TrialRecord
from sinkbench.secrets import redacted
from sinkbench.topology import service_of

MOST_LINES = 50
MOST_POINTS = 120
# Samples at a fixed interval come a little early or late, so this is a little less than half a second.
SPACING_SECONDS = 0.48

Ending = Literal["complete", "interrupted", "failed"]
Values = dict[str, Any]
"""What the page gets of a run, or in news what changed of it, as JSON; None is not known.

    run       name, ending, elapsed_seconds, left_seconds
    step      the current step, empty before the first: number, total, name; its phase; done of so many records
    cells     cell; state: waiting, pilot, running, done or invalid; trials taken of the maximum, invalid ones, records
              lost, records_per_second: the median of its valid rates
    readings  series of equal length, oldest point first: seconds, rate (per second since the previous point), lag,
              clients, servers (connections of the database), and cpu by service
    lines     number, from 1; text; verdict: whether it is a trial's, bad: and a bad one"""


@dataclass(frozen=True)
class Moment:
    """What the page does not show of the current step, and its phase's last sample; times are in seconds since 1970."""

    cells: tuple[str, ...] = ()
    began: float | None = None
    sample: Sample | None = None
    fault: str = ""
    fault_began: float | None = None
    fault_ended: float | None = None


class LastMinute:
    """The last minute of a trial's samples, in as many points as a small chart can show."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._points: deque[Values] = deque(maxlen=MOST_POINTS)
        self._stored: tuple[float, int] | None = None
        self._used: dict[str, tuple[float, float]] = {}

    def add(self, sample: Sample) -> bool:
        """Adds a sample, in constant time; returns whether it made a point."""
        now, stored = sample.seconds, sample.stored
        last = self._points[-1]["seconds"] if self._points else None
        if last is not None and now < last - SPACING_SECONDS:
            # The clock of another trial.
            self._begin()
        elif last is not None and now - last < SPACING_SECONDS:
            return False
        rate = lag = None
        if stored is not None:
            if self._stored is not None:
                rate = round(max(stored - self._stored[1], 0) / (now - self._stored[0]), 1)
            self._stored = now, stored
            lag = None if sample.in_topic is None else max(sample.in_topic - stored, 0)
        clients, servers = connection_peaks([sample])
        cores: dict[str, float] = {}
        for name, used in sample.cpu_seconds.items():
            before = self._used.pop(name, None)
            if used is None:
                continue
            self._used[name] = now, used
            # Less CPU time than before means a restarted process.
            if before is not None and used >= before[1]:
                of = service_of(name)
                cores[of] = round(cores.get(of, 0.0) + (used - before[1]) / (now - before[0]), 3)
        point = {"seconds": round(now, 2), "rate": rate, "lag": lag, "clients": clients, "servers": servers}
        self._points.append({**point, "cpu": cores})
        return True

    def readings(self) -> Values:
        services = dict.fromkeys(name for point in self._points for name in point["cpu"])
        cpu = {name: [point["cpu"].get(name) for point in self._points] for name in services}
        names = ("seconds", "rate", "lag", "clients", "servers")
        return {**{name: [point[name] for point in self._points] for name in names}, "cpu": cpu}


class LiveRun(Events):
    """The state of a run, updated by events, each in constant time and from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._started = self._step_began = clock()
        self._left: float | None = None
        self._ended: float | None = None
        self.ending: Ending | None = None
        self._name = ""
        self._cells: dict[str, Values] = {}
        self._valid: dict[str, list[TrialRecord]] = {}
        self._step = _step(RunStep(0, 0, "", "trial"))
        self._course = LastMinute()
        self._lines: deque[Values] = deque(maxlen=MOST_LINES)
        self._said = 0
        self._count = 1
        self._parts: dict[str, Callable[[], object]] = {
            "run": self._run_now,
            "step": lambda: self._step,
            "cells": lambda: [cell.copy() for cell in self._cells.values()],
            "readings": lambda: self._course.readings(),
            "lines": lambda: list(self._lines),
        }
        self._changed = dict.fromkeys(self._parts, 1)
        self.moment = Moment()
        self.summary: RunSummary | None = None

    def begin(self, run: str, cells: Sequence[str], trials: int | None, kept: Sequence[TrialRecord] = ()) -> None:
        with self._lock:
            self._name = redacted(run)
            self._valid = {key: [] for key in cells}
            none = {"state": "waiting", "taken": 0, "of": trials, "invalid": 0, "lost": 0, "records_per_second": None}
            self._cells = {key: {"cell": redacted(key), **none} for key in cells}
            for record in kept:
                self._count_in(record)
            self._note("run", "cells")

    def say(self, line: str) -> None:
        with self._lock:
            self._add_line(line, verdict=False, bad=False)

    def step(self, step: RunStep) -> None:
        with self._lock:
            self._left, self._step_began = step.left_seconds, self._clock()
            self._step = _step(step)
            self._course = LastMinute()
            self.moment = Moment(tuple(map(redacted, step.cells)), time.time() if step.kind == "trial" else None)
            for key, cell in self._cells.items():
                cell["state"] = _at_rest(cell)
                if key in step.cells:
                    cell["state"] = "pilot" if step.kind == "pilot" else "running"
            self._note("run", "step", "cells", "readings")

    def phase(self, text: str) -> None:
        with self._lock:
            self._step = {**self._step, "phase": redacted(text), "done": None, "records": None}
            self.moment = replace(self.moment, sample=None)
            self._note("step")

    def progress(self, done: int, total: int) -> None:
        with self._lock:
            self._step = {**self._step, "done": done, "records": total}
            self._note("step")

    def sample(self, sample: Sample) -> None:
        with self._lock:
            self.moment = replace(self.moment, sample=sample)
            if self._course.add(sample):
                self._note("readings")

    def fault(self, name: str, over: bool) -> None:
        with self._lock:
            began, ended = (self.moment.fault_began, time.time()) if over else (time.time(), None)
            self.moment = replace(self.moment, fault=redacted(name), fault_began=began, fault_ended=ended)

    def judged(self, summary: RunSummary) -> None:
        self.summary = summary

    def ended(self, record: TrialRecord) -> None:
        with self._lock:
            self._count_in(record)
            self._add_line(trial_line(record), verdict=True, bad=bool(record.invalid or _lost(record)))
            self._note("cells")

    def end(self, ending: Ending) -> None:
        """The run ended; no event follows."""
        with self._lock:
            self.ending, self._ended, self._left = ending, self._clock(), None
            self._step = _step(RunStep(0, 0, "", "trial"))
            for cell in self._cells.values():
                cell["state"] = _at_rest(cell)
            self._note("run", "step", "cells")

    def snapshot(self) -> Values:
        return self.news()[1]

    def news(self, since: int = 0) -> tuple[int, Values]:
        """Returns the number of this call, and the changes since call number `since`; 0: everything."""
        with self._lock:
            return self._count, {part: now() for part, now in self._parts.items() if self._changed[part] > since}

    def _count_in(self, record: TrialRecord) -> None:
        cell, valid = self._cells.get(record.cell), self._valid.get(record.cell, [])
        if cell is None:
            return
        cell["lost"] += _lost(record)
        # A pilot does not count as a trial of the cell.
        if not record.pilot:
            kept = [each for each in valid if each.trial != record.replaces]
            # A trial that is replaced is no longer a trial of the cell, nor an invalid one.
            if record.replaces is None:
                cell["taken"] += 1
            elif len(kept) == len(valid):
                cell["invalid"] -= 1
            valid[:] = kept
            cell["invalid"] += bool(record.invalid)
            if record.records_per_second is not None and not record.invalid:
                valid.append(record)
        cell["state"] = _at_rest(cell)
        rates = [] if at_least(valid) is not None else [trial.records_per_second for trial in rated(valid)]
        known = [rate for rate in rates if rate is not None]
        cell["records_per_second"] = median(known) if known else None

    def _note(self, *parts: str) -> None:
        self._count += 1
        self._changed.update(dict.fromkeys(parts, self._count))

    def _add_line(self, text: str, *, verdict: bool, bad: bool) -> None:
        self._said += 1
        self._lines.append({"number": self._said, "text": redacted(text), "verdict": verdict, "bad": bad})
        self._note("lines")

    def _run_now(self) -> Values:
        now = self._clock() if self._ended is None else self._ended
        left = None if self._left is None else round(max(self._left - (now - self._step_began), 0.0), 1)
        elapsed = round(now - self._started, 1)
        return {"name": self._name, "ending": self.ending, "elapsed_seconds": elapsed, "left_seconds": left}


def _step(step: RunStep) -> Values:
    unknown = {"phase": "", "done": None, "records": None}
    return {"number": step.number, "total": step.total, "name": redacted(step.name), **unknown}


def _at_rest(cell: Values) -> str:
    if not cell["taken"]:
        return "waiting"
    return "invalid" if cell["invalid"] == cell["taken"] else "done"


def _lost(record: TrialRecord) -> int:
    return 0 if record.audit is None else record.audit.lost + (record.audit.missing or 0)
