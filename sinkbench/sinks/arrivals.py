"""When records arrived in a sink: watches, and times that are derived from sequence numbers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
# Share of the records for which a resolution holds.
USUAL = 0.95


@dataclass(frozen=True)
class Arrivals:
    """Some records of a load, one value per record, in microseconds since the epoch; NaN is unknown. `resolution_us` is
    the uncertainty of `stored_us` for 95 % of the records. `searchable_us`, when a search would find them, is None if
    that is `stored_us`.
    """

    due_us: Numbers
    stored_us: Numbers
    resolution_us: float
    searchable_us: Numbers | None = None
    searchable_resolution_us: float | None = None


class ArrivalWatch(AbstractContextManager["ArrivalWatch"], Protocol):
    """Records, between entering and leaving, what the sink itself does not keep."""

    def read(self, run: str, one_in: int) -> Arrivals:
        """The records of `run` whose `bench.seq` is a multiple of `one_in`, after leaving and settling."""


def clock_offset(asked: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """How far a server's clock is ahead of this machine's, and the resolution of the corrected time, in microseconds.
    Each entry of `asked` is this machine's time, the server's, and this machine's again; the quickest one counts (F.
    Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989). A difference within its round trip
    is 0, with the resolution of a clock, 1 microsecond.
    """
    reach, offset = min(((after - before) / 2, theirs - (before + after) / 2) for before, theirs, after in asked)
    return (0.0, 1.0) if abs(offset) <= reach else (offset, reach)


class SeqNoTimes:
    """Times of one shard's operations, from readings of its highest sequence number. Numbers begin at 0. Operation s
    happened between the last reading below s and the first that reached s.
    """

    def __init__(self, times_us: Sequence[float], highest: Sequence[float]) -> None:
        """`highest` are the readings at `times_us`, in order; -1 for an empty shard, and never falling."""
        self._times = np.asarray(times_us, dtype=np.float64)
        self._highest = np.maximum.accumulate(np.asarray(highest, dtype=np.float64)) if len(highest) else np.empty(0)

    def at(self, numbers: npt.ArrayLike, *, at_once: bool = False) -> tuple[Numbers, Numbers]:
        """When the operations with these numbers happened, and the distance of the two readings around each, in
        microseconds. Both are NaN outside the readings. With `at_once`, as in a refresh, all operations between two
        readings happened at one moment, so the middle is the best estimate; otherwise they are spread evenly.
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
        """Half the distance of the readings around a record, for 95 % of the records; NaN if there are none."""
        known = widths[np.isfinite(widths)]
        return float(np.quantile(known, USUAL)) / 2 if known.size else float("nan")
