"""What a load came to, and how far it is: the two things a caller gets to see."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from loadgen.latency import Latency

__all__ = ["Behind", "Progress", "Summary"]


class Behind(BaseModel):
    """How far a load with a rate fell behind its schedule."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_ms: float
    """The most that a record was sent after it was due, in ms."""
    records_late: int
    """Records sent more than `late_ms` after they were due."""
    late_ms: int
    records_unsent: int
    """Records that were due but never sent, as the load ended first."""
    records_in_time: int
    """Records sent until `late_ms` after the last one was due: whether the generator kept up."""


class Progress(BaseModel):
    """How far a load is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sent: int
    acknowledged: int
    failed: int
    records_per_second: float
    """Acknowledged per second, since the last progress."""


class Summary(BaseModel):
    """What a load came to. `sent` is always `acknowledged` + `failed`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    topic: str
    first_seq: int
    asked: int | None
    """Records asked for; None for a duration without a rate."""
    sent: int
    """Records handed to the producer: the seqs from `first_seq` on, without gaps."""
    acknowledged: int
    failed: int
    """Records of which no acknowledgement came. Some of them may be in the topic all the same."""
    errors: dict[str, int]
    """Why they failed: the error's text, and how many records it befell."""
    elapsed_seconds: float
    """From the first record's hand-over until the last was acknowledged or given up."""
    records_per_second: float
    """Acknowledged records over `elapsed_seconds`."""
    megabytes_per_second: float
    """The same for the bytes of their values, in 10^6 bytes."""
    bytes: int
    """The bytes of all values sent."""
    ack_latency_ms: Latency
    cpu_seconds: float
    """User and system time of the process, from before the records were prepared until the end."""
    rate_asked: float | None
    behind: Behind | None
    """None without a rate: then there is no schedule to fall behind of."""
    interrupted: bool
    stopped: str | None
    """Why loadgen gave up before the end; None if it did not."""
