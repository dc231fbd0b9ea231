"""What can go wrong, as one tree.

    SinkbenchError                the root; never raised itself
    ├── UserError                 the input or the machine is not usable; exit code 2
    │   ├── SettingsError         a setting is unknown or has a value that cannot be used
    │   ├── PlanError             a plan cannot be read, or asks for what there is not
    │   ├── ResultsError          a run that was kept, or what is asked of it, cannot be used
    │   ├── TargetError           a file that says what a table or an index is like cannot be used
    │   └── ServiceError          a service does not answer, or refuses what is asked of it
    │       ├── ServiceTimeout    it does not answer in time
    │       ├── StackError        it cannot be started, found or reached, or is not what it should be
    │       └── ConnectError      Connect refuses a connector, or does not answer
    └── TrialFailed               one trial cannot be finished; it becomes invalid and the run goes on

`Interrupted` is not in the tree: nothing is wrong.

Every message is one line: the thing, what was found, and what to do. `ReasonCode` lists what makes the figures of a
trial, or of a cell, unusable: programs decide on the code, people read the text.
"""

from __future__ import annotations

from enum import StrEnum

EXIT_DONE = 0
EXIT_CHECK_FAILED = 1
EXIT_UNUSABLE = 2
EXIT_INCONCLUSIVE = 3
EXIT_INTERRUPTED = 130

EXIT_CODES = {
    EXIT_DONE: "done",
    EXIT_CHECK_FAILED: "it ran, and something that it checks failed",
    EXIT_UNUSABLE: "the input or the machine is not usable; a line says what to do",
    EXIT_INCONCLUSIVE: "two runs were compared, and what disturbed one of them can explain the change: run it again",
    EXIT_INTERRUPTED: "interrupted; the finished trials are kept",
}
"""What each exit code of a command means."""


class Interrupted(SystemExit):
    """Ctrl-C, a closed terminal, or a polite request to end.

    Not KeyboardInterrupt, which the command line's library takes for itself; and a SystemExit, since for that psycopg
    breaks off a query, so that its connection can be used to clean up.
    """


class SinkbenchError(Exception):
    """The root of all errors that sinkbench raises on purpose."""


class UserError(SinkbenchError):
    """The input or the machine is not usable, and the user can fix it."""


class SettingsError(UserError):
    """A setting is unknown or has a value that cannot be used."""


class PlanError(UserError):
    """A plan cannot be read, or asks for what there is not."""


class ResultsError(UserError):
    """A run that was kept, or what is asked of it, cannot be used."""


class TargetError(UserError):
    """A file that says what a trial's table or index is like cannot be used: no trial could come to anything."""


class ServiceError(UserError):
    """A service does not answer, or refuses what is asked of it. No exception of a service's client goes further up."""


class ServiceTimeout(ServiceError):
    """A service does not answer in time."""


class StackError(ServiceError):
    """A service of the stack cannot be started, found or reached, or is not what it should be."""


class ConnectError(ServiceError):
    """Connect refuses a connector, or does not answer."""


