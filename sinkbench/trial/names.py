"""Names of a trial's topic, connector and table, which distinguish them from others'."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

# Prefix of every name that a trial creates; a legal table name without quotes.
PREFIX = "tides_"
TOKEN = re.compile(r"[0-9a-f]{6}")
# What follows the token of a run.
NUMBER = r"_([0-9]{3,}(_renamed|_second)?|pilot(_[0-9]+)?|limit(_.+)?)"
TRIAL = re.compile(rf"{PREFIX}{TOKEN.pattern}{NUMBER}")
"""Matches the names that a trial or a pilot of any run creates."""


def is_ours(name: str) -> bool:
    return TRIAL.match(name) is not None


@dataclass(frozen=True)
class Names:
    trial: str
    topic: str
    connector: str

    @classmethod
    def of(cls, trial: str) -> Names:
        return cls(trial, PREFIX + trial, PREFIX + trial)

    @property
    def target(self) -> str:
        """The index or table, which the JDBC sink names after the topic."""
        return self.topic

    @property
    def renamed(self) -> Names:
        return replace(self, connector=f"{self.connector}_renamed")

    @property
    def second(self) -> Names:
        """Names for a second connector with its own topic."""
        return replace(self, topic=f"{self.topic}_second", connector=f"{self.connector}_second")
