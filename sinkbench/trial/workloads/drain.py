"""Drain: the topic is full before the connector starts; measures how fast it is read. The pilot, and the re-scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sinkbench.analysis.rates import FEWEST_SAMPLES, LOW_SHARE, drain_rate, progress, rate_from_pilot, steadiness
from sinkbench.analysis.samples import Sample, compiling_share, middle, read_ahead, stored_counts, window_seconds
from sinkbench.analysis.stalls import NAMES, Stall, much_stalled, stalls
from sinkbench.analysis.words import percent
from sinkbench.errors import ReasonCode
from sinkbench.metrics.metric import rounded
from sinkbench.results import Reason, Rescale
from sinkbench.trial.following import Following, probes
from sinkbench.trial.record import Notes, bottleneck, check_loaded, noted
from sinkbench.trial.resources import Resources, create_target
from sinkbench.trial.stop import DrainWatch, Enough
from sinkbench.trial.trial import measured, raise_if_ended_early, read_before
from sinkbench.trial.values import After, Loaded, Measured, Rescaled, Timeline
from sinkbench.trial.workload import Around, Figures, Workload

# Limits a visit, in lengths of a pilot; the pilot continues at its next one: those in between warm the same JVMs.
LONGEST_VISIT = 9


class Drain(Workload):
    def load(self, own: Resources) -> Loaded | None:
        return load_topic(own)

    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        own.observer.phase("draining")
        return drain_of(own).to_the_end()

    def read(self, own: Resources, around: Around, found: Measured) -> After:
        # Rows from before the trial have times, too.
        times = own.sink.capabilities.times
        if times is None or found.audited.audit is None or found.cell.rows_before:
            return After()
        return After(stamped_records_per_second=times.rate(own.names.target, own.records))

    def figures(self, found: Measured, reasons: list[Reason]) -> Figures:
        stalled = stalls(found.samples, found.records)
        if not found.cell.probes:
            # Too few samples for a rate or its steadiness.
            return drained(found, reasons, found.after.stamped_records_per_second, stalled)
        steady = steadiness(*stored_counts(found.samples), found.records)
        return {
            **drained(found, reasons, rate_after(found.samples, found.records, steady.from_seconds), stalled),
            "steady": steady.steady,
            "warm_up_seconds": rounded(steady.warm_up_seconds),
            **looked_at(found),
        }


def load_topic(own: Resources) -> Loaded:
    """Loads the topic. Raises TrialFailed unless it then contains every record."""
    own.observer.phase("loading the topic")
    return check_loaded(own.load_topic(progress=lambda done: own.observer.progress(done, own.records)))


def drain_of(own: Resources, enough: Enough | None = None) -> Following:
    drain = own.cluster.plan.drain
    watch = DrainWatch(own.records, own.cell.tasks, drain.stall_seconds, drain.timeout_seconds, enough)
    return Following(own, probes(own), watch)


def drained(found: Measured, reasons: Sequence[Reason], rate: float | None, stalled: Sequence[Stall]) -> Figures:
    """Returns the figures of a drain; without a rate, or if it stood still for long, it is invalid."""
    more = []
    if rate is None and not reasons:
        text = "too few samples between 10 % and 90 % of the records; ask for a longer window_seconds"
        more.append(Reason(code=ReasonCode.TOO_SHORT, text=text))
    if (much := much_stalled(stalled, found.samples, found.records)) is not None:
        share, longest = much
        who = NAMES.get(longest.silent, longest.silent)
        why = f"{who} answered no probe meanwhile" if who else "no new record was seen in the sink"
        text = f"it stood still for {percent(share)} of the measured time: {why}"
        more.append(Reason(code=ReasonCode.STALLED, text=text, figures={"share": round(share, 3)}))
    seen = middle(found.samples, found.records) is not None
    return {
        "reasons": more,
        "bottleneck": bottleneck(found),
        "notes": noted(found, stalled),
        "stalled_seconds": rounded(sum(each.seconds for each in stalled), 1) if seen else None,
        "records_per_second": rounded(rate, 1),
        "stamped_records_per_second": rounded(found.after.stamped_records_per_second, 1),
        "window_seconds": rounded(window_seconds(found.samples, found.records)),
    }


def looked_at(found: Measured) -> Figures:
    """Returns whether the JVMs were warm, and how far tasks read ahead of the sink."""
    window = middle(found.samples, found.records)
    share = None if window is None else compiling_share(found.samples, *window)
    warm = None if share is None else share <= found.plan.drain.compiling_percent / 100
    return {"read_ahead_records": read_ahead(found.samples), "warm": warm}


@dataclass(frozen=True)
class Pilot:
    """Result of a pilot: a rate to size trials by, or why there is none. `compiling_share` is of all CPU time."""

    records_per_second: float | None
    problem: str | None = None
    compiling_share: float | None = None


def take_pilot(own: Resources, seconds_left: float = math.inf) -> Pilot:
    """Runs a cell on a loaded topic, which stays, until its rate levels off and its JVMs hardly compile.

    There is no audit. With few `seconds_left` it lasts just long enough for a rate."""
    drain = own.cluster.plan.drain
    seconds = drain.pilot_seconds
    longest = min(LONGEST_VISIT * seconds, drain.warm_up_seconds, max(seconds_left, 2 * seconds))
    notes, found = Notes(own.observer), measured(own)
    with notes.catching():
        create_target(own)
        found = replace(found, before=read_before(own, notes))
        enough = Enough(seconds, drain.compiling_percent / 100, longest)
        found = replace(found, timeline=drain_of(own, enough).to_the_end())
        raise_if_ended_early(found, notes)
    problem = found.timeline.failure or "; ".join(reason.text for reason in notes.reasons)
    if not found.samples:
        return Pilot(None, problem)
    end = found.samples[-1].seconds
    recent = [sample for sample in found.samples if sample.seconds >= end - 2 * seconds]
    if (rate := rate_from_pilot(*stored_counts(recent))) is None:
        return Pilot(None, problem or "it stored nothing")
    return Pilot(rate, compiling_share=compiling_share(found.samples, end - seconds, end))


def rate_after(samples: Sequence[Sample], records: int, seconds: float | None) -> float | None:
    """Records per second from `seconds` (or 10 % stored) to 90 % stored; None if too few samples show progress."""
    return drain_rate(*stored_counts(samples), records, from_seconds=seconds)


ASK_SHARE = 0.4


class LiveRescale(Drain):
    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        own.observer.phase("draining")
        following, step = drain_of(own), Rescaled()
        with following, following.samples() as samples:
            for sample in samples:
                if step.asked is None:
                    if following.seen.placement is not None and (sample.stored or 0) >= ASK_SHARE * own.records:
                        step = Rescaled(following.now())
                        own.cluster.connect.set_tasks(own.names.connector, own.cell.tasks)
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
        step = found.timeline.rescaled
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

    `asked` and `settled` are when the new tasks were requested and all ran, on the samples' clock."""
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
