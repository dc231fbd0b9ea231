"""When records arrived in a sink: what a look at them tells, and how times follow from sequence numbers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["ArrivalWatch", "Arrivals", "SeqNoTimes", "clock_offset"]

Numbers = npt.NDArray[np.float64]
# Of 20 records 19 are known at least so well.
USUAL = 0.95


@dataclass(frozen=True)
class Arrivals:
    """Some records of a load: when each was due and when it arrived, in microseconds since the epoch.

    Attributes:
        due_us: one a record.
        stored_us: the same for when it was stored; NaN where that is not known.
        resolution_us: to within how many microseconds `stored_us` is known, of 19 in 20 records.
        searchable_us, searchable_resolution_us: the same for when a search would find it; None in a sink where that is
            when it is stored.
    """

    due_us: Numbers
    stored_us: Numbers
    resolution_us: float
    searchable_us: Numbers | None = None
    searchable_resolution_us: float | None = None


class ArrivalWatch(AbstractContextManager["ArrivalWatch"], Protocol):
    """Takes down, while records arrive, what the sink itself does not keep; between entering and leaving."""

    def read(self, run: str, one_in: int) -> Arrivals:
        """The records of `run` whose `bench.seq` is a multiple of `one_in`; after it was left, and the sink settled."""


def clock_offset(asked: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """How far a server's clock is ahead of this machine's.

    By the quickest of some questions, whose answer was given somewhere in the middle (F. Cristian, "Probabilistic clock
    synchronization", Distributed Computing 3, 1989). A difference that the way there and back explains is none.

    Args:
        asked: for each question the time by this machine's clock, by the server's, and by this machine's again, in
            microseconds since the epoch.

    Returns:
        The difference, and to within what times of the server are known after that; both in microseconds. Without a
        difference that is the microsecond that clocks count.
    """
    reach, offset = min(((after - before) / 2, theirs - (before + after) / 2) for before, theirs, after in asked)
    return (0.0, 1.0) if abs(offset) <= reach else (offset, reach)


class SeqNoTimes:
    """When each operation of one shard happened, from readings of the shard's highest sequence number.

    A shard numbers its operations from 0. The number s was given between the last reading below s and the first that
    had come to s.
    """

    def __init__(self, times_us: Sequence[float], highest: Sequence[float]) -> None:
        """`times_us`: of the readings, in order. `highest`: what was read, -1 of an empty shard; it never falls."""
        self._times = np.asarray(times_us, dtype=np.float64)
        self._highest = np.maximum.accumulate(np.asarray(highest, dtype=np.float64)) if len(highest) else np.empty(0)

    def at(self, numbers: npt.ArrayLike, *, at_once: bool = False) -> tuple[Numbers, Numbers]:
        """When operations with these numbers happened.

        Args:
            numbers: of operations of this shard.
            at_once: whether all between two readings happened at one moment, as a refresh makes them searchable, so
                that the middle is the best guess; else evenly.

        Returns:
            The times in microseconds, and how far apart the two readings were between which each lies. Both are NaN for
            numbers beyond the last reading, and for those that the first had already come to.
        """
        wanted = np.asarray(numbers, dtype=np.float64)
        times = np.full(wanted.shape, np.nan)
        widths = np.full(wanted.shape, np.nan)
        after = np.searchsorted(self._highest, wanted, side="left")
        known = (after > 0) & (after < self._highest.size)
        later, earlier = after[known], after[known] - 1
        begin, width = self._times[earlier], self._times[later] - self._times[earlier]
        share = (wanted[known] - self._highest[earlier]) / (self._highest[later] - self._highest[earlier])
        times[known] = begin + width * (0.5 if at_once else share)
        widths[known] = width
        return times, widths

    @staticmethod
    def resolution_us(widths: Numbers) -> float:
        """Half of the distance between the readings around a record, of 19 in 20 records; NaN of none."""
        known = widths[np.isfinite(widths)]
        return float(np.quantile(known, USUAL)) / 2 if known.size else float("nan")
