"""Sustain: offers records at a constant rate; measures whether the pipeline keeps up, and the latency."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from sinkbench.analysis.latency import GROWING, lag_of, latency_of, warm_from
from sinkbench.analysis.rates import progress
from sinkbench.analysis.samples import Sample, stored_counts
from sinkbench.analysis.stalls import stalls
from sinkbench.bottleneck.rules import LEAST_OFFERED
from sinkbench.errors import ReasonCode, ServiceError, TrialFailed
from sinkbench.metrics.metric import rounded
from sinkbench.plan.plan import Plan
from sinkbench.results import LatencyMs, Reads, Reason
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import Arrivals, ArrivalWatch
from sinkbench.trial.following import Following, probes
from sinkbench.trial.readers import Readers
from sinkbench.trial.reads import Order, Reader, Told
from sinkbench.trial.record import bottleneck, check_loaded, noted
from sinkbench.trial.resources import Resources
from sinkbench.trial.stop import DrainWatch
from sinkbench.trial.values import After, Loaded, Measured, Timeline
from sinkbench.trial.workload import Around, Figures, Workload

# A load may take this share of its time, plus some seconds, longer; then the generator is too slow.
LATE_SHARE, LATE_SECONDS = 0.1, 5.0
# Long enough for a 99th percentile at a few queries a second.
IDLE_SECONDS = 15.0
# Two clocks that drift by less than this during a trial were not set.
CLOCK_STEP_MS = 10.0
LIMIT, OFFER_LESS = "the generator was the limit", "offer less, or use more load generators"


Result = TypeVar("Result")


class Background(AbstractContextManager["Background[Result]"], Generic[Result]):
    """Work in a separate thread, started once. The end of the context stops it and waits."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._future: Future[Result] | None = None

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True)

    def _submit(self, work: Callable[[], Result]) -> None:
        """Starts the work, which must check `_stop` while it waits."""
        self._future = self._pool.submit(work)

    def check(self) -> None:
        """Raises the error of the work, if it has ended with one."""
        if self._future is not None and self._future.done():
            self._future.result()


class Offering(Background[Loaded]):
    """A load in a separate thread. An early end of the context aborts it.

    After an error it finishes, unless late: a complete load can be audited."""

    def __init__(
        self, own: Resources, rate: float, late_seconds: float = LATE_SECONDS, loaded: Loaded | None = None
    ) -> None:
        """`rate` is in records per second; the load may take a tenth plus `late_seconds` longer. Nothing is left to do
        for a backlog that is `loaded` before the connector starts."""
        super().__init__("load")
        self._own = own
        self._rate = rate
        self._late_seconds = late_seconds
        self._began = 0.0
        self.loaded = loaded

    def __exit__(self, *raised: object) -> None:
        failed = isinstance(raised[1], TrialFailed | ServiceError | OSError)
        if failed and self.loaded is None and self._future is not None:
            with suppress(TrialFailed, ServiceError, OSError, TimeoutError):
                self._own.observer.phase("letting the load end")
                self.loaded = self._future.result(max(self._seconds_left(), 0.0))
        super().__exit__(*raised)

    def begin(self) -> None:
        if self._future is None and self.loaded is None:
            self._began = time.monotonic()
            self._submit(partial(self._own.load_topic, self._rate, stop=self._stop))

    def check(self) -> None:
        """Raises TrialFailed if the load failed or is too slow."""
        super().check()
        if self._future is not None and not self._future.done() and self._seconds_left() < 0:
            due, taken = self._own.records / self._rate, time.monotonic() - self._began
            text = f"after {taken:.0f} s it had not sent what was due in {due:.0f} s"
            raise TrialFailed(f"{LIMIT}: {text}; {OFFER_LESS}", ReasonCode.GENERATOR_TOO_SLOW)

    def result(self) -> Loaded:
        """Returns the result once all is stored. Raises TrialFailed if the load failed or has not begun."""
        if self.loaded is not None:
            return self.loaded
        if self._future is None:
            raise TrialFailed("the load was not begun, since the tasks did not start", ReasonCode.TASKS_NOT_STARTED)
        self.loaded = self._future.result()
        return self.loaded

    def _seconds_left(self) -> float:
        due = self._own.records / self._rate
        return self._began + due * (1 + LATE_SHARE) + self._late_seconds - time.monotonic()


