"""What the controller and its plain clients say to each other, pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sinkbench.limits.writers import Destination

__all__ = ["Consume", "MakeRecords", "Open", "Problem", "Ready", "Seen", "Write", "Written"]


@dataclass(frozen=True)
class MakeRecords:
    """Make `count` records from `first_seq` on, to be written again and again. Answered by Ready."""

    run: str
    first_seq: int
    count: int
    keys: int
    record_bytes: int


@dataclass(frozen=True)
class Open:
    """Connect, and cut the records into batches of `batch`. Answered by Ready, or Problem."""

    to: Destination
    batch: int


@dataclass(frozen=True)
class Write:
    """Write from the monotonic time `start` on for so many seconds, then close. Answered by Written."""

    start: float
    seconds: float


@dataclass(frozen=True)
class Consume:
    """Join a consumer group that reads `topic`, and wait. Answered by Seen whenever what is known changes; the next
    message, whatever it is, begins the reading, and the one after that ends it, which is answered by Ready."""

    topic: str
    group: str
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Ready:
    """It is done."""


@dataclass(frozen=True)
class Problem:
    """It cannot be done; why, in one line."""

    reason: str


@dataclass(frozen=True)
class Seen:
    """What a consumer has so far: the monotonic time, its partitions, and the records read."""

    at: float
    partitions: int
    records: int


@dataclass(frozen=True)
class Written:
    """What came of writing.

    Attributes:
        stored: records that the sink has acknowledged.
        in_time: of these those within the seconds; of a batch under way at their end, the share of its time within.
        problem: why it ended early, if it did.
    """

    stored: int
    in_time: float
    problem: str | None = None
