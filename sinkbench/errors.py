"""What can go wrong, as one tree with the root `SinkbenchError`. `Interrupted` is not in it: nothing is wrong.

Every message is one line: the thing, what was found, and what to do. `ReasonCode` lists what makes the figures of a
trial, or of a cell, unusable: programs decide on the code, people read the text."""

from enum import StrEnum

from loadgen.errors import Interrupted as Interrupted

EXIT_DONE = 0
EXIT_CHECK_FAILED = 1
EXIT_UNUSABLE = 2
EXIT_INCONCLUSIVE = 3
EXIT_INTERRUPTED = 130

EXIT_CODES = {
    EXIT_DONE: "done",
    EXIT_CHECK_FAILED: "it ran, and something that it checks failed",
    EXIT_UNUSABLE: "the input or the machine is not usable; a line says what to do",
    EXIT_INCONCLUSIVE: "inconclusive: too few trials or a disturbance, or a threshold has no final figure",
    EXIT_INTERRUPTED: "interrupted; the finished trials are kept",
}


class SinkbenchError(Exception):
    """The root of all errors that sinkbench raises on purpose; never raised itself."""


class UserError(SinkbenchError):
    """The input or the machine is not usable, and the user can fix it; exit code 2."""


class SettingsError(UserError):
    """A setting is unknown or has an invalid value."""


class PlanError(UserError):
    """A plan cannot be read, or requests what does not exist."""


class ClaimError(UserError):
    """A file of a published claim cannot be read, or there is no claim of that name."""


class SizeError(UserError):
    """A requirement, or a cluster, cannot be sized."""


class ResultsError(UserError):
    """A stored run, or a request about it, cannot be used."""


class TargetError(UserError):
    """A file that describes a table or an index cannot be used."""


class ServiceError(UserError):
    """A service does not answer, or refuses a request. Exceptions of a service's client are converted to it."""


class ServiceTimeout(ServiceError):
    """A service does not answer in time."""


class StackError(ServiceError):
    """A service of the stack cannot be started, found or reached, or is not as expected."""


class ConnectError(ServiceError):
    """Connect rejects a connector, or does not answer."""


class ReasonCode(StrEnum):
    """Why the figures of a trial or of a cell must not be used."""

    ALTERED = "altered"  # documents in the sink differ from those sent
    CONNECT_REFUSED = "connect_refused"
    CONTENT_NOT_CHECKED = "content_not_checked"
    COUNTS_DISAGREE = "counts_disagree"
    DEAD_LETTERS = "dead_letters"
    DISK_TOO_SMALL = "disk_too_small"
    DIVERTED = "diverted"  # the connectors write to another place
    DUPLICATED = "duplicated"
    FOREIGN_RECORDS = "foreign_records"  # the sink has records of other clients
    GENERATOR_TOO_SLOW = "generator_too_slow"
    INDEX_NOT_GREEN = "index_not_green"
    INVALID = "invalid"  # no trial of the cell is valid
    LEADERS_UNEVEN = "leaders_uneven"  # some brokers lead more partitions of the topic than others
    LOAD_FAILED = "load_failed"  # not every record was written to the topic
    LOST = "lost"
    MISSING = "missing"  # the sink lacks keys that were not deleted
    NO_PROGRESS = "no_progress"
    NO_RATE = "no_rate"
    NO_SAMPLES = "no_samples"
    NO_TRIAL = "no_trial"
    NOT_AUDITED = "not_audited"
    NOT_RECOVERED = "not_recovered"  # a pipeline did not reach the end of its topic after a fault
    NOT_READ = "not_read"  # the connector has not read the whole topic
    NOT_STEADY = "not_steady"  # the rate still changed when the trials ended
    NOT_SUSTAINED = "not_sustained"
    NOT_WARM = "not_warm"  # the JVMs were still compiling
    OUT_OF_MEMORY = "out_of_memory"  # a service died or tasks FAILED for lack of memory
    PARTITIONS_NOT_IN_SYNC = "partitions_not_in_sync"
    PROBES_SILENT = "probes_silent"
    RAN_DRY = "ran_dry"  # the topic was empty before the new number of tasks ran, or before the fault began
    RISING = "rising"  # each trial was faster than the previous one
    SEARCH_FAILED = "search_failed"  # the search found no capacity, or has not ended
    SERVICE_ERROR = "service_error"
    SERVICE_DIED = "service_died"
    SHARED = "shared"  # others used the same workers, brokers or sink in the meantime
    SHARDS_MOVING = "shards_moving"
    SHARDS_UNEVEN = "shards_uneven"  # the index is on fewer nodes than possible
    SINK_UNREADABLE = "sink_unreadable"
    STALLED = "stalled"  # nothing was stored for more than a tenth of the measured time
    STANDBY_NOT_IN_SYNC = "standby_not_in_sync"  # a synchronous standby is missing or behind
    STALE = "stale"  # the sink has an earlier version of some keys
    TASKS_FAILED = "tasks_failed"
    TASKS_NOT_STARTED = "tasks_not_started"
    TASKS_UNEVEN = "tasks_uneven"
    TIMED_OUT = "timed_out"
    TOO_SHORT = "too_short"  # the drain ended before enough samples were taken
    UNCLEAR = "unclear"  # whether the lag stays bounded is inconclusive
    NOT_DELETED = "not_deleted"  # the sink has keys that were deleted
    UNKNOWN = "unknown"  # from a version of sinkbench without codes
    WRITES_REJECTED = "writes_rejected"
    WRITES_TO_STANDBY = "writes_to_standby"


INTERRUPTIONS = frozenset(
    {
        ReasonCode.OUT_OF_MEMORY,
        ReasonCode.PROBES_SILENT,
        ReasonCode.SERVICE_DIED,
        ReasonCode.SERVICE_ERROR,
        ReasonCode.SINK_UNREADABLE,
    }
)
"""Ends a trial whose connector may still continue, now or after a restart."""


class TrialFailed(SinkbenchError):
    """One trial cannot be finished: it becomes invalid, with this code, text and figures, and the run continues."""

    def __init__(self, text: str, code: ReasonCode = ReasonCode.LOAD_FAILED, **figures: float) -> None:
        super().__init__(text)
        self.code = code
        self.figures = figures
