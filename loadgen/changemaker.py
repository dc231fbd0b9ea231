"""Makes the records of a load of changes: of keys that are drawn, and tombstones where one deletes its key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loadgen.changes import Changes
from loadgen.changestream import ChangeStream
from loadgen.options import Load
from loadgen.records import Message, RecordMaker

__all__ = ["ChangeMaker"]


class ChangeMaker:
    """Makes the records of one load, in the order of their `seq`, as `RecordMaker` makes those of other loads."""

    def __init__(self, load: Load, changes: Changes) -> None:
        """Raises OptionsError as `RecordMaker` does."""
        self._records = RecordMaker(load)
        self.mean_bytes, self.largest_bytes = self._records.mean_bytes, self._records.largest_bytes
        self._next_seq = load.first_seq
        self._blocks = ChangeStream(changes, load.keys).blocks()
        self._numbers: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._deletes: npt.NDArray[np.bool_] = np.empty(0, dtype=np.bool_)

    def longest_batch(self, seq: int) -> int:
        """The most records from `seq` on for one call of `batch`."""
        return self._records.longest_batch(seq)

    def batch(self, seq: int, count: int, due_us: int | Sequence[int], sent_us: int) -> list[Message]:
        """Makes the records `seq` to `seq + count - 1`, which follow those of the call before; see `RecordMaker.batch`.

        Raises ValueError for a `seq` that does not follow: what is there depends on all records before it.
        """
        if seq != self._next_seq:
            raise ValueError(f"the next record is {self._next_seq}, found {seq}")
        self._next_seq += count
        while len(self._numbers) < count:
            numbers, deletes = next(self._blocks)
            self._numbers = np.concatenate([self._numbers, numbers])
            self._deletes = np.concatenate([self._deletes, deletes])
        numbers, self._numbers = self._numbers[:count], self._numbers[count:]
        deletes, self._deletes = self._deletes[:count], self._deletes[count:]
        made = self._records.batch_of(numbers, seq, due_us, sent_us)
        for place in np.flatnonzero(deletes).tolist():
            made[place]["value"] = None
        return made
