"""The open-loop schedule: when each record is due, and how far a load has fallen behind.

With a rate, record i is due at start + i / rate, whatever became of the records before it. A slow generator or broker
moves no due time: records are sent late, and counted as such. So latency from `due_us` includes the waiting (no
coordinated omission).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

__all__ = ["LATE_MS", "Lateness", "Schedule"]

LATE_MS = 10
"""A record is late if it is sent more than this after it was due."""


class Schedule:
    """The due times of a load's records, which are numbered from 0."""

    def __init__(self, rate: float, start_us: int) -> None:
        """`rate` is in records per second; record 0 is due at `start_us`, in microseconds since the epoch."""
        self._interval_us = 1e6 / rate
        self._start_us = start_us

    def due_us(self, first: int, count: int) -> list[int]:
        """Due times of the records `first` to `first + count - 1`, in whole microseconds since the epoch."""
        offsets = np.ceil(np.arange(first, first + count, dtype=np.float64) * self._interval_us)
        return [int(each) for each in (offsets.astype(np.int64) + self._start_us).tolist()]

    def one_due_us(self, record: int) -> int:
        """The due time of one record, as of `due_us`."""
        return math.ceil(record * self._interval_us) + self._start_us

    def due_count(self, now_us: int) -> int:
        """Records due by `now_us`."""
        if now_us < self._start_us:
            return 0
        count = int((now_us - self._start_us) / self._interval_us) + 1
        # The division rounds, and may be off by one.
        while self.one_due_us(count) <= now_us:
            count += 1
        while self.one_due_us(count - 1) > now_us:
            count -= 1
        return count

    def wait_seconds(self, record: int, now_us: int) -> float:
        """Seconds from `now_us` until `record` is due; 0 if it is."""
        return max(0, self.one_due_us(record) - now_us) / 1e6


class Lateness:
    """How far behind its schedule a load was sent."""

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
