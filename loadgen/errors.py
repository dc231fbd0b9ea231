"""What can go wrong, as one tree.

    LoadgenError                  the root; never raised itself
    └── UnusableError             what the user can mend: the input, the broker or the topic is not usable; exit code 2
        ├── OptionsError          an option is unknown or has a value that cannot be used
        ├── BrokerError           no broker answers, or it refuses what is asked of it
        └── TopicError            the topic is not as asked

Every message is one line: the thing, what was found, and what to do. A record that the broker does not acknowledge is
no exception: it is counted in the summary, and makes exit code 1.
"""

from __future__ import annotations

EXIT_DONE = 0
EXIT_NOT_ACKNOWLEDGED = 1
EXIT_UNUSABLE = 2
EXIT_INTERRUPTED = 130

__all__ = [
    "EXIT_DONE",
    "EXIT_INTERRUPTED",
    "EXIT_NOT_ACKNOWLEDGED",
    "EXIT_UNUSABLE",
    "BrokerError",
    "LoadgenError",
    "OptionsError",
    "TopicError",
    "UnusableError",
]


class LoadgenError(Exception):
    """The root of all errors that loadgen raises on purpose."""


class UnusableError(LoadgenError):
    """The input, the broker or the topic is not usable, and the user can mend it."""


class OptionsError(UnusableError):
    """An option is unknown or has a value that cannot be used."""


class BrokerError(UnusableError):
    """No broker answers, or it refuses what is asked of it."""


class TopicError(UnusableError):
    """The topic is not as asked."""
