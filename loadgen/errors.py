"""The tree of errors.

    LoadgenError                  the root; never raised itself
    └── UnusableError             the user can correct it; exit code 2
        ├── OptionsError
        ├── BrokerError
        └── DatasetError

Every message is one line: the subject, what was found, and what to do. A record without acknowledgement raises
nothing: the summary counts it, and the exit code is 1."""

from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    NOT_ACKNOWLEDGED = 1
    UNUSABLE = 2
    INTERRUPTED = 130


class Interrupted(SystemExit):
    """SIGINT (Ctrl-C), SIGTERM, or SIGHUP (a closed terminal).

    It is not KeyboardInterrupt, which the command line's library handles itself. As a SystemExit it makes psycopg
    cancel a query, so that the connection can be used to clean up."""


class LoadgenError(Exception):
    """The root of loadgen's errors."""


class UnusableError(LoadgenError):
    """The user can correct it."""


class OptionsError(UnusableError):
    """An option is unknown or has an invalid value."""


class BrokerError(UnusableError):
    """No broker answers, it refuses a request, or the topic does not match the options."""


class DatasetError(UnusableError):
    """A file or a topic has no usable records."""
