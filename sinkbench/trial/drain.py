"""Drain: the topic is full before the connector starts, and how fast it empties is measured. And the pilot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sinkbench.analysis.rates import drain_rate
from sinkbench.analysis.readahead import read_ahead
from sinkbench.analysis.samples import (
    Sample,
    foreign_cores,
    middle,
    monitoring_overhead_cores,
    stored_counts,
    window_seconds,
)
from sinkbench.analysis.stalls import Stall, stalls
from sinkbench.analysis.steady import steadiness
from sinkbench.analysis.warm import compiling_share
from sinkbench.errors import ReasonCode
from sinkbench.plan.sizing import rate_from_pilot
from sinkbench.trial.kind import Figures
from sinkbench.trial.stop import Enough, Timeouts
from sinkbench.trial.trial import Trial

__all__ = ["Drain", "Pilot", "rate_after", "rounded", "take_pilot"]


# A pilot leaves what takes longer to its next visit: the pilots between warm the same JVMs.
LONGEST_VISIT = 9


class Drain:
    """The kind of trial that measures capacity."""

    def __init__(self) -> None:
        self._stamped: float | None = None

    def load(self, trial: Trial) -> None:
        trial.load()

    def run(self, trial: Trial) -> None:
        drain = trial.bench.plan.drain
        trial.observer.phase("draining")
        trial.run(Timeouts(drain.stall_seconds, drain.timeout_seconds), lambda sample: self.see(trial, sample))

    def see(self, trial: Trial, sample: Sample) -> None:
        """Takes in the next sample of the drain."""

    def read(self, trial: Trial) -> None:
        # The rows that were there before have times, too.
        times = trial.sink.capabilities.times
        if times is not None and trial.audited is not None and not trial.cell.rows_before:
            self._stamped = times.rate(trial.names.target, trial.records)

    def figures(self, trial: Trial) -> Figures:
        if not trial.cell.probes:
            # So few samples tell neither a rate nor whether it was steady.
            return self.drained(trial, self._stamped)
        steady = steadiness(*stored_counts(trial.samples), trial.records)
        return {
            **self.drained(trial, rate_after(trial.samples, trial.records, steady.from_seconds)),
            "steady": steady.steady,
            "warm_up_seconds": rounded(steady.warm_up_seconds),
            **self.looked_at(trial),
        }

    def stalls(self, trial: Trial) -> list[Stall]:
        """When nothing was stored though it was due."""
        return stalls(trial.samples, trial.records)

    def looked_at(self, trial: Trial) -> Figures:
        """Whether the JVMs were warm, and who else used the machine meanwhile."""
        window = middle(trial.samples, trial.records)
        share = None if window is None else compiling_share(trial.samples, *window)
        most = trial.bench.plan.drain.compiling_percent / 100
        foreign, stolen = foreign_cores(trial.samples, trial.records) or (None, None)
        return Figures(
            compiling_share=rounded(share),
            foreign_cores=rounded(foreign),
            stolen_cores=rounded(stolen),
            read_ahead_records=read_ahead(trial.samples),
            monitoring_overhead_cores=rounded(monitoring_overhead_cores(trial.samples, trial.records), 4),
            warm=None if share is None else share <= most,
        )

    def drained(self, trial: Trial, rate: float | None) -> Figures:
        """The figures of every drain; a trial without a rate is invalid."""
        if rate is None and not trial.reasons:
            text = "too few samples between 10 % and 90 % of the records; ask for a longer window_seconds"
            trial.note(ReasonCode.TOO_SHORT, text)
        found = self.stalls(trial)
        seen = middle(trial.samples, trial.records) is not None
        return Figures(
            bottleneck=trial.bottleneck(),
            notes=[*trial.disagreements(), *trial.gaps(found)],
            stalled_seconds=rounded(sum(each.seconds for each in found), 1) if seen else None,
            records_per_second=rounded(rate, 1),
            stamped_records_per_second=rounded(self._stamped, 1),
            window_seconds=rounded(window_seconds(trial.samples, trial.records)),
        )


@dataclass(frozen=True)
class Pilot:
    """What a pilot has found: a rate to size trials by, or why there is none.

    Attributes:
        compiling_share: share of all CPU time that went into compiling at its end; None if that is not known.
    """

    records_per_second: float | None
    problem: str | None = None
    compiling_share: float | None = None


def take_pilot(trial: Trial, seconds_left: float = math.inf) -> Pilot:
    """Runs a cell on a topic that is already loaded until its rate hardly rises and its JVMs hardly compile.

    A pilot is not audited, and the topic, which other pilots use too, stays. With few `seconds_left` it is short, but
    long enough for a rate.
    """
    drain = trial.bench.plan.drain
    seconds = drain.pilot_seconds
    longest = min(LONGEST_VISIT * seconds, drain.warm_up_seconds, max(seconds_left, 2 * seconds))
    enough = Enough(seconds, drain.compiling_percent / 100, longest)
    with trial.noting():
        trial.bench.create_target(trial.cell, trial.names)
        trial.run(Timeouts(drain.stall_seconds, drain.timeout_seconds, enough))
    if not trial.samples:
        return Pilot(None, trial.problem())
    end = trial.samples[-1].seconds
    recent = [sample for sample in trial.samples if sample.seconds >= end - 2 * seconds]
    rate = rate_from_pilot(*stored_counts(recent))
    if rate is None:
        return Pilot(None, trial.problem() or "it stored nothing")
    return Pilot(rate, compiling_share=compiling_share(trial.samples, end - seconds, end))


def rate_after(samples: Sequence[Sample], records: int, seconds: float | None) -> float | None:
    """Records per second until 90 % were stored, None if too few samples show progress.

    It begins at that second of the samples, or when 10 % were stored.
    """
    found = drain_rate(*stored_counts(samples), records, from_seconds=seconds)
    return None if found is None else found.records_per_second


def rounded(value: float | None, digits: int = 3) -> float | None:
    """A figure as a record keeps it."""
    return None if value is None else round(value, digits)
