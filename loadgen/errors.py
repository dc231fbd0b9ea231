"""The tree of errors.

    LoadgenError                  the root; never raised itself
    └── UnusableError             the user can correct it; exit code 2
        ├── OptionsError          an option is unknown or has a value that cannot be used
        ├── BrokerError           no broker answers, or it refuses what is asked of it
        ├── TopicError            the topic is not as asked
        └── DatasetError          the user's own records cannot be used

Every message is one line: the thing, what was found, and what to do. A record that is not acknowledged raises nothing:
the summary counts it, and the exit code is 1.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["BrokerError", "DatasetError", "ExitCode", "LoadgenError", "OptionsError", "TopicError", "UnusableError"]


class ExitCode(IntEnum):
    """How the command ended."""

    DONE = 0
    NOT_ACKNOWLEDGED = 1
    UNUSABLE = 2
    INTERRUPTED = 130


class LoadgenError(Exception):
    """The root of loadgen's errors."""


class UnusableError(LoadgenError):
    """The input, the broker or the topic is not usable, and the user can correct it."""


class OptionsError(UnusableError):
    """An option is unknown or has a value that cannot be used."""


class BrokerError(UnusableError):
    """No broker answers, or it refuses what is asked of it."""


class TopicError(UnusableError):
    """The topic is not as asked."""


class DatasetError(UnusableError):
    """A file or a topic does not hold records that can be used."""
