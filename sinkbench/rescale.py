"""A running connector that gets another number of tasks in the middle of its drain: how long that takes and costs.

Connect stops all tasks of the connector and starts the new ones, and their consumers form the group anew. The new
number is asked for when 40 % of the records are stored. The rebalance is over when the group is stable with a member
for each task that is asked for, and Connect calls them all started; what is stored from then on to 90 % gives the rate.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from sinkbench.bench import Bench, Names
from sinkbench.cells import Cell
from sinkbench.kafka import group_of
from sinkbench.probes import Sample
from sinkbench.results import Rescale
from sinkbench.stats import FEWEST_SAMPLES, LOW_SHARE, drain_rate, progress
from sinkbench.watch import stored_counts
from sinkbench.watching import Watched

__all__ = ["LiveRescale", "rate_after", "rescale_of"]

ASK_SHARE = 0.4


class LiveRescale:
    """Asks for the cell's number of tasks once enough is stored, and sees when they run."""

    def __init__(self, bench: Bench, cell: Cell, names: Names, records: int, watched: Watched) -> None:
        self._bench = bench
        self._cell = cell
        self._names = names
        self._records = records
        self._watched = watched
        self.asked: float | None = None
        """When the new number was asked for, on the samples' clock."""
        self.settled: float | None = None
        """When all tasks of the new number had their partitions."""

    def see(self, sample: Sample) -> None:
        """Takes in the next sample of the drain. Raises ConnectError if Connect refuses the new number."""
        if self.asked is None:
            if self._watched.placed is not None and (sample.stored or 0) >= ASK_SHARE * self._records:
                self.asked = self._now()
                self._bench.connect.set_tasks(self._names.connector, self._cell.tasks)
        elif self.settled is None:
            members = self._bench.kafka.members(group_of(self._names.connector))
            status = self._bench.connect.status(self._names.connector) if members == self._cell.tasks else None
            if status is not None and status.settled(self._cell.tasks):
                self.settled = self._now()
                self._watched.placed = status

    def problem(self) -> str | None:
        """Why the drain shows nothing, if it was over before the new tasks ran."""
        if self.settled is not None:
            return None
        when = "before another number was asked for" if self.asked is None else "before they ran"
        return (
            f"the topic ran dry {when}: {self._cell.tasks} tasks after {self._cell.tasks_before};"
            " ask for a longer drain.window_seconds"
        )

    def _now(self) -> float:
        return time.monotonic() - self._watched.sampling_since


def rescale_of(samples: Sequence[Sample], records: int, tasks_before: int, asked: float, settled: float) -> Rescale:
    """What the samples of such a drain show.

    Args:
        samples: of the whole drain.
        records: how many were drained.
        tasks_before: the number that the connector was started with.
        asked, settled: when the new number was asked for, and all of these tasks ran, on the samples' clock.

    Returns:
        The rebalance's length; the standstill: the longest time from then on in which nothing was stored, to within the
        sampling interval; and the rate before, from 10 % of the records on.
    """
    times, counts = progress(*stored_counts(samples))
    rises = times[1:][np.diff(counts) > 0]
    moments = np.concatenate([[asked], rises[rises > asked]])
    start = float(np.interp(LOW_SHARE * records, counts, times)) if counts.size else asked
    before = None
    # Of fewer readings the rate would be mostly what happened to lie between two of them.
    if np.count_nonzero((rises > start) & (rises < asked)) >= FEWEST_SAMPLES:
        stored = float(np.interp(asked, times, counts)) - LOW_SHARE * records
        before = round(stored / (asked - start), 1) if stored > 0 else None
    return Rescale(
        tasks_before=tasks_before,
        asked_at_seconds=round(asked, 3),
        rebalance_seconds=round(settled - asked, 3),
        standstill_seconds=round(float(np.diff(moments).max()), 3) if moments.size > 1 else None,
        before_records_per_second=before,
    )


def rate_after(samples: Sequence[Sample], records: int, settled: float) -> float | None:
    """Records per second from when the new tasks ran until 90 % were stored; None if too few samples show progress."""
    found = drain_rate(*stored_counts(samples), records, from_seconds=settled)
    return None if found is None else found.records_per_second
