"""A trial with a fault: records come at a constant rate, or are all in the topic before the connector starts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from sinkbench.analysis.content import documents_of
from sinkbench.analysis.recovery import late_of, recovery_of, without_rates
from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode, ServiceError, TrialFailed
from sinkbench.plan.faults import COMMAND, FILL, NONE, OF_NETWORK, OF_SERVICES, POISON, PROMOTE, PlanFault
from sinkbench.results import Reason, Recovery
from sinkbench.sinks import needed
from sinkbench.trial.following import Following, probes, uneven
from sinkbench.trial.record import check_loaded
from sinkbench.trial.resources import Resources
from sinkbench.trial.stop import FaultWatch
from sinkbench.trial.values import After, Faulted, Loaded, Measured, Timeline
from sinkbench.trial.workload import Around, Figures, Workload, disk_to_fill, proxied_network
from sinkbench.trial.workloads.drain import load_topic
from sinkbench.trial.workloads.injection import Injection
from sinkbench.trial.workloads.sustain import Offering, arrivals_around, clock_ms, one_in, read_arrivals

# The producer waits for a restarting broker.
LATE_SECONDS = 40.0
# The fault begins only when the tasks run.
START_SECONDS = 60.0


@dataclass(frozen=True)
class Fault(Workload):
    """The workload with a fault. It ends when all records are read, however often they were written.

    The fault's effect is no reason against the trial. After the plan's patience, a pipeline that does not recover is
    restarted or redirected, which is recorded. `offered` is in records per second; None: a backlog."""

    offered: float | None
    fault: PlanFault

    @contextmanager
    def around(self, own: Resources) -> Iterator[Around]:
        what = self.fault.what
        with ExitStack() as opened:
            around = Around(clock_ms=clock_ms())
            if what in OF_NETWORK:
                around = replace(around, network=opened.enter_context(proxied_network(own)))
            if what == FILL:
                around = replace(around, disk=opened.enter_context(disk_to_fill(own)))
            if what == PROMOTE:
                # Connections to the interim primary are broken.
                opened.callback(own.cluster.refresh)
                promotion = needed(needed(own.cluster.stack.faults, "faults").promotion(own.cell.sink), "promotion")
                opened.callback(promotion.restore)
            if self.offered is not None:
                # A backlog has no due times, so no record is late.
                around = replace(around, arriving=opened.enter_context(arrivals_around(own)))
            yield around

    def load(self, own: Resources) -> Loaded | None:
        if self.offered is None:
            return load_topic(own)
        own.create_topic()
        return None

    def run(self, own: Resources, around: Around, loaded: Loaded | None) -> Timeline:
        plan, fault = own.cluster.plan, self.fault
        longest = plan.drain.timeout_seconds + fault.most_seconds
        longest += 0 if self.offered is None else plan.constant_load.seconds
        watch = FaultWatch(own.records, own.cell.tasks, fault.patience_seconds, longest)
        doing, meanwhile = "draining", f"{own.records:,} records are drained"
        if self.offered is not None:
            doing, meanwhile = (f"{verb} {self.offered:,.0f} records/s" for verb in ("offering", "taking"))
        own.observer.phase(doing)
        following = Following(own, probes(own, apart=True), watch)
        injection = Injection(own, fault, around, following.now)
        load = Offering(own, self.offered or 0.0, LATE_SECONDS, loaded)
        sent: Loaded | None = None
        due = _due(self.offered is None, fault, plan.constant_load.seconds, own.records)
        with following, ExitStack() as ending, around.arriving or nullcontext(), load, injection:
            if fault.what in (*OF_SERVICES, PROMOTE, COMMAND):
                # Restarted services have lost their connections.
                ending.callback(own.cluster.refresh)
            with following.samples() as samples:
                for sample in samples:
                    injection.take()
                    _check_start(own, following, sample, began=injection.found.began is not None)
                    if following.seen.placement is not None:
                        load.begin()
                    load.check()
                    injection.check()
                    if injection.found.began is None and due(sample):
                        late = self.offered is None and (sample.stored or 0) >= own.records
                        injection.found = replace(injection.found, too_late=late)
                        own.observer.phase(f"{fault.name}, while {meanwhile}")
                        injection.begin(following.seen.placement or {})
                    # A fault that lasts until all is stored must not be waited for.
                    watch.ended = injection.found.began if fault.seconds is None else injection.found.ended
                    watch.bad = injection.found.poisoned
                    if (deed := watch.deed(sample)) is not None:
                        injection.act(deed, following.now())
            injection.take()
            injection.found = replace(injection.found, recovered=watch.recovered)
            sent = _without_poison(own, load.result(), injection.found.poisoned)
            check_loaded(sent)
        if sent is None and load.loaded is not None:
            # A complete load can still be audited after a failure.
            with suppress(ServiceError, OSError):
                sent = _without_poison(own, load.loaded, injection.found.poisoned)
        return replace(following.timeline, loaded=sent, faulted=injection.found)

    def read(self, own: Resources, around: Around, found: Measured) -> After:
        if found.audited.audit is None or around.arriving is None:
            return After()
        arrivals, why = read_arrivals(own, around)
        return After(arrivals=arrivals, notes=[f"it is not known when records came: {why}"] if why else [])

    def figures(self, found: Measured, reasons: list[Reason]) -> Figures:
        more, broken = [], found.timeline.faulted
        if broken.too_late and self.fault.what != NONE and not reasons:
            text = f"all {found.records:,} records were stored before '{self.fault.name}' began"
            text = f"{text}; give it a larger backlog_records"
            more.append(Reason(code=ReasonCode.RAN_DRY, text=text, figures={"records": found.records}))
        whole = found.timeline.failed is None and broken.began is not None and broken.ended is not None
        offered = None if self.offered is None else round(self.offered, 1)
        recovery = self._recovery(found, broken) if whole else None
        notes = found.after.notes
        return {"reasons": more, "notes": notes, "offered_records_per_second": offered, "recovery": recovery}

    def _recovery(self, found: Measured, broken: Faulted) -> Recovery:
        ended = None if self.fault.seconds is None else broken.ended
        seen = found.after.arrivals
        share = one_in(found.plan, found.records)
        late, latest = (None, None) if seen is None else late_of(seen.due_us, seen.stored_us, share)
        recovery = recovery_of(found.samples, broken.began or 0.0, ended, found.cell.tasks, broken.target)
        recovery = recovery if self.offered is not None else without_rates(recovery)
        audit, letters = found.audited.audit, found.audited.letters if found.before.queue.name else None
        more: dict[str, Any] = {
            "late_records": late,
            "latest_seconds": latest,
            "recovered": broken.recovered,
            "connections_left": found.stopped.unattributed,
            "poisoned": broken.poisoned if self.fault.what == POISON else None,
            "poison_stored": None if not broken.poisoned or audit is None else audit.foreign,
            "dead_letters": None if letters is None else len(letters),
            "acts": list(broken.acts),
        }
        if letters is not None and broken.poisoned:
            bad = (each for each in letters if not documents_of([each.value], found.trial, found.cell.form))
            more["poison_dead"] = len({each.source or each.value for each in bad})
        return recovery.model_copy(update=more)


def _due(of_backlog: bool, fault: PlanFault, load_seconds: float, records: int) -> Callable[[Sample], bool]:
    """Whether a fault is due: a time after the first stored record, at the load's end, or at a share of a backlog."""
    first: float | None = None
    after = fault.at_seconds if of_backlog else fault.begins_at(load_seconds)

    def has_come(sample: Sample) -> bool:
        nonlocal first
        stored = sample.stored or 0
        first = sample.seconds if first is None and stored else first
        if of_backlog and (fault.at_seconds is None or stored >= records):
            return stored >= fault.share_before * records
        if not of_backlog and (sample.in_topic or 0) >= records:
            return True
        return first is not None and after is not None and sample.seconds - first >= after

    return has_come


def _check_start(own: Resources, following: Following, sample: Sample, *, began: bool) -> None:
    """Raises TrialFailed if the tasks do not start, or are uneven before the fault, whose effect that is later."""
    placed, cell = following.seen.placement, own.cell
    if placed is None and sample.seconds > START_SECONDS:
        text = f"not all of {cell.tasks} tasks started in {START_SECONDS:.0f} s"
        raise TrialFailed(text, ReasonCode.TASKS_NOT_STARTED)
    if placed is not None and not began and (text_of := uneven(placed, cell.workers, cell.tasks)) is not None:
        raise TrialFailed(text_of, ReasonCode.TASKS_UNEVEN, workers=cell.workers)


def _without_poison(own: Resources, loaded: Loaded, poisoned: int) -> Loaded:
    return replace(loaded, in_topic=own.in_topic() - poisoned) if poisoned else loaded
