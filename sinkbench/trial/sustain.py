"""Sustain: records come at a constant rate. Does the pipeline keep up with it, and how late do they arrive?"""

from __future__ import annotations

import math
import time
from contextlib import nullcontext

import numpy as np

from sinkbench.analysis.lag import GROWING, lag_of, warm_from
from sinkbench.analysis.latency import latency_of
from sinkbench.analysis.rates import progress
from sinkbench.analysis.samples import Sample, stored_counts
from sinkbench.analysis.stalls import stalls
from sinkbench.bottleneck.rules import LEAST_OFFERED
from sinkbench.errors import ReasonCode, ServiceError, TrialFailed
from sinkbench.plan.plan import Plan
from sinkbench.results import Lag, LatencyMs, Reads
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import Arrivals, ArrivalWatch
from sinkbench.trial.drain import rounded
from sinkbench.trial.kind import Figures
from sinkbench.trial.offering import Offering
from sinkbench.trial.readorders import Told
from sinkbench.trial.reads import Reader
from sinkbench.trial.stop import Timeouts
from sinkbench.trial.trial import Trial

__all__ = ["Sustain", "clock_ms", "clock_step", "one_in", "records_offered"]

# Long enough for a 99th percentile at a few queries a second.
IDLE_SECONDS = 15.0
# Two clocks that drift apart by less than this during a trial were not set.
CLOCK_STEP_MS = 10.0


def records_offered(plan: Plan, offered: float) -> int:
    """How many records a trial offers at that rate, in records per second."""
    return max(1, round(offered * plan.constant_load.seconds))


def one_in(trial: Trial) -> int:
    """Of so many records of a trial one is looked at for the latency."""
    return max(1, math.ceil(trial.records / trial.bench.plan.constant_load.latency_records))


class Sustain:
    """The kind of trial that offers a constant load, open loop, for the plan's time.

    The connector starts on an empty topic; once its tasks run the load begins. What is left then is stored, too, so
    that every record is audited.
    """

    def __init__(self, offered: float, *, search: bool = False) -> None:
        """
        Args:
            offered: the rate, in records per second.
            search: whether the trial belongs to a search that only asks whether the load is kept up with.
        """
        self._offered = offered
        self._search = search
        self._clock_ms = clock_ms()
        self._arriving: ArrivalWatch | None = None
        self._arrivals: Arrivals | None = None
        self._no_latency: list[str] = []
        self._reads_loaded: Told | None = None
        self._reads_idle: Told | None = None

    def load(self, trial: Trial) -> None:
        trial.bench.create_topic(trial.names)

    def run(self, trial: Trial) -> None:
        plan = trial.bench.plan
        timeouts = Timeouts(plan.drain.stall_seconds, plan.constant_load.seconds + plan.drain.timeout_seconds)
        trial.observer.phase(f"offering {self._offered:,.0f} records/s")
        interval = plan.constant_load.arrival_interval_ms / 1000
        if (times := trial.sink.capabilities.times) is None:
            self._no_latency.append("no latency: this sink does not tell when records arrived")
        else:
            self._arriving = trial.contexts.enter_context(times.watch(trial.names.target, interval))
        reading = nullcontext() if trial.cell.reads is None else Reader(trial.bench.read_order(trial.cell, trial.names))
        with Offering(trial, self._offered) as offering, self._arriving or nullcontext(), reading as reader:

            def see(sample: Sample) -> None:
                if trial.placed is not None:
                    offering.begin()
                    if reader is not None:
                        reader.begin()
                offering.check()

            try:
                trial.run(timeouts, see, lambda: trial.bench.in_topic(trial.names))
            except (TrialFailed, ServiceError, OSError):
                # A whole load can still be audited.
                trial.loaded = offering.ended()
                raise
            trial.loaded = offering.result()
            if reader is not None:
                self._reads_loaded = reader.end()
        if trial.loaded.in_time is not None:
            trial.offered_share = trial.loaded.in_time / trial.records
        trial.check_loaded()

    def read(self, trial: Trial) -> None:
        if trial.audited is None:
            return
        self._read_idle(trial)
        if self._arriving is None:
            return
        trial.observer.phase("reading when records arrived")
        try:
            self._arrivals = self._arriving.read(trial.names.trial, one_in(trial))
        except (ServiceError, OSError) as error:
            self._no_latency.append(f"no latency: {in_one_line(error)}")

    def _read_idle(self, trial: Trial) -> None:
        """Asks the same queries for some time more, now that the sink has nothing else to do."""
        if trial.cell.reads is None or self._reads_loaded is None:
            return
        trial.observer.phase("asking queries of an idle sink")
        with Reader(trial.bench.read_order(trial.cell, trial.names)) as reader:
            reader.begin()
            time.sleep(min(IDLE_SECONDS, trial.bench.plan.constant_load.seconds))
            self._reads_idle = reader.end()

    def _reads(self) -> Reads | None:
        told = [each for each in (self._reads_loaded, self._reads_idle) if each is not None]
        if not told:
            return None
        loaded, idle = (
            None if each is None else latency_of(each.latencies_us) for each in (self._reads_loaded, self._reads_idle)
        )
        problem = next((each.problem for each in told if each.problem), "")
        failed, unasked = sum(each.failed for each in told), sum(each.unasked for each in told)
        return Reads(loaded_ms=loaded, idle_ms=idle, failed=failed, problem=problem, unasked=unasked)

    def figures(self, trial: Trial) -> Figures:
        self._check_offered(trial)
        times, lags = _while_offered(trial.samples, trial.records)
        if not times and not trial.reasons:
            text = "no sample was taken while the load was offered; ask for a longer sustain.seconds"
            trial.note(ReasonCode.NO_SAMPLES, text)
        warm = warm_from(times, lags)
        lag = lag_of(times, lags, self._offered, warm)
        latency, searchable = self._latencies(trial, lag, warm or 0.0)
        return Figures(
            # What keeps up is limited by nothing but its load.
            bottleneck=trial.bottleneck() if lag.verdict == GROWING or trial.reasons else None,
            notes=[*trial.disagreements(), *trial.gaps(stalls(trial.samples, trial.records)), *self._no_latency],
            pilot=self._search,
            reads=self._reads(),
            records_per_second=rounded(_stored_rate(trial.samples, times, warm), 1),
            offered_records_per_second=round(self._offered, 1),
            sent_share=rounded(trial.offered_share, 5),
            lag=lag,
            latency_ms=latency,
            searchable_ms=searchable,
            warm_up_seconds=None if warm is None else round(warm - times[0], 3),
        )

    def _check_offered(self, trial: Trial) -> None:
        share = trial.offered_share
        if share is not None and share < LEAST_OFFERED and not trial.reasons:
            text = f"the generator was the limit: it sent {100 * share:.1f} % of the load in time; offer less,"
            trial.note(ReasonCode.GENERATOR_TOO_SLOW, f"{text} or use more load generators", share=share)

    def _latencies(self, trial: Trial, lag: Lag, warm: float) -> tuple[LatencyMs | None, LatencyMs | None]:
        stepped = clock_step(self._clock_ms, clock_ms())
        if stepped is not None:
            self._no_latency.append(f"no latency: {stepped}")
        if self._arrivals is None or stepped is not None or trial.reasons or lag.verdict == GROWING:
            return None, None
        return _latencies(self._arrivals, one_in(trial), trial.samples_from_us + 1e6 * warm)


