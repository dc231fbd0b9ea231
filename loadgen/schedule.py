"""The open-loop schedule: when each record is due, and how far behind the load has fallen.

With a rate, record i of a load is due at start + i / rate, whatever became of the records before it. A generator or a
broker that is slow moves no due time: the records are sent late, and that is counted here. So a latency that is
measured from `due_us` does not leave out the waiting (no coordinated omission).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

__all__ = ["LATE_MS", "Lateness", "Schedule"]

LATE_MS = 10
"""A record counts as late if it is sent more than this after it was due."""


class Schedule:
    """The due times of a load's records. Record numbers count from 0 within the load."""

    def __init__(self, rate: float, start_us: int) -> None:
        """`rate` in records per second; `start_us`, when record 0 is due, in microseconds since the epoch."""
        self._interval_us = 1e6 / rate
        self._start_us = start_us

    def due_us(self, first: int, count: int) -> list[int]:
        """When the records `first` to `first + count - 1` are due, in whole microseconds since the epoch."""
        offsets = np.ceil(np.arange(first, first + count, dtype=np.float64) * self._interval_us)
        return [int(each) for each in (offsets.astype(np.int64) + self._start_us).tolist()]

    def one_due_us(self, record: int) -> int:
        """When the record of that number is due, as `due_us` has it."""
        return math.ceil(record * self._interval_us) + self._start_us

    def due_count(self, now_us: int) -> int:
        """How many records are due at `now_us`."""
        if now_us < self._start_us:
            return 0
        count = int((now_us - self._start_us) / self._interval_us) + 1
        # The division rounds: put right what it got wrong by one.
        while self.one_due_us(count) <= now_us:
            count += 1
        while self.one_due_us(count - 1) > now_us:
            count -= 1
        return count

    def wait_seconds(self, record: int, now_us: int) -> float:
        """How long it is from `now_us` until `record` is due; 0 if it is."""
        return max(0, self.one_due_us(record) - now_us) / 1e6


class Lateness:
    """How far behind its schedule a load was sent."""

    def __init__(self, last_due_us: int | None = None) -> None:
        """`last_due_us`: when the load's last record is due; None if it has none."""
        self._end_us = math.inf if last_due_us is None else last_due_us + LATE_MS * 1000
        self.max_us = 0
        self.records_late = 0
        self.records_in_time = 0

    def add(self, due_us: Sequence[int], sent_us: int) -> None:
        """Counts records that were sent at `sent_us`; `due_us` in order."""
        self.max_us = max(self.max_us, sent_us - due_us[0])
        self.records_late += bisect_left(due_us, sent_us - LATE_MS * 1000)
        if sent_us <= self._end_us:
            self.records_in_time += len(due_us)
