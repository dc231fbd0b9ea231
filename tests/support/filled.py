"""A topic that is there already, without Kafka, as `sinkbench verify` reads it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Message(NamedTuple):
    """Has the methods of confluent_kafka's."""

    place: tuple[int, int]
    stored: tuple[bytes | None, bytes | None]
    milliseconds: int = 0

    def partition(self) -> int:
        return self.place[0]

    def offset(self) -> int:
        return self.place[1]

    def key(self) -> bytes | None:
        return self.stored[0]

    def value(self) -> bytes | None:
        return self.stored[1]

    def timestamp(self) -> tuple[int, int]:
        return 1, self.milliseconds


@dataclass
class FilledTopic:
    """`make` gives the messages of a partition from an offset to another. `read` has what was asked for."""

    ends: dict[int, int]
    make: Callable[[int, int, int], Sequence[Message]]
    starts: dict[int, int] = field(default_factory=dict)
    by_group: dict[int, int] = field(default_factory=dict)
    topic: str = "orders"
    read: list[tuple[int, int]] = field(default_factory=list)

    def spans(self) -> dict[int, tuple[int, int]]:
        return {part: (self.starts.get(part, 0), end) for part, end in self.ends.items()}

    def committed(self) -> dict[int, int]:
        return self.by_group

    def records(self, spans: Mapping[int, tuple[int, int]], at_once: int) -> Iterator[list[Message]]:
        for part, (first, end) in spans.items():
            for offset in range(max(first, self.starts.get(part, 0)), end, at_once):
                self.read.append((part, offset))
                yield list(self.make(part, offset, min(offset + at_once, end)))
