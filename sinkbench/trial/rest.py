"""The rest of a trial that trouble has ended: its connector comes to the end of the topic, for the audit."""

from __future__ import annotations

from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode, TrialFailed
from sinkbench.plan.faults import OF_NETWORK
from sinkbench.trial.probes import probes
from sinkbench.trial.resources import Resources
from sinkbench.trial.sampler import fresh_samples
from sinkbench.trial.stop import End, Timeouts, end_with

__all__ = ["RestWatch", "finish"]

# Kafka keeps the partitions of a consumer that died for 45 s, in which nothing can go on.
SESSION_SECONDS = 45.0
# Offsets may be committed while records are still on their way into the sink, as in an aggregate that is not full.
QUIET_SECONDS = 5.0
# A task that FAILED begins again so often, so long after it was begun last.
MOST_RESTARTS, RESTART_SECONDS = 5, 5.0


def finish(own: Resources) -> None:
    """Lets the connector of a trial read what is left of its topic, and stops it. Nothing is measured of this.

    Raises:
        TrialFailed: it does not come to the end within `drain.timeout_seconds`, or makes no progress.
        ServiceError: a service does not answer.
    """
    own.observer.phase("letting the connector finish, for the audit")
    there, fault = own.status() is not None, own.cell.fault
    if there and fault is not None and fault.what in OF_NETWORK:
        # It has the address of a proxy that is gone.
        own.stop_connector()
        there = False
    if not there:
        # Under its old name it goes on where it was stopped.
        own.start_connector_again()
    drain = own.cluster.plan.drain
    watch = RestWatch(Timeouts(drain.stall_seconds, drain.timeout_seconds))
    # Without the commits nothing would tell when it is over.
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
    """Looks at the rest of a drain that trouble has interrupted: nothing is measured of it, it only has to end.

    Attributes:
        restarts: how often tasks that FAILED were to be started once more.
    """

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._moved_seconds: float | None = None
        self._seen: tuple[int | None, int | None] = (None, None)
        self._restarted_seconds = 0.0
        self.restarts = 0

    def see(self, sample: Sample) -> End | None:
        """What the next sample means: End if all was read and nothing more is stored, or if it does not come to that.

        What is stored counts rows that were written twice, so only what is committed tells that all was read.
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
        """Whether tasks have FAILED, and are to be started once more."""
        due = self.restarts == 0 or sample.seconds - self._restarted_seconds >= RESTART_SECONDS
        if not sample.tasks_failed or self.restarts >= MOST_RESTARTS or not due:
            return False
        self.restarts, self._restarted_seconds = self.restarts + 1, sample.seconds
        return True
