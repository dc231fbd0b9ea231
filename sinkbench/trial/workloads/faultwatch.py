"""When a trial with a fault is over, and when a person would act: pure decisions over its samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode
from sinkbench.trial.rest import QUIET_SECONDS, SESSION_SECONDS
from sinkbench.trial.stop import End, end_with

__all__ = ["Deed", "FaultWatch", "Patience"]

# A pipeline that does not recover after this many restarts does not recover.
MOST_DEEDS = 3
# What has died otherwise than by the fault is seen for so long before the trial is given up.
DEAD_SECONDS = 5.0


class Deed(StrEnum):
    """What a person does about a pipeline that does not recover, as a request to Connect."""

    RESTART_FAILED = "POST /connectors/{name}/restart?includeTasks=true&onlyFailed=true"
    REDIRECT = "PUT /connectors/{name}/config, with the new primary's address in the place of the old one's"
    RESTART = "POST /connectors/{name}/restart?includeTasks=true"


@dataclass(frozen=True)
class Patience:
    """How long a person waits.

    Attributes:
        failed_seconds: for tasks that are FAILED.
        timeout_seconds: longest trial.
    """

    failed_seconds: float
    timeout_seconds: float

    @property
    def still_seconds(self) -> float:
        """For a pipeline that stands still, and calls itself RUNNING.

        Kafka keeps the partitions of a dead consumer for a while, in which it may still recover.
        """
        return self.failed_seconds + SESSION_SECONDS


class FaultWatch:
    """Looks at one sample after the other. What the fault itself does ends no trial.

    Args:
        records: that the trial's topic gets.
        tasks: of its connector.
        patience: of the person who would act.

    Attributes:
        ended: when the fault was undone, on the samples' clock; None before.
        bad: bad records that were put into the topic. A connector that keeps its offsets itself may not commit those
            that are a partition's last ones.
        recovered: whether in the end all records were read, and no task was FAILED.
    """

    def __init__(self, records: int, tasks: int, patience: Patience) -> None:
        self._records = records
        self._tasks = tasks
        self._patience = patience
        self._seen: tuple[int | None, int | None] = (None, None)
        self._moved_seconds = 0.0
        self._failed_since: float | None = None
        self._dead_since: float | None = None
        self._dead: tuple[str, ...] = ()
        self._alive: set[str] = set()
        self._deeds = 0
        self.ended: float | None = None
        self.bad = 0
        self.recovered = False

    def see(self, sample: Sample) -> End | None:
        """What the next sample means: End if all was read and nothing more is stored, or if that does not happen."""
        now = sample.seconds
        seen = tuple(
            old if new is None else new
            for old, new in zip(self._seen, (sample.stored, sample.uncommitted), strict=True)
        )
        if seen != self._seen:
            self._seen, self._moved_seconds = (seen[0], seen[1]), now
        if sample.tasks_failed is not None:
            self._failed_since = (self._failed_since or now) if sample.tasks_failed else None
        self._alive |= {name for name, used in sample.cpu_seconds.items() if used is not None}
        if self.ended is None:
            return self._end_if_late(now)
        # A service whose CPU time was never read cannot be seen.
        dead = tuple(sorted(name for name in self._alive if sample.cpu_seconds.get(name, 0.0) is None))
        if sample.cpu_seconds:
            self._dead_since = (self._dead_since or now) if dead else None
            self._dead = dead
        if self._dead_since is not None and now - max(self._dead_since, self.ended) >= DEAD_SECONDS:
            text = f"{' and '.join(self._dead)} died after the fault"
            return replace(end_with(ReasonCode.SERVICE_DIED, text), dead=self._dead)
        if self._all_read(sample) and self._failed_since is None:
            if now - max(self._moved_seconds, self.ended) >= QUIET_SECONDS:
                self.recovered = True
                return End()
        elif self._deeds >= MOST_DEEDS and self._still(now) > self._hope(sample):
            return End()
        return self._end_if_late(now)

    def deed(self, sample: Sample) -> Deed | None:
        """What a person would do now; None while they would wait."""
        if self.ended is None or self._deeds >= MOST_DEEDS:
            return None
        failed_for = 0.0 if self._failed_since is None else sample.seconds - max(self._failed_since, self.ended)
        if failed_for >= self._patience.failed_seconds:
            self._deeds += 1
            # It has another time until somebody looks again.
            self._failed_since = self._moved_seconds = sample.seconds
            return Deed.RESTART_FAILED
        if self._all_read(sample):
            return None
        if sample.uncommitted and self._still(sample.seconds) > self._patience.still_seconds:
            self._deeds += 1
            self._moved_seconds = sample.seconds
            return Deed.RESTART
        return None

    def _all_read(self, sample: Sample) -> bool:
        """Whether all records are in the topic and read; what is not committed can only be bad ones."""
        if sample.stored is None or sample.uncommitted is None or (sample.in_topic or 0) < self._records:
            return False
        return sample.uncommitted == 0 or (sample.uncommitted <= self.bad and sample.stored >= self._records)

    def _hope(self, sample: Sample) -> float:
        """For how long something may still move: a FAILED task stays so, and has left its partitions to the others."""
        all_failed = sample.tasks_failed is not None and sample.tasks_failed >= self._tasks
        return self._patience.failed_seconds if all_failed else self._patience.still_seconds

    def _still(self, now: float) -> float:
        """How long nothing has moved since the fault was undone."""
        return now - max(self._moved_seconds, self.ended or 0.0)

    def _end_if_late(self, now: float) -> End | None:
        # That it did not recover is what the trial shows.
        return End() if now > self._patience.timeout_seconds else None
