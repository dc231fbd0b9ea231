"""The audit of a load of changes: whether the sink has the last version of every key, and none that was deleted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sinkbench.results import Audit

STALE, MISSING, NOT_DELETED = "stale", "missing", "not_deleted"
MOST_NAMED = 5


class VersionAudit:
    """Compares the rows of a sink, in any chunks and order, with the expected result of a load of changes.

    A row belongs to a key and, by its `seq`, to a version. A key is stale if a row is not its last version, and not
    deleted if it has a row after its deletion. Further rows of a key are duplicates; rows of unknown keys are foreign.
    """

    def __init__(
        self, produced: int, keys: Sequence[str], last: npt.NDArray[np.int64], there: npt.NDArray[np.bool_]
    ) -> None:
        """`last` has the `seq` of each key's last record (-1: none), `there` whether the key exists in the end."""
        self._produced = produced
        self._keys = keys
        self._places = {key: place for place, key in enumerate(keys) if last[place] >= 0}
        self._last = last
        self._there = there
        self._rows = np.zeros(len(keys), dtype=np.int64)
        self._stale = np.zeros(len(keys), dtype=np.bool_)
        self._foreign = 0

    def add(self, keys: Sequence[str], seqs: npt.NDArray[np.int64]) -> None:
        found = np.array([self._places.get(key, -1) for key in keys], dtype=np.int64)
        ours = found >= 0
        places = found[ours]
        np.add.at(self._rows, places, 1)
        self._stale[places[(seqs[ours] != self._last[places]) & self._there[places]]] = True
        self._foreign += len(found) - len(places)

    def add_foreign(self, rows: int) -> None:
        """Adds rows of another load; ValueError for a negative number."""
        if rows < 0:
            raise ValueError(f"rows must not be negative, found {rows}")
        self._foreign += rows

    def _wrong(self) -> dict[str, npt.NDArray[np.bool_]]:
        seen = self._rows > 0
        return {STALE: self._stale, MISSING: self._there & ~seen, NOT_DELETED: seen & ~self._there}

    def result(self) -> Audit:
        seen = self._rows > 0
        return Audit(
            produced=self._produced,
            stored=int(self._rows.sum()) + self._foreign,
            lost=0,
            duplicates=int((self._rows[seen] - 1).sum()),
            foreign=self._foreign,
            superseded=self._produced - int(np.count_nonzero(self._there)),
            **{what: int(np.count_nonzero(which)) for what, which in self._wrong().items()},
        )

    def wrong_keys(self, limit: int = MOST_NAMED) -> dict[str, list[str]]:
        """The first `limit` keys that are stale, missing and not deleted, by these words; empty groups are left out."""
        places = {what: np.flatnonzero(which)[:limit].tolist() for what, which in self._wrong().items()}
        return {what: [self._keys[place] for place in found] for what, found in places.items() if found}
