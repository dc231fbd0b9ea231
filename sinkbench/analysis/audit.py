"""The audit: how many records of a load were lost, stored and duplicated, and which ones."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from sinkbench.results import Audit

# Limits the ranges in a record, so that a line of trials.jsonl stays below a megabyte whatever was lost.
MOST_RANGES = 10_000
# Follows the last range in a record if there are more.
_MORE = re.compile(r" and (\d+) more$")


class SeqAudit:
    """Counts the records of a load by `seq`, from 0 to `expected_count - 1`, from rows in any chunks and order."""

    def __init__(self, expected_count: int) -> None:
        if expected_count < 0:
            raise ValueError(f"expected_count must not be negative, found {expected_count}")
        self.expected_count = expected_count
        self._seen = np.zeros(expected_count, dtype=np.bool_)
        self._twice = np.zeros(expected_count, dtype=np.bool_)
        self._dead = np.zeros(expected_count, dtype=np.bool_)
        self._stored = 0
        self._foreign = 0

    def add(self, seqs: npt.ArrayLike) -> None:
        """Adds the `seq` of rows, all integers; ValueError for anything else."""
        chunk = np.asarray(seqs)
        if chunk.size == 0:
            return
        if chunk.ndim != 1 or not np.issubdtype(chunk.dtype, np.integer):
            raise ValueError(f"seqs must be one list of whole numbers, found {chunk.dtype} of shape {chunk.shape}")
        ours = chunk[(chunk >= 0) & (chunk < self.expected_count)]
        found, times = np.unique(ours, return_counts=True)
        self._twice[found[(times > 1) | self._seen[found]]] = True
        self._seen[found] = True
        self._stored += int(chunk.size)
        self._foreign += int(chunk.size - ours.size)

    def add_dead(self, seqs: npt.ArrayLike) -> None:
        """Adds the `seq` of dead letters; those outside the load are ignored."""
        chunk = np.asarray(seqs, dtype=np.int64)
        self._dead[chunk[(chunk >= 0) & (chunk < self.expected_count)]] = True

    def add_foreign(self, rows: int) -> None:
        """Adds rows of another load, or without a `seq`."""
        if rows < 0:
            raise ValueError(f"rows must not be negative, found {rows}")
        self._stored += rows
        self._foreign += rows

    def result(self) -> Audit:
        """The counts so far. A dead letter that is also stored (replayed or read again) counts as stored."""
        seen = int(np.count_nonzero(self._seen))
        dead = int(np.count_nonzero(self._dead & ~self._seen))
        return Audit(
            produced=self.expected_count,
            stored=self._stored,
            lost=self.expected_count - seen - dead,
            dead_letters=dead,
            duplicates=self._stored - self._foreign - seen,
            foreign=self._foreign,
        )

    def is_lost(self, seq: int) -> bool:
        return 0 <= seq < self.expected_count and not (self._seen[seq] or self._dead[seq])

    def lost_ranges(self, limit: int = MOST_RANGES) -> str:
        """The first `limit` ranges of lost records, as "17-516, 900"; empty if none is lost."""
        return ranges_of(~(self._seen | self._dead), limit)

    def duplicated_ranges(self, limit: int = MOST_RANGES) -> str:
        """The first `limit` ranges of records stored more than once, in the same form."""
        return ranges_of(self._twice, limit)


def few_ranges(kept: str, limit: int = 5) -> str:
    """The first `limit` ranges of a record as text, and where to find the others."""
    cut = _MORE.search(kept)
    ranges = _MORE.sub("", kept).split(", ")
    rest = max(len(ranges) - limit, 0) + (int(cut[1]) if cut else 0)
    text = ", ".join(ranges[:limit])
    if rest <= 0:
        return text
    text += f" and {rest:,} more {'range' if rest == 1 else 'ranges'}"
    if len(ranges) <= limit:
        return text
    return f"{text}; {f'the first {len(ranges):,}' if cut else 'all'} are in trials.jsonl"


def ranges_of(which: npt.NDArray[np.bool_], limit: int = MOST_RANGES) -> str:
    """The first `limit` ranges of true positions, as "17-516, 900"; empty if none is."""
    edges = np.diff(np.concatenate(([False], which, [False])).astype(np.int8))
    firsts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    pairs = zip(firsts[:limit].tolist(), (ends[:limit] - 1).tolist(), strict=True)
    text = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in pairs)
    rest = firsts.size - limit
    return text + (f" and {rest} more" if rest > 0 else "")
