"""The audit: which records of a load arrived, which did not, and how many arrived more than once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sinkbench.results import Audit

__all__ = ["SeqAudit"]


class SeqAudit:
    """Counts the records of a load by their `seq`, which runs from 0 to `expected_count - 1` without gaps.

    It is fed with what the sink holds, in chunks of any size and order. A mark a record is all it keeps (one byte
    each): as every row is either the first of its `seq` or a duplicate, the number of duplicates follows from the
    number of rows, exactly, however often one record was stored.
    """

    def __init__(self, expected_count: int) -> None:
        if expected_count < 0:
            raise ValueError(f"expected_count must not be negative, found {expected_count}")
        self.expected_count = expected_count
        self._seen = np.zeros(expected_count, dtype=np.bool_)
        self._stored = 0
        self._foreign = 0

    def add(self, seqs: npt.ArrayLike) -> None:
        """Takes in the `seq` of some rows that the sink holds: a list or array of whole numbers."""
        chunk = np.asarray(seqs)
        if chunk.size == 0:
            return
        if chunk.ndim != 1 or not np.issubdtype(chunk.dtype, np.integer):
            raise ValueError(f"seqs must be one list of whole numbers, found {chunk.dtype} of shape {chunk.shape}")
        ours = chunk[(chunk >= 0) & (chunk < self.expected_count)]
        self._seen[ours] = True
        self._stored += int(chunk.size)
        self._foreign += int(chunk.size - ours.size)

    def add_foreign(self, rows: int) -> None:
        """Takes in so many rows that are none of the load's: of another load, or without a `seq`."""
        if rows < 0:
            raise ValueError(f"rows must not be negative, found {rows}")
        self._stored += rows
        self._foreign += rows

    @property
    def stored(self) -> int:
        """All rows that the sink holds."""
        return self._stored

    @property
    def lost(self) -> int:
        """Records that the sink does not hold."""
        return self.expected_count - int(np.count_nonzero(self._seen))

    @property
    def duplicates(self) -> int:
        """Rows beyond the first of their record: a record stored three times makes two."""
        return self._stored - self._foreign - int(np.count_nonzero(self._seen))

    @property
    def foreign(self) -> int:
        """Rows whose `seq` is not one of the load's."""
        return self._foreign

    def result(self) -> Audit:
        """The counts as they go into the results."""
        return Audit(
            produced=self.expected_count,
            stored=self.stored,
            lost=self.lost,
            duplicates=self.duplicates,
            foreign=self.foreign,
        )

    def lost_ranges(self, limit: int = 5) -> str:
        """The first `limit` ranges of lost records, such as "17-516, 900"; empty if none is lost."""
        edges = np.diff(np.concatenate(([True], self._seen, [True])).astype(np.int8))
        firsts, ends = np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)
        pairs = zip(firsts[:limit].tolist(), (ends[:limit] - 1).tolist(), strict=True)
        text = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in pairs)
        rest = firsts.size - limit
        return text + (f" and {rest} more" if rest > 0 else "")
