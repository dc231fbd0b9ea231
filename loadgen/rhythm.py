"""The schedule of a load: even, or in the rhythm in which the records of a topic were written."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

from loadgen.dataset.store import Dataset
from loadgen.errors import OptionsError
from loadgen.options import Load
from loadgen.schedule import Schedule

__all__ = ["RecordedSchedule", "Timetable", "schedule_of"]


class Timetable(Protocol):
    """When each record of a load is due; records are numbered from 0. Methods as of `loadgen.schedule.Schedule`."""

    def due_us(self, first: int, count: int) -> list[int]: ...
    def one_due_us(self, record: int) -> int: ...
    def due_count(self, now_us: int) -> int: ...
    def wait_seconds(self, record: int, now_us: int) -> float: ...


def schedule_of(load: Load, dataset: Dataset | None, start_us: int) -> Timetable | None:
    """The schedule of a load that begins at `start_us`; None if it is as fast as the broker acknowledges.

    Raises OptionsError if it is to have the rhythm of records that have none.
    """
    if load.pace == "even":
        return None if load.rate is None else Schedule(load.rate, start_us)
    times = None if dataset is None else dataset.times_ms
    if times is None or times[-1] <= times[0]:
        raise OptionsError(
            "pace: found recorded, but the records have no times to follow; name a topic whose records were written at"
            " different times, or leave it out"
        )
    return RecordedSchedule(times, load.rate, start_us, load.first_seq)


class RecordedSchedule:
    """Due times with the gaps between the records of a topic; after the last one, a mean gap, and again from the first.

    Record 0 is due at the start.
    """

    def __init__(self, times_ms: npt.NDArray[np.int64], rate: float | None, start_us: int, first_seq: int = 0) -> None:
        """
        Args:
            times_ms: when each record was written, in order, at least two, not all at one time.
            rate: records per second, on average, to which the gaps are stretched; None leaves them as they were.
            start_us: when the first record is due, in microseconds since the epoch.
            first_seq: the load's first `bench.seq`.
        """
        offsets = (times_ms - times_ms[0]) * 1000.0
        mean_gap = float(offsets[-1]) / (len(offsets) - 1)
        stretch = 1.0 if rate is None else 1e6 / rate / mean_gap
        self._offsets_us = offsets * stretch
        self._round_us = len(offsets) * mean_gap * stretch
        self._first = first_seq % len(offsets)
        self._zero_us = start_us - float(self._offsets_us[self._first])

    def due_us(self, first: int, count: int) -> list[int]:
        """Due times of the records `first` to `first + count - 1`, in whole microseconds since the epoch."""
        rounds, places = np.divmod(np.arange(first, first + count) + self._first, len(self._offsets_us))
        due = self._zero_us + rounds * self._round_us + self._offsets_us[places]
        return [int(each) for each in np.ceil(due).tolist()]

    def one_due_us(self, record: int) -> int:
        """The due time of one record, as of `due_us`."""
        return self.due_us(record, 1)[0]

    def due_count(self, now_us: int) -> int:
        """Records due by `now_us`."""
        rounds = math.floor((now_us - self._zero_us) / self._round_us)
        within = now_us - self._zero_us - rounds * self._round_us
        count = rounds * len(self._offsets_us) + int(np.searchsorted(self._offsets_us, within, side="right"))
        count = max(0, count - self._first)
        # Sums of large numbers round, and may be off by a little.
        while self.one_due_us(count) <= now_us:
            count += 1
        while count > 0 and self.one_due_us(count - 1) > now_us:
            count -= 1
        return count

    def wait_seconds(self, record: int, now_us: int) -> float:
        """Seconds from `now_us` until `record` is due; 0 if it is."""
        return max(0, self.one_due_us(record) - now_us) / 1e6
