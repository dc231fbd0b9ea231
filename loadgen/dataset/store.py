"""The records of a data set in memory, and the file that transfers them.

The file, which only sinkbench writes and reads, has a line of JSON, then little-endian arrays: the places of the
parts (int64), which records have a key (bytes 0 and 1), the CRC-32 of each record's beginning (uint32; see
`loadgen.checksum`), a topic's times in ms (int64), and the parts: each record's `opening` and key. So all load
generators with the same file make the same records."""

from __future__ import annotations

import hashlib
import json
import mmap
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from loadgen.checksum import crc_before_bench, parse
from loadgen.dataset.facts import MOST_BYTES_KEPT, DatasetFacts
from loadgen.dataset.record import opening, original
from loadgen.errors import DatasetError

# Memory per record in addition to its bytes, which matters for very many tiny records.
BYTES_EACH = 29
MAGIC = "sinkbench data set 2"
FIRST_LINE_BYTES = 4096


class Dataset:
    """Records in memory: whole JSON objects without a member "bench"."""

    def __init__(
        self,
        facts: DatasetFacts,
        places: npt.NDArray[np.int64],
        has_key: npt.NDArray[np.bool_],
        crcs: npt.NDArray[np.uint32],
        times_ms: npt.NDArray[np.int64] | None,
        parts: bytes | mmap.mmap,
    ) -> None:
        """`places` are where record i's opening begins (2 i), its key begins (2 i + 1), and the last key ends."""
        self.facts = facts
        self.parts = parts
        self.starts = places[:-1:2]
        """Where each record's opening begins in `parts`; it ends where the key begins."""
        self.key_starts = places[1::2]
        self.ends = places[2::2]
        """Where each record's key ends."""
        self.has_key = has_key
        self.crcs = crcs
        """The `crc_before_bench` of each record."""
        self.times_ms = times_ms
        """When each record was written, in ms since the epoch, in order; None if that is not known."""
        self._places = places

    def opening(self, index: int) -> bytes:
        return self.parts[int(self.starts[index]) : int(self.key_starts[index])]

    def value(self, index: int) -> bytes:
        """The original record."""
        return original(self.opening(index))

    def key(self, index: int) -> bytes | None:
        return self.parts[int(self.key_starts[index]) : int(self.ends[index])] if self.has_key[index] else None

    @property
    def largest_key_bytes(self) -> int:
        return int((self.ends - self.key_starts).max())

    def write(self, path: Path) -> None:
        """Writes the file that `read` reads."""
        first = json.dumps({"is": MAGIC, "timed": self.times_ms is not None, **self.facts.model_dump()})
        with path.open("wb") as file:
            file.write(first.encode() + b"\n")
            file.write(self._places.astype("<i8").tobytes())
            file.write(self.has_key.astype("u1").tobytes())
            file.write(self.crcs.astype("<u4").tobytes())
            if self.times_ms is not None:
                file.write(self.times_ms.astype("<i8").tobytes())
            file.write(self.parts)

    @classmethod
    def read(cls, path: Path) -> Dataset:
        """Reads such a file and maps its parts. Raises DatasetError if it is invalid or truncated."""
        with path.open("rb") as file:
            try:
                first = json.loads(file.readline(FIRST_LINE_BYTES))
                facts, kind = DatasetFacts(**first), first["is"]
            except (ValueError, KeyError, TypeError, ValidationError):
                kind = None
            if kind != MAGIC:
                raise DatasetError(f"{path}: has no data set of this sinkbench")
            at, count = file.tell(), facts.records
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        numbers = (2 * count + 1) * 8 + count * (1 + 4) + (count * 8 if first["timed"] else 0)
        if len(whole) < at + numbers:
            raise DatasetError(f"{path}: is not whole")
        places = np.frombuffer(whole, dtype="<i8", count=2 * count + 1, offset=at).astype(np.int64)
        at += places.nbytes
        has_key = np.frombuffer(whole, dtype="u1", count=count, offset=at).astype(np.bool_)
        at += count
        crcs = np.frombuffer(whole, dtype="<u4", count=count, offset=at).astype(np.uint32)
        at += crcs.nbytes
        times = None
        if first["timed"]:
            times = np.frombuffer(whole, dtype="<i8", count=count, offset=at).astype(np.int64)
            at += times.nbytes
        if len(whole) != at + int(places[-1]):
            raise DatasetError(f"{path}: is not whole")
        return cls(facts, places + at, has_key, crcs, times, whole)

    @property
    def is_intact(self) -> bool:
        """Whether the records match the digest in their facts."""
        return _digest(self) == self.facts.sha256


class Builder:
    """Collects records up to `MOST_BYTES_KEPT`."""

    def __init__(self, most_bytes: int = MOST_BYTES_KEPT) -> None:
        self._most_bytes = most_bytes
        self._places = array("q", [0])
        self._parts = bytearray()
        self._has_key = bytearray()
        self._sizes = array("q")
        self._crcs = array("I")

    @property
    def records(self) -> int:
        return len(self._sizes)

    def add(self, text: bytes, key: bytes | None) -> bool:
        """Adds a record; returns whether it fitted; the first always does. Raises ValueError for too deep nesting."""
        start = opening(text)
        size = len(self._parts) + len(start) + len(key or b"") + BYTES_EACH * (self.records + 1)
        if self._sizes and size > self._most_bytes:
            return False
        self._crcs.append(crc_before_bench(parse(text)))
        self._parts += start
        self._places.append(len(self._parts))
        self._parts += key or b""
        self._places.append(len(self._parts))
        self._has_key.append(key is not None)
        self._sizes.append(len(text))
        return True

    def build(self, source: str, *, whole: bool, times_ms: Sequence[int] | None = None, left_out: int = 0) -> Dataset:
        sizes = np.frombuffer(self._sizes, dtype=np.int64)
        has_key = np.frombuffer(self._has_key, dtype=np.uint8).astype(np.bool_)
        times = None if times_ms is None else np.array(times_ms, dtype=np.int64)
        middle, high = (int(each) for each in np.quantile(sizes, (0.5, 0.95), method="inverted_cdf"))
        facts = DatasetFacts(
            source=source,
            sha256="",
            records=len(sizes),
            bytes=int(sizes.sum()),
            whole=whole,
            smallest_bytes=int(sizes.min()),
            median_bytes=middle,
            p95_bytes=high,
            largest_bytes=int(sizes.max()),
            with_key=int(has_key.sum()),
            left_out=left_out,
            records_per_second=None if times is None else _pace(times),
        )
        places = np.frombuffer(self._places, dtype=np.int64).copy()
        crcs = np.array(self._crcs, dtype=np.uint32)
        found = Dataset(facts, places, has_key, crcs, times, bytes(self._parts))
        found.facts = facts.model_copy(update={"sha256": _digest(found)})
        return found


def _pace(times_ms: npt.NDArray[np.int64]) -> float | None:
    """Records per second between the first and the last; None if all have one time."""
    span = int(times_ms[-1] - times_ms[0])
    return None if span <= 0 else round((len(times_ms) - 1) * 1000 / span, 3)


def _digest(found: Dataset) -> str:
    digest = hashlib.sha256()
    first = int(found.starts[0])
    digest.update((found._places - first).astype("<i8").tobytes())
    digest.update(found.has_key.astype("u1").tobytes())
    if found.times_ms is not None:
        digest.update(found.times_ms.astype("<i8").tobytes())
    with memoryview(found.parts) as parts:
        digest.update(parts[first : int(found.ends[-1])])
    return digest.hexdigest()
