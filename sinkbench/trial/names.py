"""What the things of a trial are called, so that they can be distinguished from others'."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

__all__ = ["NUMBER", "PREFIX", "TOKEN", "TRIAL", "Names", "is_ours"]

# Begins the name of everything that a trial creates; also a legal name of a table that needs no quotes.
PREFIX = "tides_"
TOKEN = re.compile(r"[0-9a-f]{6}")
# What comes after the token of a run.
NUMBER = r"_([0-9]{3,}(_renamed|_second)?|pilot(_[0-9]+)?|limit(_.+)?)"
TRIAL = re.compile(rf"{PREFIX}{TOKEN.pattern}{NUMBER}")
"""The name of what a trial, or a pilot, of any run has made."""


def is_ours(name: str) -> bool:
    """Whether a thing of that name, or the schema that it is in, was made for a trial."""
    return TRIAL.match(name) is not None


@dataclass(frozen=True)
class Names:
    """What the things of one trial are called."""

    trial: str
    topic: str
    connector: str

    @classmethod
    def of(cls, trial: str) -> Names:
        """All named after the trial's id."""
        return cls(trial, PREFIX + trial, PREFIX + trial)

    @property
    def target(self) -> str:
        """The index or table: the JDBC sink names it after the topic."""
        return self.topic

    @property
    def renamed(self) -> Names:
        """The same with another name of the connector."""
        return replace(self, connector=f"{self.connector}_renamed")

    @property
    def second(self) -> Names:
        """Those of a second connector, which has its own topic."""
        return replace(self, topic=f"{self.topic}_second", connector=f"{self.connector}_second")
