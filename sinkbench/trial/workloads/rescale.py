"""Re-scales a running connector when 40 % of the records are stored, and measures how long that takes: until the group
is stable with a member per task and all tasks are RUNNING. The rate is measured from then to 90 %."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sinkbench.analysis.rates import FEWEST_SAMPLES, LOW_SHARE, progress
from sinkbench.analysis.samples import Sample, stored_counts
from sinkbench.analysis.stalls import Stall, stalls
from sinkbench.errors import ReasonCode
from sinkbench.results import Reason, Rescale
from sinkbench.trial.resources import Resources
from sinkbench.trial.values import Loaded, Measured, Rescaled, Timeline
from sinkbench.trial.workload import Around, Figures
from sinkbench.trial.workloads.drain import Drain, drain_of, drained, looked_at, rate_after

ASK_SHARE = 0.4


class LiveRescale(Drain):
    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        own.observer.phase("draining")
        following, step = drain_of(own), Rescaled()
        with following, following.samples() as samples:
            for sample in samples:
                if step.asked is None:
                    if following.placement is not None and (sample.stored or 0) >= ASK_SHARE * own.records:
                        step = Rescaled(following.now())
                        own.set_tasks()
                elif step.settled is None and (status := own.settled()) is not None:
                    step = replace(step, settled=following.now())
                    following.settled(status)
        timeline = replace(following.timeline, rescaled=step)
        if timeline.failed is not None or step.settled is not None:
            return timeline
        when = "before another number was asked for" if step.asked is None else "before they ran"
        text = f"the topic ran dry {when}: {own.cell.tasks} tasks after {own.cell.tasks_before}"
        dry = Reason(code=ReasonCode.RAN_DRY, text=f"{text}; ask for a longer drain.window_seconds")
        return replace(timeline, reasons=[*timeline.reasons, dry])

    def figures(self, found: Measured, reasons: list[Reason]) -> Figures:
        step = found.timeline.rescaled or Rescaled()
        stalled = stalls_outside(found.samples, found.records, step)
        if step.asked is None or step.settled is None:
            return drained(found, reasons, None, stalled)
        figures = drained(found, reasons, rate_after(found.samples, found.records, step.settled), stalled)
        before = found.cell.tasks_before or 0
        measured = rescale_of(found.samples, found.records, before, step.asked, step.settled)
        return {**figures, **looked_at(found), "rescale": measured}


def stalls_outside(samples: Sequence[Sample], records: int, step: Rescaled) -> list[Stall]:
    """Returns the stalls outside the re-scale, whose pauses are its standstill."""
    asked, settled = (math.inf if each is None else each for each in (step.asked, step.settled))
    found = stalls(samples, records)
    return [each for each in found if each.began_seconds >= settled or each.began_seconds + each.seconds <= asked]


def rescale_of(samples: Sequence[Sample], records: int, tasks_before: int, asked: float, settled: float) -> Rescale:
    """Returns rebalance time, standstill (the longest time without a stored record) and rate before.

    `asked` and `settled` are when the new tasks were requested and all ran, on the samples' clock.
    """
    times, counts = progress(*stored_counts(samples))
    rises = times[1:][np.diff(counts) > 0]
    moments = np.concatenate([[asked], rises[rises > asked]])
    start = float(np.interp(LOW_SHARE * records, counts, times)) if counts.size else asked
    before = None
    # With fewer readings the rate would depend on what falls between two of them.
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
