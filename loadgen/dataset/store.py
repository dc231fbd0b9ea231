"""The records of a data set in memory, the file that transfers them, and the records that a load makes of them.

The file, which only sinkbench writes and reads, has a line of JSON, then numpy's arrays: the places of the parts, which
records have a key, and the CRC-32 of each record's beginning (`loadgen.checksum`), and then the parts: each record's
`opening` and key. So all load generators with the same file make the same records."""

import hashlib
import json
import mmap
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from loadgen.checksum import DIGITS, SUM, crc_before_bench, parse
from loadgen.errors import DatasetError
from loadgen.records import LARGEST_BATCH, Message, Whole, digits_of
from loadgen.summary import MOST_BYTES_KEPT, DatasetFacts

BLANK = b" \t\r\n"
"""JSON's white space."""
# Memory per record in addition to its bytes, which matters for very many tiny records.
BYTES_EACH = 29
MAGIC = "sinkbench data set 4"
FIRST_LINE_BYTES = 1 << 14
# Limits the memory of one call with large records.
MOST_BATCH_BYTES = 4 << 20
SEQ_DIGITS, MICROSECONDS_DIGITS = 19, 16


def opening(text: bytes) -> bytes:
    """Returns the bytes of a JSON object up to where another member may follow."""
    body = text.strip(BLANK)[:-1]
    return body if not body[1:].strip(BLANK) else body + b", "


def closed(start: bytes, bench: bytes) -> bytes:
    """Returns a whole record: its `opening` and the value of the member "bench"."""
    return b'%b"bench": %b}' % (start, bench)


class Dataset:
    """Records in memory: whole JSON objects without a member "bench"."""

    def __init__(
        self,
        facts: DatasetFacts,
        places: Whole,
        has_key: npt.NDArray[np.bool_],
        crcs: npt.NDArray[np.uint32],
        parts: bytes | mmap.mmap,
    ) -> None:
        """`places`: where record i begins (2 i), its key (2 i + 1), and the last ends; `crcs`: `crc_before_bench`."""
        self.facts, self.has_key, self.crcs, self.parts = facts, has_key, crcs, parts
        self.starts, self.key_starts, self.ends = places[:-1:2], places[1::2], places[2::2]
        self._places = places

    def value(self, index: int) -> bytes:
        return self.parts[int(self.starts[index]) : int(self.key_starts[index])].removesuffix(b", ") + b"}"

    def key(self, index: int) -> bytes | None:
        return self.parts[int(self.key_starts[index]) : int(self.ends[index])] if self.has_key[index] else None

    def keys(self) -> tuple[list[str], Whole]:
        """Returns the distinct keys as text, and the place among them of each record's key."""
        places: dict[bytes, int] = {}
        found = [places.setdefault(self.key(index) or b"", len(places)) for index in range(self.facts.records)]
        return [key.decode(errors="replace") for key in places], np.array(found, dtype=np.int64)

    def write(self, path: Path) -> None:
        """Writes the file that `read` reads."""
        with path.open("wb") as file:
            file.write(json.dumps({"is": MAGIC, **self.facts.model_dump()}).encode() + b"\n")
            for numbers in (self._places - self._places[0], self.has_key, self.crcs):
                np.save(file, numbers)
            file.write(memoryview(self.parts)[int(self._places[0]) :])

    @classmethod
    def read(cls, path: Path) -> "Dataset":
        """Reads such a file and maps its parts. Raises DatasetError if it is invalid or truncated."""
        with path.open("rb") as file:
            try:
                first = json.loads(file.readline(FIRST_LINE_BYTES))
                facts, kind = DatasetFacts(**first), first["is"]
                places, has_key, crcs = (np.load(file) for _ in range(3))
                at = file.tell()
                parts = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (ValueError, KeyError, TypeError, EOFError, ValidationError):
                raise DatasetError(f"{path}: has no whole data set of this sinkbench") from None
        if kind != MAGIC or len(places) != 2 * facts.records + 1 or len(parts) != at + int(places[-1]):
            raise DatasetError(f"{path}: has no whole data set of this sinkbench")
        return cls(facts, places + at, has_key, crcs, parts)

    def digest(self) -> str:
        """The digest of the records, which their facts have, too, unless they were changed since."""
        digest = hashlib.sha256()
        first = int(self.starts[0])
        digest.update((self._places - first).astype("<i8").tobytes())
        digest.update(self.has_key.astype("u1").tobytes())
        with memoryview(self.parts) as parts:
            digest.update(parts[first : int(self.ends[-1])])
        return digest.hexdigest()


