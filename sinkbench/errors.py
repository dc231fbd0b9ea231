"""What can go wrong, as one tree.

    SinkbenchError                the root; never raised itself
    ├── UserError                 the input or the machine is not usable; exit code 2
    │   ├── SettingsError         a setting is unknown or has a value that cannot be used
    │   ├── PlanError             a plan cannot be read, or asks for what there is not
    │   ├── ResultsError          a run that was kept, or what is asked of it, cannot be used
    │   ├── StackError            a service cannot be started, found or reached
    │   └── ConnectError          Connect refuses a connector, or does not answer
    └── TrialFailed               one trial cannot be finished; it becomes invalid and the run goes on

Every message is one line: the thing, what was found, and what to do.
"""

from __future__ import annotations

EXIT_DONE = 0
EXIT_CHECK_FAILED = 1
EXIT_UNUSABLE = 2
EXIT_INTERRUPTED = 130

EXIT_CODES = {
    EXIT_DONE: "done",
    EXIT_CHECK_FAILED: "it ran, and something that it checks failed",
    EXIT_UNUSABLE: "the input or the machine is not usable; a line says what to do",
    EXIT_INTERRUPTED: "interrupted; the finished trials are kept",
}
"""What each exit code of a command means."""

__all__ = [
    "EXIT_CHECK_FAILED",
    "EXIT_CODES",
    "EXIT_DONE",
    "EXIT_INTERRUPTED",
    "EXIT_UNUSABLE",
    "ConnectError",
    "PlanError",
    "ResultsError",
    "SettingsError",
    "SinkbenchError",
    "StackError",
    "TrialFailed",
    "UserError",
]


class SinkbenchError(Exception):
    """The root of all errors that sinkbench raises on purpose."""


class UserError(SinkbenchError):
    """The input or the machine is not usable, and the user can mend it."""


class SettingsError(UserError):
    """A setting is unknown or has a value that cannot be used."""


class PlanError(UserError):
    """A plan cannot be read, or asks for what there is not."""


class ResultsError(UserError):
    """A run that was kept, or what is asked of it, cannot be used."""


class StackError(UserError):
    """A service of the stack cannot be started, found or reached."""


class ConnectError(UserError):
    """Connect refuses a connector, or does not answer."""


class TrialFailed(SinkbenchError):
    """One trial cannot be finished. Its text is the reason that the trial is marked invalid with."""