def records_offered(plan: Plan, offered: float) -> int:
    return max(1, round(offered * plan.constant_load.seconds))


def one_in(plan: Plan, records: int) -> int:
    """One in this many records of a trial is read for the latency."""
    return max(1, math.ceil(records / plan.constant_load.latency_records))


@dataclass(frozen=True)
class Sustain(Workload):
    """Offers a constant load, open loop, for the plan's time. The load begins when the connector's tasks run.

    `offered` is in records per second; `search`: the trial belongs to a search for the highest sustained rate."""

    offered: float
    search: bool = False

    @contextmanager
    def around(self, own: Resources) -> Iterator[Around]:
        with arrivals_around(own) as arriving:
            yield Around(arriving=arriving, clock_ms=clock_ms())

    def load(self, own: Resources) -> Loaded | None:
        own.create_topic()
        return None

    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        plan = own.cluster.plan
        longest = plan.constant_load.seconds + plan.drain.timeout_seconds
        watch = DrainWatch(own.records, own.cell.tasks, plan.drain.stall_seconds, longest)
        own.observer.phase(f"offering {self.offered:,.0f} records/s")
        following = Following(own, probes(own, growing=True), watch)
        offering, told, read, begun = Offering(own, self.offered), None, [], False
        reading = nullcontext() if own.cell.reads is None else Reader(order_of(own))
        with following, offering, around.arriving or nullcontext(), reading as reader, Readers(own) as further:
            with following.samples() as samples:
                for _ in samples:
                    if following.seen.placement is not None and not begun:
                        begun = True
                        offering.begin()
                        further.begin()
                        if reader is not None:
                            reader.begin()
                    offering.check()
            sent, read = offering.result(), further.end()
            told = None if reader is None else reader.end()
            check_loaded(sent)
        return replace(following.timeline, loaded=offering.loaded, reads=told, read=read)

    def read(self, own: Resources, around: Around, found: Measured) -> After:
        if found.audited.audit is None:
            return After()
        idle = None
        if found.timeline.reads is not None:
            own.observer.phase("asking queries of an idle sink")
            with Reader(order_of(own)) as reader:
                reader.begin()
                time.sleep(min(IDLE_SECONDS, own.cluster.plan.constant_load.seconds))
                idle = reader.end()
        arrivals, why = read_arrivals(own, around)
        return After(arrivals=arrivals, idle_reads=idle, notes=[f"no latency: {why}"] if why else [])

    def figures(self, found: Measured, reasons: list[Reason]) -> Figures:
        more, share, said = [], found.offered_share, list(found.after.notes)
        if (least := min(found.timeline.read, default=found.records)) < found.records:
            said.append(f"a further group had read {least:,} of {found.records:,} records when all were stored")
        times, lags = _while_offered(found.samples, found.records)
        if share is not None and share < LEAST_OFFERED and not reasons:
            text = f"{LIMIT}: it sent {100 * share:.1f} % of the load in time; {OFFER_LESS}"
            more.append(Reason(code=ReasonCode.GENERATOR_TOO_SLOW, text=text, figures={"share": share}))
        elif not times and not reasons:
            text = "no sample was taken while the load was offered; ask for a longer sustain.seconds"
            more.append(Reason(code=ReasonCode.NO_SAMPLES, text=text))
        invalid = bool(reasons or more)
        warm = warm_from(times, lags)
        lag = lag_of(times, lags, self.offered, warm)
        latency, searchable = None, None
        if found.after.arrivals is not None and not invalid and lag.verdict != GROWING:
            from_us = found.timeline.from_us + 1e6 * (warm or 0.0)
            clocks = () if found.loaded is None else found.loaded.clocks
            within_us = 1000 * max((each.within_ms for each in clocks), default=0.0)
            one = one_in(found.plan, found.records)
            latency, searchable = _latencies(found.after.arrivals, one, from_us, within_us)
        return {
            "reasons": more,
            # A pipeline that keeps up is limited only by its load.
            "bottleneck": bottleneck(found) if lag.verdict == GROWING or invalid else None,
            "notes": [*noted(found, stalls(found.samples, found.records)), *said],
            "pilot": self.search,
            "read_by_readers": list(found.timeline.read),
            "reads": _reads(found.timeline.reads, found.after.idle_reads),
            "records_per_second": rounded(_stored_rate(found.samples, times, warm), 1),
            "offered_records_per_second": round(self.offered, 1),
            "sent_share": rounded(share, 5),
            "lag": lag,
            "latency_ms": latency,
            "searchable_ms": searchable,
            "warm_up_seconds": None if warm is None else round(warm - times[0], 3),
        }


