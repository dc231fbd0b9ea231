"""A run that never takes place, as the events that a real one would give: for tests of its views, and a benchmark."""

import math
from collections.abc import Iterator

from sinkbench import secrets
from sinkbench.analysis.samples import Sample
from sinkbench.live.events import Events, RunStep
from sinkbench.live.state import LiveRun
from sinkbench.plan.cells import Cell
from sinkbench.results import Audit, TrialRecord
from sinkbench.summary.cells import summarize
from tests.support.trials import a_cell, run_summary, sample, trial

RUN = "20261121T062102Z-quick"
INTERVAL_SECONDS = 0.25
CELLS = [
    a_cell(label, multiple)
    for label in ("postgres/jdbc", "postgres/jdbc-pgbouncer", "elasticsearch/camel-index", "elasticsearch/camel-bulk")
    for multiple in (1, 2, 4)
]
_CPU = {"connect-1": 0.2, "connect-2": 0.2, "connect-3": 0.2, "postgres": 0.9, "pgbouncer": 0.1, "kafka": 0.12}


class Clock:
    """Tells the time that it was set to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def record(cell: Cell = CELLS[0], rate: float | None = 81_000.0, lost: int = 0, **fields: object) -> TrialRecord:
    """A trial of a million records."""
    audit = Audit(produced=1_000_000, stored=1_000_000 - lost, lost=lost, duplicates=0)
    return trial(rate, cell, **{"records": 1_000_000, "window_seconds": 15.0, "audit": audit, **fields})  # type: ignore[arg-type]


def samples(seconds: float, rate: float = 80_000.0, records: int = 10_000_000) -> Iterator[Sample]:
    """Four a second, of a drain at this rate that goes up and down a little."""
    for number in range(int(seconds / INTERVAL_SECONDS)):
        now = number * INTERVAL_SECONDS
        stored = min(int(rate * (now + 0.2 * math.sin(now))), records)
        yield sample(
            now,
            stored,
            uncommitted=records - stored,
            backends=18,
            pool_clients=40,
            pool_servers=9,
            tasks_running=12,
            tasks_failed=0,
            cpu_seconds={**{name: cores * now for name, cores in _CPU.items()}, "controller": 0.02 * now},
            in_topic=records,
        )


def began(events: Events, cells: list[Cell] = CELLS, trials: int | None = 3) -> None:
    """The run begins, and the first trial of its first cell."""
    events.begin(RUN, [cell.key for cell in cells], trials)
    events.step(RunStep(1, 40, f"{cells[0].key}, trial 1 of 3", "trial", (cells[0].key,), 750.0))
    events.phase("draining")


def drained(events: Events, seconds: float) -> None:
    """So many seconds of a trial's samples, all at once."""
    for each in samples(seconds):
        events.progress(each.stored or 0, each.in_topic or 0)
        events.sample(each)


def judged() -> LiveRun:
    """A run in its first cell's second trial, in which a fault has begun and ended."""
    live = LiveRun()
    live.begin("20260101T000000Z-quick", [cell.key for cell in CELLS], 3)
    live.judged(run_summary(*summarize(CELLS, [record(lost=12)])))
    live.ended(record(lost=12))
    live.step(RunStep(2, 36, f"{CELLS[0].key}, trial 2 of 3", "trial", (CELLS[0].key,), 750.0))
    drained(live, 20)
    secrets.conceal("hunter2-hunter2")
    live.fault("curl hunter2-hunter2", False)
    live.fault("curl hunter2-hunter2", True)
    return live