def _while_offered(samples: list[Sample], records: int) -> tuple[list[float], list[float]]:
    """Times and lags of the samples from the first record in the topic to the last; NaN where a lag is not known."""
    inside = [s for s in samples if s.in_topic is not None and 0 < s.in_topic < records]
    lags = [math.nan if s.stored is None or s.in_topic is None else float(s.in_topic - s.stored) for s in inside]
    return [s.seconds for s in inside], lags


def _stored_rate(samples: list[Sample], offered: list[float], warm: float | None) -> float | None:
    """Records stored a second at the times at which the load was offered, without the warm-up."""
    times, counts = progress(*stored_counts(samples))
    if counts.size == 0 or len(offered) < 2:
        return None
    start, end = offered[0] if warm is None else warm, offered[-1]
    if end <= start:
        return None
    before, after = np.interp([start, end], times, counts)
    return float(after - before) / (end - start)


def _latencies(arrivals: Arrivals, one_in: int, from_us: float) -> tuple[LatencyMs, LatencyMs | None]:
    """The latencies of the records that were due after `from_us`: until stored, and until found by a search."""
    warm = arrivals.due_us >= from_us

    def of(times_us: np.ndarray[tuple[int, ...], np.dtype[np.float64]], resolution_us: float) -> LatencyMs:
        known = warm & np.isfinite(times_us)
        return latency_of(
            times_us[known] - arrivals.due_us[known],
            one_in,
            resolution_us / 1000 if math.isfinite(resolution_us) else None,
            int(warm.sum() - known.sum()),
        )

    stored = of(arrivals.stored_us, arrivals.resolution_us)
    if arrivals.searchable_us is None or arrivals.searchable_resolution_us is None:
        return stored, None
    return stored, of(arrivals.searchable_us, arrivals.searchable_resolution_us)


def clock_step(before_ms: float, after_ms: float) -> str | None:
    """That this machine's clock was set, for a person; None if it was not.

    Both are how far the wall clock was ahead of the monotonic one, before a trial and after it. A clock that is slewed
    changes by less than 10 ms in a trial.
    """
    step = after_ms - before_ms
    return f"this machine's clock was set by {step:+,.0f} ms during the trial" if abs(step) > CLOCK_STEP_MS else None


def clock_ms() -> float:
    """How far the wall clock is ahead of the monotonic one: what changes when somebody sets it."""
    return (time.time_ns() - time.monotonic_ns()) / 1e6
