"""Dead letters by cause, from Connect's headers, which need `errors.deadletterqueue.context.headers.enable`
(https://kafka.apache.org/documentation/#connect_errorreporting and KIP-298)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

QUEUE = "errors.deadletterqueue.topic.name"
HEADERS = "errors.deadletterqueue.context.headers.enable"
PREFIX = "__connect.errors."
# Records with the same cause differ only in these.
PARTICULAR = re.compile(r"""'[^']*'|"[^"]*"|\d+""")
Header = tuple[str, bytes | None]


class DeadLetter(NamedTuple):
    """One record of a dead letter queue; `key` and `value` are as in the topic, before any converter. `headers` are
    in order; Connect's own begin with `PREFIX`."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]

    def said(self, name: str) -> str:
        """The text of Connect's header with that name, such as `exception.message`; empty if missing."""
        found = next((value for key, value in self.headers if key == PREFIX + name), None)
        return (found or b"").decode(errors="replace")

    @property
    def source(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset of the record that was not stored; None without Connect's headers."""
        topic, partition, offset = self.said("topic"), self.said("partition"), self.said("offset")
        if not topic or not partition.isdecimal() or not offset.isdecimal():
            return None
        return topic, int(partition), int(offset)

    @property
    def own_headers(self) -> list[Header]:
        return [(name, value) for name, value in self.headers if not name.startswith(PREFIX)]

    @property
    def reason(self) -> str:
        """The exception's name without its package, and its message, of the innermost cause with a message:
        wrappers' messages contain exchange ids or a whole script. Empty without Connect's headers."""
        for cause in reversed(re.findall("^Caused by: (.*)", self.said("exception.stacktrace"), re.MULTILINE)):
            name, _, message = cause.partition(": ")
            if message:
                return f"{name.rpartition('.')[2]}: {' '.join(message.split())}"
        name = self.said("exception.class.name").rpartition(".")[2]
        message = " ".join(self.said("exception.message").split())
        return f"{name}: {message}" if name and message else name or message


@dataclass(frozen=True)
class Cause:
    """One connector's dead letters of one stage (such as TASK_PUT) and reason; never empty."""

    connector: str
    stage: str
    reason: str
    letters: tuple[DeadLetter, ...]


def causes(letters: Iterable[DeadLetter]) -> list[Cause]:
    """The letters by cause, the most frequent first. Reasons that differ only in numbers and quoted texts are one."""
    groups: dict[tuple[str, str, str], list[DeadLetter]] = {}
    for letter in letters:
        same = PARTICULAR.sub("*", letter.reason)
        groups.setdefault((letter.said("connector.name"), letter.said("stage"), same), []).append(letter)
    found = [Cause(connector, stage, group[0].reason, tuple(group)) for (connector, stage, _), group in groups.items()]
    return sorted(found, key=lambda cause: len(cause.letters), reverse=True)


def one_of_each(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """The first letter of each record: a restarted task writes dead letters again for records it had not committed."""
    found: dict[tuple[object, bytes | None, bytes | None], DeadLetter] = {}
    for letter in letters:
        # A recreated topic has other records at the same offsets.
        found.setdefault((letter.source, letter.key, letter.value), letter)
    return list(found.values())
