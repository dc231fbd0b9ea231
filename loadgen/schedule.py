"""The open-loop schedule: when each record is due, and how far a load is behind.

Due times depend on the rate, or a topic's timestamps, only. A slow generator or broker sends late, but moves no due
time, so latency from `due_us` includes the waiting (no coordinated omission)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loadgen.dataset.store import Dataset
from loadgen.errors import OptionsError
from loadgen.options import Load

LATE_MS = 10
"""A record is late if it is sent more than this after it was due."""


class Schedule(ABC):
    """The due times of a load's records, which are numbered from 0, in microseconds since the epoch."""

    @abstractmethod
    def due_us(self, first: int, count: int) -> list[int]:
        """Due times of the records `first` to `first + count - 1`, in whole microseconds."""

    @abstractmethod
    def _about_due(self, now_us: int) -> int:
        """Records due by `now_us`, up to rounding."""

    def one_due_us(self, record: int) -> int:
        return self.due_us(record, 1)[0]

    def due_count(self, now_us: int) -> int:
        count = max(0, self._about_due(now_us))
        while self.one_due_us(count) <= now_us:
            count += 1
        while count > 0 and self.one_due_us(count - 1) > now_us:
            count -= 1
        return count

    def wait_seconds(self, record: int, now_us: int) -> float:
        """Seconds from `now_us` until `record` is due; 0 if it is."""
        return max(0, self.one_due_us(record) - now_us) / 1e6


def schedule_of(load: Load, dataset: Dataset | None, start_us: int) -> Schedule | None:
    """Returns the schedule from `start_us` on; None without rate or rhythm. Raises OptionsError without timestamps."""
    if load.pace == "even":
        return None if load.rate is None else EvenSchedule(load.rate, start_us)
    times = None if dataset is None else dataset.times_ms
    if times is None or times[-1] <= times[0]:
        raise OptionsError(
            "pace: found recorded, but the records have no times to follow; name a topic whose records were written at"
            " different times, or leave it out"
        )
    return RecordedSchedule(times, load.rate, start_us, load.first_seq)


class EvenSchedule(Schedule):
    """Record i is due at start + i / rate."""

    def __init__(self, rate: float, start_us: int) -> None:
        self._interval_us = 1e6 / rate
        self._start_us = start_us

    def due_us(self, first: int, count: int) -> list[int]:
        offsets = np.ceil(np.arange(first, first + count, dtype=np.float64) * self._interval_us)
        due: list[int] = (offsets.astype(np.int64) + self._start_us).tolist()
        return due

    def one_due_us(self, record: int) -> int:
        return math.ceil(record * self._interval_us) + self._start_us

    def _about_due(self, now_us: int) -> int:
        return int((now_us - self._start_us) / self._interval_us) + 1


class RecordedSchedule(Schedule):
    """Due times with the gaps between a topic's records, repeated after a mean gap. Record 0 is due at the start."""

    def __init__(self, times_ms: npt.NDArray[np.int64], rate: float | None, start_us: int, first_seq: int = 0) -> None:
        """`times_ms` are at least two different times, in order. `rate` scales the gaps to a mean rate."""
        offsets = (times_ms - times_ms[0]) * 1000.0
        mean_gap = float(offsets[-1]) / (len(offsets) - 1)
        stretch = 1.0 if rate is None else 1e6 / rate / mean_gap
        self._offsets_us = offsets * stretch
        self._round_us = len(offsets) * mean_gap * stretch
        self._first = first_seq % len(offsets)
        self._zero_us = start_us - float(self._offsets_us[self._first])

    def due_us(self, first: int, count: int) -> list[int]:
        rounds, places = np.divmod(np.arange(first, first + count) + self._first, len(self._offsets_us))
        due = self._zero_us + rounds * self._round_us + self._offsets_us[places]
        return [int(each) for each in np.ceil(due).tolist()]

    def _about_due(self, now_us: int) -> int:
        rounds = math.floor((now_us - self._zero_us) / self._round_us)
        within = now_us - self._zero_us - rounds * self._round_us
        within_round = int(np.searchsorted(self._offsets_us, within, side="right"))
        return rounds * len(self._offsets_us) + within_round - self._first


class Lateness:
    def __init__(self, last_due_us: int | None = None) -> None:
        """`last_due_us` is when the load's last record is due; None if the load is open-ended."""
        self._end_us = math.inf if last_due_us is None else last_due_us + LATE_MS * 1000
        self.max_us = 0
        self.records_late = 0
        self.records_in_time = 0

    def add(self, due_us: Sequence[int], sent_us: int) -> None:
        """Counts records sent at `sent_us` whose due times, in order, are `due_us`."""
        self.max_us = max(self.max_us, sent_us - due_us[0])
        self.records_late += bisect_left(due_us, sent_us - LATE_MS * 1000)
        if sent_us <= self._end_us:
            self.records_in_time += len(due_us)
