"""Describes the records of a data set."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

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
        left_out: records of a topic without a value (tombstones).
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
        return "; ".join(parts)