class Builder:
    """Collects records up to `MOST_BYTES_KEPT`."""

    def __init__(self, most_bytes: int = MOST_BYTES_KEPT) -> None:
        self._most_bytes = most_bytes
        self._places = array("q", [0])
        self._parts = bytearray()
        self._has_key = bytearray()
        self._sizes = array("q")
        self._crcs = array("I")
        self.keyless = ""
        """Where the first record without a key is."""

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

    def build(self, source: str, *, whole: bool, left_out: int = 0, notes: tuple[str, ...] = ()) -> Dataset:
        sizes = np.frombuffer(self._sizes, dtype=np.int64)
        has_key = np.frombuffer(self._has_key, dtype=np.uint8).astype(np.bool_)
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
            keyless=self.keyless,
            notes=notes,
        )
        places = np.frombuffer(self._places, dtype=np.int64).copy()
        found = Dataset(facts, places, has_key, np.array(self._crcs, dtype=np.uint32), bytes(self._parts))
        found.facts = facts.model_copy(update={"sha256": found.digest()})
        return found


class DatasetMaker:
    """Record `seq` of a load is record `seq % records` of the data set, with the member "bench"."""

    def __init__(self, dataset: Dataset, run: str) -> None:
        self._dataset = dataset
        self._sizes = dataset.ends - dataset.starts
        self._run = json.dumps(run)
        longest = 10**MICROSECONDS_DIGITS - 1
        bench = len(closed(b"", self._bench(10**SEQ_DIGITS - 1, longest, longest, "f" * DIGITS)))
        self.mean_bytes = max(1, int((dataset.key_starts - dataset.starts).mean()) + bench)
        self.largest_bytes = int(self._sizes.max()) + bench

    def longest_batch(self, seq: int) -> int:
        if self.largest_bytes * LARGEST_BATCH <= MOST_BATCH_BYTES:
            return LARGEST_BATCH
        sizes = np.cumsum(self._sizes[self._indexes(seq, LARGEST_BATCH)])
        return max(1, int(np.searchsorted(sizes, MOST_BATCH_BYTES, side="right")))

    def batch(self, seq: int, count: int, due_us: int | Sequence[int], sent_us: int) -> list[Message]:
        """See `Maker`."""
        found, indexes, numbers = self._dataset, self._indexes(seq, count), range(seq, seq + count)
        arrays = (found.starts, found.key_starts, found.ends, found.has_key, found.crcs)
        dues = [due_us] * count if isinstance(due_us, int) else due_us
        rows = list(zip(*(each[indexes].tolist() for each in arrays), numbers, dues, strict=True))
        then, crc32 = f',"run":{self._run},"sent_us":{sent_us},"seq":', zlib.crc32
        sums = digits_of([crc32(f'{{"due_us":{due}{then}{number}}}]'.encode(), crc) for *_, crc, number, due in rows])
        parts = found.parts
        return [
            {
                "key": parts[at_key:end] if has_key else None,
                "value": closed(parts[start:at_key], self._bench(number, due, sent_us, digits)),
            }
            for (start, at_key, end, has_key, _, number, due), digits in zip(rows, sums, strict=True)
        ]

    def _indexes(self, seq: int, count: int) -> Whole:
        return np.arange(seq, seq + count, dtype=np.int64) % self._dataset.facts.records

    def _bench(self, seq: int, due_us: int, sent_us: int, digits: str) -> bytes:
        members = f'"run": {self._run}, "seq": {seq}, "due_us": {due_us}, "sent_us": {sent_us}, "{SUM}": "{digits}"'
        return f"{{{members}}}".encode()
