"""What the records of a data set are like."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

__all__ = ["MOST_BYTES_KEPT", "SCHEME", "DatasetFacts"]

SCHEME = "kafka://"
"""What the address of a topic begins with."""

MOST_BYTES_KEPT = 256 << 20
"""Records are taken until they and their keys have this many bytes; the rest of a larger file or topic is not used."""

Count = Annotated[int, Field(ge=0)]


class DatasetFacts(BaseModel, extra="ignore", frozen=True):
    """What the user's own records are like: the key `records` of a run's environment.

    Attributes:
        source: the file or topic, as it was named.
        sha256: of the kept records with their keys: the same records, in whatever file, have the same.
        records, bytes: how many, and how many bytes their values have, before the member "bench" is added.
        whole: whether these are all records of the source.
        smallest_bytes, median_bytes, p95_bytes, largest_bytes: the spread of their sizes.
        with_key: records that have a key; the others are sent without one.
        left_out: records of a topic that have no value (tombstones).
        records_per_second: the pace of a topic's records, by their own times; None without such times.
    """

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
    left_out: Count = 0
    records_per_second: float | None = None

    @property
    def mean_bytes(self) -> float:
        return self.bytes / self.records

    @property
    def in_words(self) -> str:
        """How many there are, how large they are, and what else must be known of them."""
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
        if self.records_per_second is not None:
            parts.append(f"they were written at {self.records_per_second:,.1f} records/s")
        return "; ".join(parts)
