"""One trial under a constant load: does the pipeline keep up with it, and how late do its records arrive?"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

import numpy as np

from sinkbench.bench import Bench, Loaded, Names
from sinkbench.cells import Cell
from sinkbench.errors import TrialFailed
from sinkbench.lag import GROWING, lag_of, warm_from
from sinkbench.latency import latency_of
from sinkbench.probes import CLIENT_ERRORS, Sample, in_one_line
from sinkbench.results import LatencyMs, TrialRecord
from sinkbench.rules import LEAST_OFFERED
from sinkbench.sinks import Arrivals, ArrivalWatch
from sinkbench.stats import progress
from sinkbench.watch import Limits, stored_counts
from sinkbench.watching import Observer, Watched, bottleneck, check_loaded, finish, record_of, reset_sink, watch

__all__ = ["clock_step", "sustain_trial"]

# So much longer than it should take may a load take before it is broken off: the generator cannot do it.
LATE_SHARE, LATE_SECONDS = 0.1, 5.0
# Two clocks that drift apart by less than this during a trial were not set.
CLOCK_STEP_MS = 10.0


class _Offering:
    """A load that is under way in a thread of its own; it is broken off when the context is left before its end."""

    def __init__(self, bench: Bench, names: Names, records: int, rate: float) -> None:
        self._bench = bench
        self._names = names
        self._records = records
        self._rate = rate
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load")
        self._future: Future[Loaded] | None = None
        self._began = 0.0

    def __enter__(self) -> _Offering:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True)

    def begin(self) -> None:
        """Begins the load, unless it has begun."""
        if self._future is None:
            self._began = time.monotonic()
            self._future = self._pool.submit(
                self._bench.load, self._names, self._records, lambda done: None, self._rate, self._stop
            )

    def check(self) -> None:
        """Raises TrialFailed if the load failed, or takes so long that the generator cannot do it."""
        if self._future is None:
            return
        if self._future.done():
            self._future.result()
            return
        due = self._records / self._rate
        taken = time.monotonic() - self._began
        if taken > due * (1 + LATE_SHARE) + LATE_SECONDS:
            raise TrialFailed(
                f"the generator was the limit: after {taken:.0f} s it had not sent what was due in {due:.0f} s; offer"
                " less, or use more load generators"
            )

    def result(self) -> Loaded:
        """What the load came to, once all of it is stored. Raises TrialFailed if it failed or has not begun."""
        if self._future is None:
            raise TrialFailed("the load was not begun, since the tasks did not start")
        return self._future.result()


@dataclass(frozen=True)
class _Offered:
    """The samples of the time in which the load was offered: from the first record in the topic to the last."""

    times: list[float]
    lags: list[float]

    @classmethod
    def of(cls, samples: list[Sample], records: int) -> _Offered:
        inside = [s for s in samples if s.in_topic is not None and 0 < s.in_topic < records]
        lags = [math.nan if s.stored is None or s.in_topic is None else float(s.in_topic - s.stored) for s in inside]
        return cls([s.seconds for s in inside], lags)


def sustain_trial(
    bench: Bench, cell: Cell, names: Names, offered: float, block: int, observer: Observer, *, search: bool = False
) -> tuple[TrialRecord, list[Sample]]:
    """Takes one trial under a constant load. What it created is left to `Bench.clean`.

    The connector starts on an empty topic; once its tasks run the load begins, open loop, for the plan's time. What is
    left then is stored, too, so that every record is audited.

    Args:
        bench: the stack and its clients.
        cell: what to measure.
        names: what the trial's things are called.
        offered: the rate, in records per second.
        block: the number of its block, from 1.
        observer: is told what goes on.
        search: whether it belongs to a search that only asks whether the load is kept up with.

    Returns:
        Its record, with the reasons in `invalid` if its numbers must not be used, and its samples.
    """
    plan = bench.plan
    seconds = plan.sustain.seconds
    records = max(1, round(offered * seconds))
    watched = Watched()
    one_in = max(1, math.ceil(records / plan.sustain.latency_records))
    arrivals: Arrivals | None = None
    notes: list[str] = []
    clock_ms = _clock_ms()
    limits = Limits(plan.drain.stall_seconds, seconds + plan.drain.timeout_seconds)
    with watched.noting():
        sink = reset_sink(bench, cell, names, records, observer)
        bench.kafka.create_topic(names.topic, plan.load.partitions, plan.load.replication)
        watched.writes = sink.writes(names.target)
        watched.connection_limit = sink.connection_limit()
        observer.phase(f"offering {offered:,.0f} records/s")
        with sink.arrivals(names.target, plan.sustain.arrival_interval_ms / 1000) as arriving:
            _offer(bench, cell, names, records, offered, watched, observer, limits, arriving)
            check_loaded(watched)
            finish(bench, cell, names, records, watched, observer)
            if watched.audit is not None:
                observer.phase("reading when records arrived")
                try:
                    arrivals = arriving.read(names.trial, one_in)
                except CLIENT_ERRORS as error:
                    notes.append(f"no latency: {in_one_line(error)}")
    if watched.offered_share is not None and watched.offered_share < LEAST_OFFERED and not watched.invalid:
        watched.invalid.append(
            f"the generator was the limit: it sent {100 * watched.offered_share:.1f} % of the load in time; offer less,"
            " or use more load generators"
        )
    stepped = clock_step(clock_ms, _clock_ms())
    if stepped is not None:
        notes.append(f"no latency: {stepped}")
        arrivals = None
    load = _Offered.of(watched.samples, records)
    warm = warm_from(load.times, load.lags)
    lag = lag_of(load.times, load.lags, offered, warm)
    if not load.times and not watched.invalid:
        watched.invalid.append("no sample was taken while the load was offered; ask for a longer sustain.seconds")
    latency = searchable = None
    if arrivals is not None and not watched.invalid and lag.verdict != GROWING:
        latency, searchable = _latencies(arrivals, one_in, watched.samples_from_us + 1e6 * (warm or 0.0))
    rate = _stored_rate(watched.samples, load, warm)
    record = record_of(
        bench,
        cell,
        names,
        records,
        block,
        watched,
        # What keeps up is limited by nothing but its load.
        bottleneck=bottleneck(bench, cell, watched, records) if lag.verdict == GROWING or watched.invalid else None,
        notes=[*(each.text for each in watched.disagreements), *notes],
        pilot=search,
        records_per_second=None if rate is None else round(rate, 1),
        offered_records_per_second=round(offered, 1),
        sent_share=None if watched.offered_share is None else round(watched.offered_share, 5),
        lag=lag,
        latency_ms=latency,
        searchable_ms=searchable,
        warm_up_seconds=None if warm is None else round(warm - load.times[0], 3),
    )
    return record, watched.samples


def _offer(
    bench: Bench,
    cell: Cell,
    names: Names,
    records: int,
    offered: float,
    watched: Watched,
    observer: Observer,
    limits: Limits,
    arriving: ArrivalWatch,
) -> None:
    """Starts the connector, offers the load once its tasks run, and waits until all is stored or nothing moves."""
    with _Offering(bench, names, records, offered) as offering, arriving:

        def see(sample: Sample) -> None:
            if watched.placed is not None:
                offering.begin()
            offering.check()

        watch(bench, cell, names, records, watched, observer, limits, see, lambda: bench.in_topic(names))
        watched.loaded = offering.result()
    if watched.loaded.in_time is not None:
        watched.offered_share = watched.loaded.in_time / records


def _stored_rate(samples: list[Sample], load: _Offered, warm: float | None) -> float | None:
    """Records stored a second while the load was offered, without the warm-up."""
    times, counts = progress(*stored_counts(samples))
    if counts.size == 0 or len(load.times) < 2:
        return None
    start, end = load.times[0] if warm is None else warm, load.times[-1]
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


def _clock_ms() -> float:
    """How far the wall clock is ahead of the monotonic one: what changes when somebody sets it."""
    return (time.time_ns() - time.monotonic_ns()) / 1e6
