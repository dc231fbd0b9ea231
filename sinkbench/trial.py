"""One drain trial, from the empty sink to the audit; and the pilot that sizes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sinkbench.bench import Bench, Names
from sinkbench.cells import Cell
from sinkbench.probes import Sample
from sinkbench.rescale import LiveRescale, rate_after, rescale_of
from sinkbench.results import TrialRecord
from sinkbench.sizing import rate_from_pilot
from sinkbench.stats import drain_rate
from sinkbench.steady import steadiness
from sinkbench.watch import Limits, stored_counts, window_seconds
from sinkbench.watching import Observer, Watched, bottleneck, check_loaded, finish, record_of, reset_sink, watch

__all__ = ["TOO_SHORT", "Pilot", "drain_trial", "pilot"]

TOO_SHORT = "too few samples between 10 % and 90 % of the records; ask for a longer window_seconds"


def drain_trial(
    bench: Bench, cell: Cell, names: Names, records: int, block: int, observer: Observer
) -> tuple[TrialRecord, list[Sample]]:
    """Takes one drain trial. What it created is left to `Bench.clean`, when all services are there again.

    Args:
        bench: the stack and its clients.
        cell: what to measure.
        names: what the trial's things are called.
        records: how many to load the topic with.
        block: the number of its block, from 1.
        observer: is told what goes on.

    Returns:
        Its record, with the reasons in `invalid` if its numbers must not be used, and its samples.
    """
    watched = Watched(rescaled=cell.before is not None)
    drain = bench.plan.drain
    stamped: float | None = None
    rescaling = None if cell.before is None else LiveRescale(bench, cell, names, records, watched)
    with watched.noting():
        sink = reset_sink(bench, cell, names, records, observer)
        observer.phase("loading the topic")
        watched.loaded = bench.load(names, records, lambda done: observer.progress(done, records))
        check_loaded(watched)
        watched.writes = sink.writes(names.target)
        watched.connection_limit = sink.connection_limit()
        observer.phase("draining")
        see: Callable[[Sample], None] = (lambda sample: None) if rescaling is None else rescaling.see
        watch(bench, cell, names, records, watched, observer, Limits(drain.stall_seconds, drain.timeout_seconds), see)
        # What such a drain has lost counts all the same.
        if rescaling is not None and (problem := rescaling.problem()) is not None:
            watched.invalid.append(problem)
        finish(bench, cell, names, records, watched, observer)
        if watched.audit is not None:
            stamped = sink.stamped_rate(names.target, records)
    seen = stored_counts(watched.samples)
    warm = steadiness(*seen, records)
    seen_rate = drain_rate(*seen, records, from_seconds=warm.from_seconds)
    rate = stamped if not cell.probes else None if seen_rate is None else seen_rate.records_per_second
    rescale = None
    if rescaling is not None and rescaling.asked is not None and rescaling.settled is not None:
        rate = rate_after(watched.samples, records, rescaling.settled)
        rescale = rescale_of(watched.samples, records, cell.tasks_before or 0, rescaling.asked, rescaling.settled)
    steady = warm.steady if cell.probes and rescaling is None else None
    if rate is None and not watched.invalid:
        watched.invalid.append(TOO_SHORT)
    window = window_seconds(watched.samples, records)
    record = record_of(
        bench,
        cell,
        names,
        records,
        block,
        watched,
        bottleneck=bottleneck(bench, cell, watched, records),
        notes=[each.text for each in watched.disagreements],
        records_per_second=None if rate is None else round(rate, 1),
        stamped_records_per_second=None if stamped is None else round(stamped, 1),
        window_seconds=None if window is None else round(window, 3),
        rescale=rescale,
        steady=steady,
        warm_up_seconds=None if warm.warm_up_seconds is None or steady is None else round(warm.warm_up_seconds, 3),
    )
    return record, watched.samples


@dataclass(frozen=True)
class Pilot:
    """What a pilot has found: a rate to size trials by, or why there is none."""

    records_per_second: float | None
    problem: str | None = None


def pilot(bench: Bench, cell: Cell, names: Names, records: int, observer: Observer) -> Pilot:
    """Runs a cell on a topic that is already loaded until its rate no longer rises.

    A fresh worker's JVM needs up to a minute of work until it has compiled what is hot; a trial that is sized, or
    measured, before that is too short and too slow. A pilot is no trial: it is not audited, and the topic, which other
    pilots use too, stays.
    """
    watched = Watched()
    drain = bench.plan.drain
    limits = Limits(drain.stall_seconds, drain.timeout_seconds, (drain.pilot_seconds, drain.warm_up_seconds))
    with watched.noting():
        bench.sink(cell.sink).create(names.target)
        watch(bench, cell, names, records, watched, observer, limits)
    if not watched.samples:
        return Pilot(None, "; ".join(watched.invalid))
    recent = [s for s in watched.samples if s.seconds >= watched.samples[-1].seconds - 2 * drain.pilot_seconds]
    rate = rate_from_pilot(*stored_counts(recent))
    if rate is None:
        return Pilot(None, watched.cause() or "; ".join(watched.invalid) or "it stored nothing")
    return Pilot(rate)
