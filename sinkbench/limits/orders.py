"""The messages between the controller and its plain clients, which are pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sinkbench.sinks import Destination

__all__ = ["Consume", "MakeRecords", "Open", "Problem", "Ready", "Seen", "Write", "Written"]


@dataclass(frozen=True)
class MakeRecords:
    """Make `count` records from `first_seq` on, to write again and again. Answered by Ready.

    Attributes:
        run, first_seq, count, keys, record_bytes: as loadgen's options.
        dataset: the file of the data set that they are made from, if they are not noaa's.
    """

    run: str
    first_seq: int
    count: int
    keys: int
    record_bytes: int
    dataset: Path | None = None


@dataclass(frozen=True)
class Open:
    """Connect, and cut the records into batches of `batch`. Answered by Ready, or Problem."""

    to: Destination
    batch: int


@dataclass(frozen=True)
class Write:
    """Write for `seconds` from the monotonic time `start`, then close. Answered by Written."""

    start: float
    seconds: float


@dataclass(frozen=True)
class Consume:
    """Join a consumer group on `topic` and wait. Answered by Seen whenever anything changes.

    The next message, of any kind, starts the reading; the one after it ends the reading and is answered by Ready.
    """

    topic: str
    group: str
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Ready:
    """The order is done."""


@dataclass(frozen=True)
class Problem:
    """The order cannot be done; the reason is one line."""

    reason: str


@dataclass(frozen=True)
class Seen:
    """A consumer at the monotonic time `at`: the number of its partitions, and of the records that it has read."""

    at: float
    partitions: int
    records: int


@dataclass(frozen=True)
class Written:
    """The result of writing.

    Attributes:
        stored: records that the sink has acknowledged.
        in_time: those of them within the time; a batch at its end counts by the share of its duration within.
        problem: why it ended early, if it did.
        cpu_seconds: CPU time that the client took for it.
    """

    stored: int
    in_time: float
    problem: str | None = None
    cpu_seconds: float = 0.0