def order_of(own: Resources) -> Order:
    cluster, cell = own.cluster, own.cell
    endpoints = cluster.stack.endpoints
    if cell.reads_from == "standby":
        last = [*endpoints.sinks[cell.sink].nodes.values()][-1]
        endpoints = replace(endpoints, sinks={**endpoints.sinks, cell.sink: last})
    return Order(endpoints, cluster.checkout, cell.sink, own.names.target, cluster.queries, cell.reads or 0.0)


def arrivals_around(own: Resources) -> AbstractContextManager[ArrivalWatch | None]:
    """Returns a watch of arrivals in the sink; it is None if the sink cannot show them."""
    times, interval = own.sink.capabilities.times, own.cluster.plan.constant_load.arrival_interval_ms / 1000
    return nullcontext() if times is None else times.watch(own.names.target, interval)


def read_arrivals(own: Resources, around: Around) -> tuple[Arrivals | None, str]:
    """Returns when records arrived, or None and the reason."""
    own.observer.phase("reading when records arrived")
    if around.arriving is None:
        return None, "this sink does not tell when records arrived"
    if (stepped := clock_step(around.clock_ms, clock_ms())) is not None:
        return None, stepped
    try:
        return around.arriving.read(own.names.trial, one_in(own.cluster.plan, own.records)), ""
    except (ServiceError, OSError) as error:
        return None, in_one_line(error)


def _reads(loaded: Told | None, idle: Told | None) -> Reads | None:
    if not (told := [each for each in (loaded, idle) if each is not None]):
        return None
    return Reads(
        loaded_ms=None if loaded is None else latency_of(loaded.latencies_us),
        idle_ms=None if idle is None else latency_of(idle.latencies_us),
        failed=sum(each.failed for each in told),
        problem=next((each.problem for each in told if each.problem), ""),
        unasked=sum(each.unasked for each in told),
    )


def _while_offered(samples: Sequence[Sample], records: int) -> tuple[list[float], list[float]]:
    """Times and lags of the samples during the load; NaN where a lag is not known."""
    inside = [s for s in samples if s.in_topic is not None and 0 < s.in_topic < records]
    lags = [math.nan if s.stored is None or s.in_topic is None else float(s.in_topic - s.stored) for s in inside]
    return [s.seconds for s in inside], lags


def _stored_rate(samples: Sequence[Sample], offered: list[float], warm: float | None) -> float | None:
    """Returns records stored per second during the load, without the warm-up."""
    times, counts = progress(*stored_counts(samples))
    if counts.size == 0 or len(offered) < 2:
        return None
    start, end = offered[0] if warm is None else warm, offered[-1]
    if end <= start:
        return None
    before, after = np.interp([start, end], times, counts)
    return float(after - before) / (end - start)


def _latencies(arrivals: Arrivals, one_in: int, from_us: float, within_us: float) -> tuple[LatencyMs, LatencyMs | None]:
    warm = arrivals.due_us >= from_us

    def of(times_us: np.ndarray[tuple[int, ...], np.dtype[np.float64]], resolution_us: float) -> LatencyMs:
        known = warm & np.isfinite(times_us)
        resolution_ms = (resolution_us + within_us) / 1000 if math.isfinite(resolution_us) else None
        late_us, unknown = times_us[known] - arrivals.due_us[known], int(warm.sum() - known.sum())
        return latency_of(late_us, one_in, resolution_ms, unknown)

    stored = of(arrivals.stored_us, arrivals.resolution_us)
    if arrivals.searchable_us is None or arrivals.searchable_resolution_us is None:
        return stored, None
    return stored, of(arrivals.searchable_us, arrivals.searchable_resolution_us)


def clock_step(before_ms: float, after_ms: float) -> str | None:
    """Returns that this machine's clock was set, in words; None if not. A slewed clock changes by less than 10 ms."""
    step = after_ms - before_ms
    return f"this machine's clock was set by {step:+,.0f} ms during the trial" if abs(step) > CLOCK_STEP_MS else None


def clock_ms() -> float:
    """Wall clock minus monotonic clock, which changes when the clock is set."""
    return (time.time_ns() - time.monotonic_ns()) / 1e6
