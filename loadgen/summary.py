"""The progress, the summary and the state of a load."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

__all__ = ["Behind", "LoadName", "LoadState", "Progress", "Summary"]


class Behind(BaseModel, extra="forbid", frozen=True):
    """How far a load with a rate was behind its schedule."""

    max_ms: float
    """The latest record's delay, in ms after it was due."""
    records_late: int
    """Records sent more than `late_ms` after they were due."""
    late_ms: int
    records_unsent: int
    """Records due but never sent, since the load ended before."""
    records_in_time: int
    """Records sent by `late_ms` after the last one was due; all of them if the generator kept up."""


class Progress(BaseModel, extra="forbid", frozen=True):
    """A load's progress."""

    sent: int
    acknowledged: int
    failed: int
    records_per_second: float
    """Acknowledged per second since the last progress."""


class Summary(BaseModel, extra="forbid", frozen=True):
    """A load's result. `sent` is always `acknowledged` + `failed`."""

    run: str
    topic: str
    first_seq: int
    asked: int | None
    """Records asked for; None for a duration without a rate."""
    sent: int
    """Records handed to the producer: the seqs from `first_seq` on, without gaps."""
    acknowledged: int
    failed: int
    """Records without an acknowledgement. Some may be in the topic all the same."""
    errors: dict[str, int]
    """Number of failed records by the error's text."""
    elapsed_seconds: float
    """From the first record's hand-over until the last one was acknowledged or had failed."""
    records_per_second: float
    """Acknowledged records over `elapsed_seconds`."""
    megabytes_per_second: float
    """The same for the bytes of their values, in 10^6 bytes."""
    bytes: int
    """The bytes of all values sent."""
    cpu_seconds: float
    """User and system time of the process, including the preparation of records."""
    rate_asked: float | None
    behind: Behind | None
    """None without a rate, and so without a schedule."""
    interrupted: bool
    stopped: str | None
    """Why loadgen gave up; None if it did not."""


class LoadName(BaseModel, extra="forbid", frozen=True):
    """What identifies a load."""

    run: str
    topic: str
    first_seq: int
    count: int | None
    """None for a load that ends by its duration."""


class LoadState(BaseModel, extra="forbid", frozen=True):
    """The newest load of a load generator."""

    state: Literal["idle", "running", "done", "failed", "cancelled"]
    """idle: no load yet; failed: ended without a summary; cancelled: stopped before its end."""
    load: LoadName | None = None
    progress: Progress | None = None
    """The last one; None in the first second."""
    summary: Summary | None = None
    """Set once the load is done or cancelled."""
    error: str | None = None
    """Why it failed, in one line."""

    @property
    def acknowledged(self) -> int:
        newest = self.summary or self.progress
        return 0 if newest is None else newest.acknowledged
