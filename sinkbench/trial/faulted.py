"""A trial in which something is broken on purpose: what becomes of its records?

They come at a constant rate, or all are in the topic before the connector starts.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from sinkbench.analysis.recovery import late_of, recovery_of, without_rates
from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode, ServiceError, TrialFailed
from sinkbench.plan.faults import COMMAND, FILL, NONE, OF_NETWORK, OF_SERVICES, POISON, PROMOTE, PlanFault
from sinkbench.results import Act, Recovery
from sinkbench.services.failures import in_one_line
from sinkbench.sinks import Arrivals, ArrivalWatch, FullDisk, needed
from sinkbench.trial.bench import Loaded
from sinkbench.trial.faultwatch import Deed, FaultWatch, Patience
from sinkbench.trial.fulldisk import disk_to_fill
from sinkbench.trial.injection import Injection
from sinkbench.trial.kind import Figures
from sinkbench.trial.network import Network, proxied_network, proxy_targets_used
from sinkbench.trial.offering import Backlog, Offering
from sinkbench.trial.promotion import usual_roles
from sinkbench.trial.sustain import clock_ms, clock_step, one_in
from sinkbench.trial.trial import Trial

__all__ = ["Faulted"]

# The producer waits for a broker that is started again.
LATE_SECONDS = 40.0
# Nothing is broken before the tasks run.
START_SECONDS = 60.0


class Faulted:
    """The kind of trial with a fault. It ends when all records are read, however often they were written.

    What the fault does to the pipeline is no reason against the trial: that is what it measures. A pipeline that does
    not recover by itself is helped as a person would help it, after the plan's patience, and that is kept.
    """

    def __init__(self, offered: float | None, fault: PlanFault) -> None:
        """`offered` is the rate of the load, in records per second; None: the trial's records are a backlog."""
        self._offered = offered
        self._fault = fault
        self._network: Network | None = None
        self._disk: FullDisk | None = None
        self._began: float | None = None
        self._ended: float | None = None
        self._target = ""
        self._first: float | None = None
        self._too_late = False
        self._acts: list[Act] = []
        self._recovered = False
        self._clock_ms = clock_ms()
        self._arriving: ArrivalWatch | None = None
        self._arrivals: Arrivals | None = None
        self._notes: list[str] = []

    def load(self, trial: Trial) -> None:
        if self._offered is None:
            trial.load()
        else:
            trial.bench.create_topic(trial.names)
        if self._fault.what in OF_NETWORK:
            self._network = trial.contexts.enter_context(proxied_network(trial.bench, trial.cell))
        if self._fault.what == FILL:
            disk = disk_to_fill(trial.bench, trial.cell, trial.names, trial.records)
            self._disk = trial.contexts.enter_context(disk)
        if self._fault.what == PROMOTE:
            trial.contexts.enter_context(usual_roles(trial.bench, trial.cell.sink))

    def run(self, trial: Trial) -> None:
        plan, fault = trial.bench.plan, self._fault
        longest = plan.drain.timeout_seconds + fault.most_seconds
        if self._offered is not None:
            longest += plan.constant_load.seconds
            interval = plan.constant_load.arrival_interval_ms / 1000
            # Of a backlog all records were due before the connector was there: none is late.
            if (times := trial.sink.capabilities.times) is not None:
                self._arriving = trial.contexts.enter_context(times.watch(trial.names.target, interval))
        watch = FaultWatch(trial.records, trial.cell.tasks, Patience(fault.patience_seconds, longest))
        trial.observer.phase("draining" if self._offered is None else f"offering {self._offered:,.0f} records/s")
        try:
            with (
                self._arriving or nullcontext(),
                self._load_of(trial) as offering,
                Injection(trial, fault, self._network, self._disk) as injection,
            ):
                self._break(trial, watch, offering, injection)
        finally:
            if fault.what in (*OF_SERVICES, PROMOTE, COMMAND):
                # What was started again has forgotten its connections.
                trial.bench.refresh()
        self._target, self._began, self._ended = injection.target, injection.began, injection.ended
        trial.check_loaded()

    def _load_of(self, trial: Trial) -> Offering | Backlog:
        if self._offered is not None:
            return Offering(trial, self._offered, LATE_SECONDS)
        if trial.loaded is None:
            raise RuntimeError("a backlog is loaded before the connector starts")
        return Backlog(trial.loaded)

    def _break(self, trial: Trial, watch: FaultWatch, offering: Offering | Backlog, injection: Injection) -> None:
        """Offers the load, breaks what is to be broken, and waits until all records are read."""
        plan, fault = trial.bench.plan, self._fault

        def see(sample: Sample) -> None:
            if trial.placed is not None:
                if injection.began is None:
                    # What the fault does to the tasks is no reason against the trial; how they were before is.
                    trial.check_even()
                offering.begin()
            elif sample.seconds > START_SECONDS:
                text = f"not all of {trial.cell.tasks} tasks started in {START_SECONDS:.0f} s"
                raise TrialFailed(text, ReasonCode.TASKS_NOT_STARTED)
            offering.check()
            injection.check()
            if self._is_due(sample, plan.constant_load.seconds, trial.records):
                if injection.began is None:
                    self._too_late = self._offered is None and (sample.stored or 0) >= trial.records
                    trial.observer.phase(f"{fault.name}, while {self._meanwhile(trial)}")
                injection.begin()
            # What lasts until all is stored must not be waited for.
            watch.ended = injection.began if fault.seconds is None else injection.ended
            watch.bad = trial.poisoned
            if (deed := watch.deed(sample)) is not None:
                self._do(deed, trial, injection)

        try:
            trial.run(watch, see, sampler=trial.bench.background_sampler(trial.cell, lambda: trial.names))
        except (TrialFailed, ServiceError, OSError):
            # A whole load can still be audited.
            trial.loaded = _without_poison(trial, offering.ended())
            raise
        trial.loaded = _without_poison(trial, offering.result())
        self._recovered = watch.recovered

    def _meanwhile(self, trial: Trial) -> str:
        return (
            f"{trial.records:,} records are drained"
            if self._offered is None
            else f"{self._offered:,.0f} records/s come"
        )

    def _is_due(self, sample: Sample, load_seconds: float, records: int) -> bool:
        """Whether the moment of the fault has come: so long after the first record was stored, or the load is over.

        A share of a backlog is one of the records that are stored.
        """
        if self._first is None and sample.stored:
            self._first = sample.seconds
        if self._offered is None:
            stored = sample.stored or 0
            if self._fault.at_seconds is None or stored >= records:
                return stored >= self._fault.share_before * records
            return self._first is not None and sample.seconds - self._first >= self._fault.at_seconds
        if sample.in_topic is not None and sample.in_topic >= records:
            return True
        return self._first is not None and sample.seconds - self._first >= self._fault.begins_at(load_seconds)

    def _do(self, deed: Deed, trial: Trial, injection: Injection) -> None:
        """What a person would do, who has waited long enough."""
        if (to := self._new_address(trial, injection)) is not None:
            # To start it again would not lead it elsewhere.
            deed = Deed.REDIRECT
        command = deed.format(name=trial.names.connector)
        self._acts.append(Act(seconds=round(trial.now() - (injection.began or 0.0), 3), command=command))
        if to is not None:
            trial.bench.redirect(trial.cell, trial.names, to)
        elif deed == Deed.RESTART_FAILED:
            trial.bench.restart_failed(trial.names)
        else:
            trial.bench.restart(trial.names)

    def _new_address(self, trial: Trial, injection: Injection) -> dict[str, str] | None:
        """What the connector's variables for its sink's only address hold from now on; None if it has to hold nothing
        else: it was told already, or finds the new primary itself."""
        told = any(act.command == Deed.REDIRECT.format(name=trial.names.connector) for act in self._acts)
        if injection.moved_to is None or told:
            return None
        proxies, cell = needed(trial.bench.stack.faults, "faults").proxies, trial.cell
        used = {} if proxies is None else proxy_targets_used(trial.bench.file_of(cell), cell.sink, proxies.targets)
        return used[cell.sink].at(*injection.moved_to) if cell.sink in used else None

    def read(self, trial: Trial) -> None:
        if trial.audited is None or self._arriving is None:
            return
        trial.observer.phase("reading when records arrived")
        stepped = clock_step(self._clock_ms, clock_ms())
        try:
            self._arrivals = None if stepped else self._arriving.read(trial.names.trial, one_in(trial))
        except (ServiceError, OSError) as error:
            stepped = in_one_line(error)
        if stepped:
            self._notes.append(f"it is not known when records came: {stepped}")

    def figures(self, trial: Trial) -> Figures:
        if self._too_late and self._fault.what != NONE and not trial.reasons:
            text = f"all {trial.records:,} records were stored before '{self._fault.name}' began"
            trial.note(ReasonCode.RAN_DRY, f"{text}; give it a larger backlog_records", records=trial.records)
        return Figures(
            bottleneck=None,
            notes=self._notes,
            offered_records_per_second=None if self._offered is None else round(self._offered, 1),
            recovery=None if self._began is None or self._ended is None else self._recovery(trial),
        )

    def _recovery(self, trial: Trial) -> Recovery:
        ended = None if self._fault.seconds is None else self._ended
        seen = self._arrivals
        late, latest = (None, None) if seen is None else late_of(seen.due_us, seen.stored_us, one_in(trial))
        found = recovery_of(trial.samples, self._began or 0.0, ended, trial.cell.tasks, self._target)
        found = found if self._offered is not None else without_rates(found)
        more = {
            "late_records": late,
            "latest_seconds": latest,
            "recovered": self._recovered,
            "connections_left": trial.connections_left,
            "poisoned": trial.poisoned if self._fault.what == POISON else None,
            "poison_stored": None if not trial.poisoned or trial.audited is None else trial.audited.foreign,
            "poison_dead": trial.bad_letters if trial.poisoned else None,
            "dead_letters": trial.dead_letters,
            "acts": self._acts,
        }
        return found.model_copy(update=more)


def _without_poison(trial: Trial, loaded: Loaded | None) -> Loaded | None:
    """What came of a load, without the bad records that were put into its topic."""
    if loaded is None or not trial.poisoned:
        return loaded
    return replace(loaded, in_topic=trial.bench.in_topic(trial.names) - trial.poisoned)
