"""Dead letters: what Connect says of a record that it could not store, and what many of them have in common.

Connect adds headers to a dead letter if `errors.deadletterqueue.context.headers.enable` is true
(https://kafka.apache.org/documentation/#connect_errorreporting and KIP-298).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sinkbench.analysis.javatrace import causes_in

QUEUE = "errors.deadletterqueue.topic.name"
HEADERS = "errors.deadletterqueue.context.headers.enable"
PREFIX = "__connect.errors."
# The records of one cause differ in these alone.
PARTICULAR = re.compile(r"""'[^']*'|"[^"]*"|\d+""")
Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class DeadLetter:
    """One record of a dead letter queue.

    Attributes:
        key, value: as they came from the topic, before any converter.
        headers: all of them, in order; Connect's own begin with `PREFIX`.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]

    def said(self, name: str) -> str:
        """What Connect's header of that name says, such as `exception.message`; empty if it is not there."""
        found = next((value for key, value in self.headers if key == PREFIX + name), None)
        return (found or b"").decode(errors="replace")

    @property
    def source(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset of the record that could not be stored; None without Connect's headers."""
        topic, partition, offset = self.said("topic"), self.said("partition"), self.said("offset")
        if not topic or not partition.isdecimal() or not offset.isdecimal():
            return None
        return topic, int(partition), int(offset)

    @property
    def own_headers(self) -> list[Header]:
        """The headers that the record had before it became a dead letter."""
        return [(name, value) for name, value in self.headers if not name.startswith(PREFIX)]

    @property
    def reason(self) -> str:
        """An exception's name without its package, and its message; empty without Connect's headers.

        It is the innermost cause that has a message: what a sink or a check has said comes wrapped, and the wrappers'
        messages hold the number of an exchange, or all of a script.
        """
        for cause in reversed(causes_in(self.said("exception.stacktrace"))[1:]):
            name, _, message = cause.partition(": ")
            if message:
                return f"{name.rpartition('.')[2]}: {' '.join(message.split())}"
        name = self.said("exception.class.name").rpartition(".")[2]
        message = " ".join(self.said("exception.message").split())
        return f"{name}: {message}" if name and message else name or message


@dataclass(frozen=True)
class Cause:
    """Dead letters of one connector that failed at the same stage for the same reason.

    Attributes:
        reason: of the first of them.
        stage: what Connect was at: VALUE_CONVERTER, TRANSFORMATION, TASK_PUT.
        letters: in the order of the queue; never empty.
    """

    connector: str
    stage: str
    reason: str
    letters: tuple[DeadLetter, ...]


def causes(letters: Iterable[DeadLetter]) -> list[Cause]:
    """The letters by what befell them, the most frequent first.

    Reasons that differ in numbers and quoted texts alone are one: each names the record that it is about.
    """
    groups: dict[tuple[str, str, str], list[DeadLetter]] = {}
    for letter in letters:
        same = PARTICULAR.sub("*", letter.reason)
        groups.setdefault((letter.said("connector.name"), letter.said("stage"), same), []).append(letter)
    found = [
        Cause(connector, stage, members[0].reason, tuple(members)) for (connector, stage, _), members in groups.items()
    ]
    return sorted(found, key=lambda cause: len(cause.letters), reverse=True)


def one_of_each(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """The first letter of each record. A task that begins again puts aside once more what it had not committed."""
    found: dict[tuple[object, bytes | None, bytes | None], DeadLetter] = {}
    for letter in letters:
        # A topic that was made anew has other records at the same places.
        found.setdefault((letter.source, letter.key, letter.value), letter)
    return list(found.values())
