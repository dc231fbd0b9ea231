"""A running connector that gets another number of tasks in the middle of its drain: how long that takes and costs.

Connect stops all tasks of the connector and starts the new ones, and their consumers form the group anew. The new
number is asked for when 40 % of the records are stored. The rebalance is over when the group is stable with a member
for each task that is asked for, and Connect calls them all started; what is stored from then on to 90 % gives the rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sinkbench.analysis.rates import FEWEST_SAMPLES, LOW_SHARE, progress
from sinkbench.analysis.samples import Sample, stored_counts
from sinkbench.analysis.stalls import Stall
from sinkbench.errors import ReasonCode
from sinkbench.results import Rescale
from sinkbench.trial.drain import Drain, rate_after
from sinkbench.trial.kind import Figures
from sinkbench.trial.trial import Trial

__all__ = ["LiveRescale", "rescale_of"]

ASK_SHARE = 0.4


class LiveRescale(Drain):
    """A drain in which the connector gets the cell's number of tasks once enough is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: float | None = None
        """When the new number was asked for, on the samples' clock."""
        self.settled: float | None = None
        """When all tasks of the new number had their partitions."""

    def run(self, trial: Trial) -> None:
        super().run(trial)
        if self.settled is None:
            when = "before another number was asked for" if self.asked is None else "before they ran"
            text = f"the topic ran dry {when}: {trial.cell.tasks} tasks after {trial.cell.tasks_before}"
            trial.note(ReasonCode.RAN_DRY, f"{text}; ask for a longer drain.window_seconds")

    def see(self, trial: Trial, sample: Sample) -> None:
        """Takes in the next sample of the drain. Raises ConnectError if Connect refuses the new number."""
        if self.asked is None:
            if trial.placed is not None and (sample.stored or 0) >= ASK_SHARE * trial.records:
                self.asked = trial.now()
                trial.bench.set_tasks(trial.cell, trial.names)
        elif self.settled is None:
            status = trial.bench.settled(trial.cell, trial.names)
            if status is not None:
                self.settled, trial.placed = trial.now(), status

    def stalls(self, trial: Trial) -> list[Stall]:
        # Nothing is stored while the tasks change: that is the standstill, which is measured.
        changes = math.inf if self.asked is None else self.asked, math.inf if self.settled is None else self.settled
        return [each for each in super().stalls(trial) if not _overlap(each, changes)]

    def figures(self, trial: Trial) -> Figures:
        if self.asked is None or self.settled is None:
            return self.drained(trial, None)
        figures = self.drained(trial, rate_after(trial.samples, trial.records, self.settled))
        before = trial.cell.tasks_before or 0
        step = rescale_of(trial.samples, trial.records, before, self.asked, self.settled)
        return {**figures, **self.looked_at(trial), "rescale": step}


def _overlap(stall: Stall, between: tuple[float, float]) -> bool:
    return stall.began_seconds < between[1] and stall.began_seconds + stall.seconds > between[0]


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