class ReasonCode(StrEnum):
    """Why the figures of a trial or of a cell must not be used."""

    ALTERED = "altered"
    """The sink holds other documents than were sent."""
    CONNECT_REFUSED = "connect_refused"
    """Connect does not take the connector, or does not answer."""
    CONTENT_NOT_CHECKED = "content_not_checked"
    """No stored record could be compared with what was sent."""
    COUNTS_DISAGREE = "counts_disagree"
    """Two counts of the same records differ."""
    DEAD_LETTERS = "dead_letters"
    """Records are in the connector's dead letter queue, not in the sink."""
    DISK_TOO_SMALL = "disk_too_small"
    DIVERTED = "diverted"
    """What the connectors write goes elsewhere."""
    DUPLICATED = "duplicated"
    FOREIGN_RECORDS = "foreign_records"
    """The sink has records of other clients."""
    GENERATOR_TOO_SLOW = "generator_too_slow"
    INDEX_NOT_GREEN = "index_not_green"
    """Shards of the index, or their copies, are on no node."""
    INVALID = "invalid"
    """No trial of the cell is valid."""
    LEADERS_UNEVEN = "leaders_uneven"
    """Some brokers lead more partitions of the topic than others."""
    LOAD_FAILED = "load_failed"
    """Not every record came into the topic."""
    LOST = "lost"
    MISSING = "missing"
    """The sink lacks keys that were not deleted."""
    NO_PROGRESS = "no_progress"
    NO_RATE = "no_rate"
    NO_SAMPLES = "no_samples"
    NO_TRIAL = "no_trial"
    NOT_AUDITED = "not_audited"
    NOT_RECOVERED = "not_recovered"
    """A pipeline did not come to the end of its topic after a fault."""
    NOT_READ = "not_read"
    """The connector has not read the whole topic."""
    NOT_STEADY = "not_steady"
    """Its rate still changed when its trials ended."""
    NOT_SUSTAINED = "not_sustained"
    NOT_WARM = "not_warm"
    """The JVMs were still compiling."""
    OUT_OF_MEMORY = "out_of_memory"
    """A service has died, or tasks have FAILED, for their JVM's memory was used up."""
    PARTITIONS_NOT_IN_SYNC = "partitions_not_in_sync"
    """Not all copies of the topic's partitions are in sync."""
    PROBES_SILENT = "probes_silent"
    RAN_DRY = "ran_dry"
    """The topic was empty before the new number of tasks ran, or before the fault began."""
    RISING = "rising"
    """Each trial was faster than the one before."""
    SEARCH_FAILED = "search_failed"
    """The search found no capacity, or has not ended."""
    SERVICE_ERROR = "service_error"
    """A service does not answer, or refuses what is asked."""
    SERVICE_DIED = "service_died"
    SHARED = "shared"
    """Others used the same workers, brokers or sink meanwhile."""
    SHARDS_MOVING = "shards_moving"
    """Shards of the index are being copied to another node."""
    SHARDS_UNEVEN = "shards_uneven"
    """The index does not lie on as many nodes as it could."""
    SINK_UNREADABLE = "sink_unreadable"
    STANDBY_NOT_IN_SYNC = "standby_not_in_sync"
    """A standby that a commit waits for is not there, or behind."""
    STALE = "stale"
    """The sink holds another version of keys than their last."""
    TASKS_FAILED = "tasks_failed"
    TASKS_NOT_STARTED = "tasks_not_started"
    TASKS_UNEVEN = "tasks_uneven"
    TIMED_OUT = "timed_out"
    TOO_SHORT = "too_short"
    """The drain was over before enough samples were taken."""
    UNCLEAR = "unclear"
    """Whether the lag stays bounded is inconclusive."""
    NOT_DELETED = "not_deleted"
    """The sink holds keys that were deleted."""
    UNKNOWN = "unknown"
    """A sinkbench that kept no codes wrote it."""
    WRITES_REJECTED = "writes_rejected"
    WRITES_TO_STANDBY = "writes_to_standby"
    """The database that is written to follows another one."""


INTERRUPTIONS = frozenset(
    {
        ReasonCode.OUT_OF_MEMORY,
        ReasonCode.PROBES_SILENT,
        ReasonCode.SERVICE_DIED,
        ReasonCode.SERVICE_ERROR,
        ReasonCode.SINK_UNREADABLE,
    }
)
"""What ends a trial while its connector may still have gone on, or can once it is started again: a service died, could
not be asked, or had no memory left."""


class TrialFailed(SinkbenchError):
    """One trial cannot be finished. Its code, its text and its figures are the reason that the trial is invalid."""

    def __init__(self, text: str, code: ReasonCode = ReasonCode.LOAD_FAILED, **figures: float) -> None:
        super().__init__(text)
        self.code = code
        self.figures = figures
