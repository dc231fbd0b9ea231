"""Lets the connector of an interrupted trial read the rest of its topic, for the audit."""

from __future__ import annotations

from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode, TrialFailed
from sinkbench.plan.faults import OF_NETWORK
from sinkbench.trial.probes import probes
from sinkbench.trial.resources import Resources
from sinkbench.trial.sampler import fresh_samples
from sinkbench.trial.stop import End, Timeouts, end_with

# Kafka keeps the partitions of a dead consumer for 45 s.
SESSION_SECONDS = 45.0
# Offsets may be committed before records reach the sink, as with a batch that is not full.
QUIET_SECONDS = 5.0
# Limit and interval of restarts of FAILED tasks.
MOST_RESTARTS, RESTART_SECONDS = 5, 5.0


def finish(own: Resources) -> None:
    """Lets the connector read the rest of its topic, and stops it. Raises TrialFailed if it does not finish."""
    own.observer.phase("letting the connector finish, for the audit")
    there, fault = own.status() is not None, own.cell.fault
    if there and fault is not None and fault.what in OF_NETWORK:
        # Its configuration has the address of a proxy that is gone.
        own.stop_connector()
        there = False
    if not there:
        # Under its old name it continues at its committed offsets.
        own.start_connector_again()
    drain = own.cluster.plan.drain
    watch = RestWatch(Timeouts(drain.stall_seconds, drain.timeout_seconds))
    # Only the committed offsets show the end.
    sampler = probes(own, always=True)
    sampler.start()
    try:
        for fresh in fresh_samples(sampler):
            own.observer.progress(min(fresh[-1].stored or 0, own.records), own.records)
            if watch.wants_restart(fresh[-1]):
                own.cluster.connect.restart_failed(own.names.connector)
            end = next(filter(None, map(watch.see, fresh)), None)
            if end is not None and end.reason is not None:
                raise TrialFailed(end.reason.text, end.reason.code)
            if end is not None:
                break
    finally:
        sampler.stop()
    own.stop_connector()


class RestWatch:
    """Watches the rest of an interrupted drain."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._moved_seconds: float | None = None
        self._seen: tuple[int | None, int | None] = (None, None)
        self._restarted_seconds = 0.0
        self.restarts = 0

    def see(self, sample: Sample) -> End | None:
        """Returns End if all was read and nothing more is stored, or if that does not happen.

        Rows may be stored twice, so only committed offsets show that all was read.
        """
        now, seen = sample.seconds, (sample.stored, sample.uncommitted)
        self._moved_seconds = now if self._moved_seconds is None else self._moved_seconds
        if None not in seen and seen != self._seen:
            self._seen, self._moved_seconds = seen, now
        still = now - self._moved_seconds
        if sample.uncommitted == 0 and sample.stored is not None and still >= QUIET_SECONDS:
            return End()
        left = "some" if self._seen[1] is None else f"{self._seen[1]:,}"
        if still > self._timeouts.stall_seconds + SESSION_SECONDS:
            return end_with(ReasonCode.NO_PROGRESS, f"no progress for {still:.0f} s, {left} records left to commit")
        if now > self._timeouts.timeout_seconds:
            return end_with(ReasonCode.TIMED_OUT, f"not over after {now:.0f} s, {left} records left to commit")
        return None

    def wants_restart(self, sample: Sample) -> bool:
        due = self.restarts == 0 or sample.seconds - self._restarted_seconds >= RESTART_SECONDS
        if not sample.tasks_failed or self.restarts >= MOST_RESTARTS or not due:
            return False
        self.restarts, self._restarted_seconds = self.restarts + 1, sample.seconds
        return True
