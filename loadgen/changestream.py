"""A load of changes: inserts, updates and deletes of keys, drawn from a seed, and the final state.

All keys are in one list, present ones first. An insert moves an absent key to the end of the present ones, a delete
moves a present one behind them, an update moves none. So only the moves are made one by one, not the draws."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from loadgen.options import Changes, Load
from loadgen.records import Message, RecordMaker, Whole

# A fixed size: the draws of a seed must not depend on the sizes of batches.
DRAWN_AT_ONCE = 4_096
INSERT, UPDATE, DELETE = 0, 1, 2


class ChangeStream:
    """The changes of a load, which depend only on the options and the number of keys.

    Without a present key, an update or delete becomes an insert; without an absent one, an insert becomes an update.
    Inserts and deletes choose keys evenly. An update chooses by `skew`: the k-th of n present keys with a probability
    of about k^-exponent (the density x^-exponent between 1 and n + 1, rounded down), until it is deleted."""

    def __init__(self, changes: Changes, keys: int) -> None:
        self._changes = changes
        self._draws = np.random.Generator(np.random.PCG64(changes.seed))
        # Random, since a sink could profit from any order.
        self._keys: list[int] = self._draws.permutation(keys).tolist()
        self._there = 0

    def blocks(self) -> Iterator[tuple[Whole, npt.NDArray[np.bool_]]]:
        """Yields, for `DRAWN_AT_ONCE` records each, the numbers of their keys and whether they delete them."""
        while True:
            kinds, there = self._kinds()
            draws, most, keys = self._draws.random(DRAWN_AT_ONCE), len(self._keys), self._keys
            skewed = draws if self._changes.skew == "uniform" else _zipf_shares(draws, there, self._changes.exponent)
            # A share just below 1 of a large count may be rounded up to the count.
            taken = np.minimum((np.where(kinds == UPDATE, skewed, draws) * there).astype(np.int64), there - 1)
            absent = np.minimum(there + (draws * (most - there)).astype(np.int64), most - 1)
            chosen = np.where(kinds == INSERT, absent, taken)
            end = np.select([kinds == INSERT, kinds == DELETE], [there, there - 1], chosen)
            found = []
            for one, other in zip(chosen.tolist(), end.tolist(), strict=True):
                found.append(key := keys[one])
                keys[one], keys[other] = keys[other], key
            yield np.array(found, dtype=np.int64), kinds == DELETE

    def _kinds(self) -> tuple[Whole, Whole]:
        """The kind of each record, and the number of present keys before it."""
        shares = np.array([self._changes.inserts, self._changes.updates])
        wanted = np.searchsorted(np.cumsum(shares), self._draws.random(DRAWN_AT_ONCE), side="right")
        kinds, there = wanted.tolist(), [0] * DRAWN_AT_ONCE
        count, most = self._there, len(self._keys)
        for place, kind in enumerate(kinds):
            if count == 0 and kind != INSERT:
                kind = kinds[place] = INSERT
            elif count == most and kind == INSERT:
                kind = kinds[place] = UPDATE
            there[place] = count
            count += (kind == INSERT) - (kind == DELETE)
        self._there = count
        return np.array(kinds, dtype=np.int64), np.array(there, dtype=np.int64)


def _zipf_shares(draws: npt.NDArray[np.float64], count: Whole, exponent: float) -> npt.NDArray[np.float64]:
    """Maps each draw to its rank among `count` keys by Zipf's law, as a share of `count`.

    The inverse of the distribution with the density x^-exponent between 1 and count + 1."""
    end = np.maximum(count, 1) + 1.0
    rest = 1 - exponent
    x = end**draws if abs(rest) < 1e-9 else (1 + draws * (end**rest - 1)) ** (1 / rest)
    shares: npt.NDArray[np.float64] = np.floor(x - 1) / (end - 1)
    # Half a key further, so that rounding does not lead to the key before.
    return shares + 0.5 / (end - 1)


def last_versions(changes: Changes, keys: int, records: int) -> tuple[Whole, npt.NDArray[np.bool_]]:
    """Returns for each key the number of its last record, -1 without any, and whether it is present at the end."""
    last, there = np.full(keys, -1, dtype=np.int64), np.zeros(keys, dtype=np.bool_)
    first = 0
    for numbers, deletes in ChangeStream(changes, keys).blocks():
        if first >= records:
            break
        few = min(len(numbers), records - first)
        # Of several assignments to one place numpy keeps the last.
        last[numbers[:few]] = np.arange(first, first + few)
        there[numbers[:few]] = ~deletes[:few]
        first += few
    return last, there


class ChangeMaker(RecordMaker):
    """Makes the records of a load of changes, in the order of their `seq`."""

    def __init__(self, load: Load, changes: Changes) -> None:
        super().__init__(load)
        self._next_seq = load.first_seq
        self._blocks = ChangeStream(changes, load.keys).blocks()
        self._numbers: Whole = np.empty(0, dtype=np.int64)
        self._deletes: npt.NDArray[np.bool_] = np.empty(0, dtype=np.bool_)

    def batch(self, seq: int, count: int, due_us: int | Sequence[int], sent_us: int) -> list[Message]:
        """See `Maker.batch`. Raises ValueError for a `seq` that does not follow the last batch."""
        if seq != self._next_seq:
            raise ValueError(f"the next record is {self._next_seq}, found {seq}")
        self._next_seq += count
        while len(self._numbers) < count:
            numbers, deletes = next(self._blocks)
            self._numbers, self._deletes = np.append(self._numbers, numbers), np.append(self._deletes, deletes)
        made = self.batch_of(self._numbers[:count], seq, count, due_us, sent_us)
        for place in np.flatnonzero(self._deletes[:count]).tolist():
            made[place]["value"] = None
        self._numbers, self._deletes = self._numbers[count:], self._deletes[count:]
        return made
