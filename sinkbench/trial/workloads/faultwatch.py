"""Decides from its samples when a trial with a fault is over, and when a user would act. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from sinkbench.analysis.samples import Sample
from sinkbench.errors import ReasonCode
from sinkbench.trial.rest import QUIET_SECONDS, SESSION_SECONDS
from sinkbench.trial.stop import End, end_with

# After this many restarts a pipeline does not recover.
MOST_DEEDS = 3
# A service that died of another cause is given this time before the trial fails.
DEAD_SECONDS = 5.0


class Deed(StrEnum):
    """A request to Connect for a pipeline that does not recover."""

    RESTART_FAILED = "POST /connectors/{name}/restart?includeTasks=true&onlyFailed=true"
    REDIRECT = "PUT /connectors/{name}/config, with the new primary's address in the place of the old one's"
    RESTART = "POST /connectors/{name}/restart?includeTasks=true"


@dataclass(frozen=True)
class Patience:
    """How long a user waits: for FAILED tasks, and for the whole trial."""

    failed_seconds: float
    timeout_seconds: float

    @property
    def still_seconds(self) -> float:
        """How long a RUNNING pipeline may stand still: Kafka keeps the partitions of a dead consumer for a while."""
        return self.failed_seconds + SESSION_SECONDS


class FaultWatch:
    """Watches the samples. The fault's own effects do not end the trial.

    `bad` counts bad records in the topic: a connector with its own offsets may not commit those at a partition's end.
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
        """Returns End if all was read and nothing more is stored, or if that does not happen."""
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
        # A service without CPU readings cannot be seen.
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
        if self.ended is None or self._deeds >= MOST_DEEDS:
            return None
        failed_for = 0.0 if self._failed_since is None else sample.seconds - max(self._failed_since, self.ended)
        if failed_for >= self._patience.failed_seconds:
            self._deeds += 1
            # The wait begins again.
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
        """Whether all records are read; only bad ones may be uncommitted."""
        if sample.stored is None or sample.uncommitted is None or (sample.in_topic or 0) < self._records:
            return False
        return sample.uncommitted == 0 or (sample.uncommitted <= self.bad and sample.stored >= self._records)

    def _hope(self, sample: Sample) -> float:
        """How long progress is possible: a FAILED task stays FAILED, and its partitions have moved to the others."""
        all_failed = sample.tasks_failed is not None and sample.tasks_failed >= self._tasks
        return self._patience.failed_seconds if all_failed else self._patience.still_seconds

    def _still(self, now: float) -> float:
        return now - max(self._moved_seconds, self.ended or 0.0)

    def _end_if_late(self, now: float) -> End | None:
        # A pipeline that does not recover is a result.
        return End() if now > self._patience.timeout_seconds else None
