"""The progress, the summary and the state of a load, and the facts of a data set. Imports no numpy."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field


class Behind(BaseModel, extra="forbid", frozen=True):
    """How far a load with a rate was behind its schedule."""

    max_ms: float
    """Largest delay after a record's due time."""
    records_late: int
    late_ms: int
    """A record is late if it is sent more than this after it was due."""
    records_unsent: int
    """Records that were due but not sent when the load ended."""
    records_in_time: int
    """Records sent by `late_ms` after the last one was due; all of them if the generator kept up."""


class Progress(BaseModel, extra="forbid", frozen=True):
    sent: int
    acknowledged: int
    failed: int
    records_per_second: float
    """Acknowledged per second since the last progress."""


class ClockOffset(BaseModel, extra="forbid", frozen=True):
    """The clock of a load generator's machine, compared with that of who started the load."""

    loadgen: str
    ahead_ms: float
    """Due times are corrected by it."""
    within_ms: Annotated[float, Field(ge=0)]
    """How far the true offset may be from `ahead_ms`: half of the quickest round trip."""


class Summary(BaseModel, extra="forbid", frozen=True):
    """A load's result. `sent` is always `acknowledged` + `failed`."""

    run: str
    topic: str
    first_seq: int
    asked: int | None
    sent: int
    """Records passed to the producer: the seqs from `first_seq` on, without gaps."""
    acknowledged: int
    failed: int
    """Records without an acknowledgement, which may still be in the topic."""
    errors: dict[str, int]
    """By message."""
    elapsed_seconds: float
    """From the first record's send until the last was acknowledged or had failed."""
    records_per_second: float
    megabytes_per_second: float
    """In 10^6 bytes of acknowledged values."""
    bytes: int
    cpu_seconds: float
    """User and system time of the process, including the preparation of records."""
    rate_asked: float | None
    behind: Behind | None
    """None without a rate."""
    interrupted: bool
    stopped: str | None
    """Why loadgen gave up; None if it did not."""
    clock: ClockOffset | None = None
    """None if the clocks were not compared."""


class LoadName(BaseModel, extra="forbid", frozen=True):
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
    """None in the first second."""
    summary: Summary | None = None
    """Set once the load is done or cancelled."""
    error: str | None = None
    """Why it failed, in one line."""

    @property
    def acknowledged(self) -> int:
        newest = self.summary or self.progress
        return 0 if newest is None else newest.acknowledged


SCHEME = "kafka://"
"""Prefix of a topic's address."""

MOST_BYTES_KEPT = 256 << 20
"""Limit for the bytes of records and keys; the rest of a larger file or topic is not used."""

Count = Annotated[int, Field(ge=0)]


class DatasetFacts(BaseModel, extra="ignore", frozen=True):
    """Describes the user's own records: the key `records` of a run's environment.

    Attributes:
        sha256: of the kept records with their keys, independent of the file format.
        bytes: of all values, without the member "bench".
        whole: whether these are all records of the source.
        keyless: where the first record without a key is.
        left_out: records of a topic without a value (tombstones), and deletions of a bulk file.
        notes: how they were read, and which values are not as in the source."""

    source: str
    sha256: str
    records: Annotated[int, Field(ge=1)]
    bytes: Count
    whole: bool
    smallest_bytes: Count
    median_bytes: Count
    p95_bytes: Count
    largest_bytes: Count
    with_key: Count
    keyless: str = ""
    left_out: Count = 0
    notes: tuple[str, ...] = ()

    @property
    def mean_bytes(self) -> float:
        return self.bytes / self.records

    @property
    def in_words(self) -> str:
        parts = [
            f"{self.source}: {self.records:,} records of {self.mean_bytes:,.0f} bytes on average"
            f" (from {self.smallest_bytes:,} to {self.largest_bytes:,}, half of them up to {self.median_bytes:,},"
            f" 95 % up to {self.p95_bytes:,})"
        ]
        if self.source.startswith(SCHEME):
            parts.append("read up to where its partitions ended at the start")
        if not self.whole:
            parts.append(f"the first ones only: no more than {MOST_BYTES_KEPT >> 20} MiB are kept")
        if self.with_key < self.records:
            parts.append(f"{self.records - self.with_key:,} of them have no key, and are sent without one")
        if self.left_out:
            parts.append(f"{self.left_out:,} without a value are left out")
        parts += self.notes
        return "; ".join(parts)
