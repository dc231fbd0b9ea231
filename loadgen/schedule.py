"""The open-loop schedule: when each record is due, and how far a load is behind.

Due times depend on the rate only. A slow generator or broker sends late, but moves no due time, so latency from
`due_us` includes the waiting (no coordinated omission)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

LATE_MS = 10
"""A record is late if it is sent more than this after it was due."""


class Schedule:
    """Record i is due at start + i / rate, in whole microseconds since the epoch."""

    def __init__(self, rate: float, start_us: int) -> None:
        self._interval_us = 1e6 / rate
        self._start_us = start_us

    def due_us(self, first: int, count: int) -> list[int]:
        """Due times of the records `first` to `first + count - 1`."""
        offsets = np.ceil(np.arange(first, first + count, dtype=np.float64) * self._interval_us)
        due: list[int] = (offsets.astype(np.int64) + self._start_us).tolist()
        return due

    def one_due_us(self, record: int) -> int:
        return math.ceil(record * self._interval_us) + self._start_us

    def due_count(self, now_us: int) -> int:
        """Records due by `now_us`."""
        count = max(0, int((now_us - self._start_us) / self._interval_us) + 1)
        while self.one_due_us(count) <= now_us:
            count += 1
        while count > 0 and self.one_due_us(count - 1) > now_us:
            count -= 1
        return count

    def wait_seconds(self, record: int, now_us: int) -> float:
        """Seconds from `now_us` until `record` is due; 0 if it is."""
        return max(0, self.one_due_us(record) - now_us) / 1e6


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
