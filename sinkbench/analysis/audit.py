"""The audit: how many records of a load were lost, stored and duplicated, and which ones; of changes, by key. And
whether six counts of the same records agree, from the generator to the sink."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sinkbench.results import Audit, Reconciliation

# Limits the ranges in a record, so that a line of trials.jsonl stays below a megabyte whatever was lost.
MOST_RANGES = 10_000
# Follows the last range in a record if there are more.
_MORE = re.compile(r" and (\d+) more$")


class SeqAudit:
    """Counts the records of a load by `seq`, from 0 to `expected_count - 1`, from rows in any chunks and order."""

    def __init__(self, expected_count: int) -> None:
        self.expected_count = expected_count
        self._seen = np.zeros(expected_count, dtype=np.bool_)
        self._twice = np.zeros(expected_count, dtype=np.bool_)
        self._dead = np.zeros(expected_count, dtype=np.bool_)
        self._stored = 0
        self._foreign = 0

    def add(self, seqs: npt.ArrayLike) -> None:
        """Adds the `seq` of rows, all integers."""
        chunk = np.asarray(seqs, dtype=np.int64)
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


STALE, MISSING, NOT_DELETED = "stale", "missing", "not_deleted"
MOST_NAMED = 5


class VersionAudit:
    """Compares the rows of a sink, in any chunks and order, with the expected result of a load of changes.

    A row belongs to a key and, by its `seq`, to a version. A key is stale if a row is not its last version, and not
    deleted if it has a row after its deletion. Further rows of a key are duplicates; those of unknown keys foreign."""

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
        """Adds rows by the key that each has in the sink."""
        self.add_places(np.array([self._places.get(key, -1) for key in keys], dtype=np.int64), seqs)

    def add_places(self, found: npt.NDArray[np.int64], seqs: npt.NDArray[np.int64]) -> None:
        """Adds rows by the places of their keys; -1 is a row of no key."""
        ours = found >= 0
        places = found[ours]
        np.add.at(self._rows, places, 1)
        self._stale[places[(seqs[ours] != self._last[places]) & self._there[places]]] = True
        self._foreign += len(found) - len(places)

    def add_foreign(self, rows: int) -> None:
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


# In the order in which a record passes them.
WORDS = {
    "sent": "sent",
    "acknowledged": "acknowledged",
    "in_topic": "in the topic",
    "consumed": "committed as read",
    "put": "put to the sink by the tasks",
    "stored": "stored",
}


def reconcile(counts: Reconciliation) -> dict[str, bool]:
    """The disagreements of one trial in words, and whether they make it invalid: each count against the next known one.
    More puts than reads, or more stored than put or read, come from a restarted task: a valid trial with duplicates."""
    known = [(name, value) for name in WORDS if (value := getattr(counts, name)) is not None]
    found = {}
    for (before, earlier), (after, later) in pairwise(known):
        if earlier == later:
            continue
        twice = (later > earlier and after in ("put", "stored")) or (
            # Put twice and stored once, as by an upsert.
            (before, after) == ("put", "stored") and later == counts.in_topic
        )
        text = f"{earlier:,} {WORDS[before]}, but {later:,} {WORDS[after]}{' (some twice)' if twice else ''}"
        found[text] = not twice
    # A count in between that is too high must not hide that the sink lacks records.
    whole, stored = counts.in_topic, counts.stored
    if whole is not None and stored is not None and stored < whole:
        found[f"{whole:,} {WORDS['in_topic']}, but {stored:,} {WORDS['stored']}"] = True
    return found
