"""Names of a trial's topic, connector and table, which distinguish them from others', and their removal."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from sinkbench.errors import ServiceError

# Prefix of every name that a trial creates; a legal table name without quotes.
PREFIX = "tides_"
TOKEN = re.compile(r"[0-9a-f]{6}")


def names_of(tokens: str) -> re.Pattern[str]:
    """Matches the names that trials and pilots of runs create; `tokens` is a pattern of these runs."""
    number = r"[0-9]{3,}([_-](renamed|second))?(-reader[0-9]+)?|(pilot|canary)([_-][0-9]+)*|limit([_-].+)?"
    return re.compile(rf"tides[_-]({tokens})[_-]({number})")


TRIAL = names_of(TOKEN.pattern)
"""Matches those of any run."""


def is_ours(name: str) -> bool:
    return TRIAL.match(name) is not None


@dataclass(frozen=True)
class Names:
    trial: str
    topic: str
    connector: str

    @classmethod
    def of(cls, trial: str) -> "Names":
        # A connector may be a Kubernetes resource, whose name has no "_".
        return cls(trial, PREFIX + trial, (PREFIX + trial).replace("_", "-"))

    @property
    def target(self) -> str:
        """The index or table, which the JDBC sink names after the topic."""
        return self.topic

    @property
    def renamed(self) -> "Names":
        return replace(self, connector=f"{self.connector}-renamed")

    @property
    def second(self) -> "Names":
        """Names for a second connector with its own topic."""
        return replace(self, topic=f"{self.topic}_second", connector=f"{self.connector}-second")


@contextmanager
def cleaning(clean: Callable[[], None], recover: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Calls `clean` at the end. Raises its error only if the block raised none.

    If `clean` fails and `recover` has restarted a service, `clean` is called again; not after an interrupt."""
    try:
        yield
    except BaseException as error:
        with suppress(ServiceError):
            _clean(clean, recover if isinstance(error, Exception) else lambda: False)
        raise
    _clean(clean, recover)


def _clean(clean: Callable[[], None], recover: Callable[[], bool]) -> None:
    try:
        clean()
    except ServiceError:
        if not recover():
            raise
        clean()
