"""Makes the records of a load from a data set, which it repeats."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

import numpy as np

from loadgen.checksum import DIGITS, SUM
from loadgen.dataset.record import closed
from loadgen.dataset.store import Dataset
from loadgen.records import LARGEST_BATCH, Message
from loadgen.recordsums import digits_of

# Limits the memory of one call with large records.
MOST_BATCH_BYTES = 4 << 20
SEQ_DIGITS, MICROSECONDS_DIGITS = 19, 16


class DatasetMaker:
    """Record `seq` of a load is record `seq % records` of the data set, with the member "bench"."""

    def __init__(self, dataset: Dataset, run: str) -> None:
        self._dataset = dataset
        self._count = dataset.facts.records
        self._sizes = dataset.ends - dataset.starts
        self._run = json.dumps(run)
        longest = 10**MICROSECONDS_DIGITS - 1
        bench = len(closed(b"", self._bench(10**SEQ_DIGITS - 1, longest, longest, "f" * DIGITS)))
        openings = dataset.key_starts - dataset.starts
        self.mean_bytes = max(1, int(openings.mean()) + bench)
        """Of a record's value as it is sent, about."""
        self.largest_bytes = int(self._sizes.max()) + bench
        """The most that a value and its key have together."""

    def longest_batch(self, seq: int) -> int:
        if self.largest_bytes * LARGEST_BATCH <= MOST_BATCH_BYTES:
            return LARGEST_BATCH
        sizes = np.cumsum(self._sizes[self._indexes(seq, LARGEST_BATCH)])
        return max(1, int(np.searchsorted(sizes, MOST_BATCH_BYTES, side="right")))

    def batch(self, seq: int, count: int, due_us: int | Sequence[int], sent_us: int) -> list[Message]:
        """See `Maker`."""
        found, indexes = self._dataset, self._indexes(seq, count)
        parts = found.parts
        starts, ends = found.starts[indexes].tolist(), found.ends[indexes].tolist()
        places = zip(starts, found.key_starts[indexes].tolist(), ends, found.has_key[indexes].tolist(), strict=True)
        dues = [due_us] * count if isinstance(due_us, int) else due_us
        numbers = range(seq, seq + count)
        sums = self._sums(numbers, dues, sent_us, found.crcs[indexes].tolist())
        return [
            {
                "key": parts[at_key:end] if has_key else None,
                "value": closed(parts[start:at_key], self._bench(number, due, sent_us, digits)),
            }
            for (start, at_key, end, has_key), number, due, digits in zip(places, numbers, dues, sums, strict=True)
        ]

    def _indexes(self, seq: int, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return np.arange(seq, seq + count, dtype=np.int64) % self._count

    def _sums(self, seqs: range, dues: Sequence[int], sent_us: int, crcs: Sequence[int]) -> list[str]:
        """The checksums of records, each with the CRC-32 of its canonical text before "bench"."""
        then, crc32 = f',"run":{self._run},"sent_us":{sent_us},"seq":', zlib.crc32
        each = zip(dues, seqs, crcs, strict=True)
        return digits_of([crc32(f'{{"due_us":{due}{then}{seq}}}]'.encode(), crc) for due, seq, crc in each])

    def _bench(self, seq: int, due_us: int, sent_us: int, digits: str) -> bytes:
        members = f'"run": {self._run}, "seq": {seq}, "due_us": {due_us}, "sent_us": {sent_us}, "{SUM}": "{digits}"'
        return f"{{{members}}}".encode()
