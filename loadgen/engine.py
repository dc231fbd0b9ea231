"""Runs a load: makes its records, sends them when they are due, and counts exactly what became of them.

librdkafka reports once on every record that it accepted, and `len(producer)` counts the pending reports. Only failures
call Python code (`delivery.report.only.error`; reports of successes would take a tenth of all CPU time), so at any time

    acknowledged = handed over - failed - len(producer)"""

import math
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loadgen.changestream import ChangeMaker
from loadgen.client import MOST_IN_FLIGHT, MOST_IN_FLIGHT_BYTES, open_producer, prepare_topic
from loadgen.dataset.store import Dataset, DatasetMaker
from loadgen.options import Load
from loadgen.records import LARGEST_BATCH, Maker, Message, RecordMaker
from loadgen.summary import Behind, Progress, Summary

PROGRESS_SECONDS = 1.0
TICK_US = 1_000
LONGEST_WAIT_SECONDS = 0.2
GRACE_SECONDS = 1.0
INTERRUPTED_FLUSH_SECONDS = 5.0
LEFT_OVER = "not acknowledged when the load ended"
REFUSED_WAIT_SECONDS = 0.01
LATE_MS = 10
"""A record is late if it is sent more than this after it was due."""


def run(
    load: Load,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    client_settings: Mapping[str, str] | None = None,
    dataset: Dataset | None = None,
) -> Summary:
    """Produces the records of `load` and waits until each is acknowledged or has failed.

    A record has failed if the broker refused it, if it was not acknowledged within `delivery_timeout_seconds`, or if it
    was still in flight 5 s after an interrupt (`stop`). A load ends early if records fail and none was acknowledged for
    that timeout; with a rate and a duration it ends at the latest 1 s after its duration. Raises UnusableError, before
    anything is produced, if an option, the broker or the topic cannot be used."""
    return _Run(load, on_progress, stop or threading.Event(), client_settings or {}, dataset).to_the_end()


class Schedule:
    """The open-loop schedule: record i is due at start + i / rate, in whole microseconds since the epoch.

    A slow generator or broker moves no due time, so latency from `due_us` has no coordinated omission."""

    def __init__(self, rate: float, start_us: int, asked: int | None = None) -> None:
        """`asked` is the number of records; None if the load is open-ended."""
        self._interval_us, self._start_us, self._asked = 1e6 / rate, start_us, asked or math.inf
        self._end_us = math.inf if asked is None else self.one_due_us(asked - 1) + LATE_MS * 1000
        self._max_us = self._late = self._in_time = 0

    def due_us(self, first: int, count: int) -> list[int]:
        offsets = np.ceil(np.arange(first, first + count, dtype=np.float64) * self._interval_us)
        due: list[int] = (offsets.astype(np.int64) + self._start_us).tolist()
        return due

    def one_due_us(self, record: int) -> int:
        return math.ceil(record * self._interval_us) + self._start_us

    def due_count(self, now_us: int) -> int:
        count = max(0, int((now_us - self._start_us) / self._interval_us) + 1)
        while self.one_due_us(count) <= now_us:
            count += 1
        while count > 0 and self.one_due_us(count - 1) > now_us:
            count -= 1
        return count

    def wait_seconds(self, record: int, now_us: int) -> float:
        """Seconds from `now_us` until `record` is due; 0 if it is."""
        return max(0, self.one_due_us(record) - now_us) / 1e6

    def count_sent(self, due_us: Sequence[int], sent_us: int) -> None:
        """Counts records sent at `sent_us` whose due times, in order, are `due_us`."""
        self._max_us = max(self._max_us, sent_us - due_us[0])
        self._late += bisect_left(due_us, sent_us - LATE_MS * 1000)
        if sent_us <= self._end_us:
            self._in_time += len(due_us)

    def behind(self, sent: int, now_us: int) -> Behind:
        """How far a load that has sent so many records, as were counted, is behind."""
        return Behind(
            max_ms=self._max_us / 1000,
            records_late=self._late,
            late_ms=LATE_MS,
            records_unsent=int(max(0, min(self.due_count(now_us), self._asked) - sent)),
            records_in_time=self._in_time,
        )


class Delivery:
    """The records of one load on their way to one topic."""

    def __init__(self, producer: Any, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.sent = 0
        self.bytes = 0
        self.failed = 0
        self.errors: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        return len(self._producer)

    @property
    def acknowledged(self) -> int:
        return self.sent - self.failed - len(self._producer)

    def hand_over(self, messages: list[Message]) -> None:
        """Passes records to the producer, in order, and empties `messages`. A finally refused record has failed."""
        # Texts are ASCII, and a tombstone has none.
        values: list[Any] = [message["value"] for message in messages]
        self.bytes += sum([len(value) for value in values if value is not None])
        while messages:
            accepted = self._producer.produce_batch(self._topic, messages, on_delivery=self._failed)
            self.sent += accepted
            messages[:] = self._refused(messages) if accepted < len(messages) else ()
            if messages:
                self._producer.poll(REFUSED_WAIT_SECONDS)

    def _refused(self, messages: list[Message]) -> list[Message]:
        """Returns the refused records that may be retried; counts the others as failed."""
        again = []
        for message in messages:
            error: Any = message.pop("_error", None)
            if error is not None and error.name() == "_QUEUE_FULL":
                again.append(message)
            elif error is not None:
                self.sent += 1
                self._failed(error, None)
        return again

    def serve(self, timeout_seconds: float) -> None:
        """Serves delivery reports; returns after some, or after the timeout."""
        # Rounded up: the client rounds down to whole ms, and without a wait the caller would spin.
        self._producer.poll(math.ceil(timeout_seconds * 1000) / 1000)

    def flush(self, timeout_seconds: float) -> int:
        return int(self._producer.flush(timeout_seconds))

    def abandon(self) -> None:
        self._producer.purge()
        if left := self.flush(1):
            self.failed += left
            self.errors[LEFT_OVER] += left

    def _failed(self, error: Any, _message: Any) -> None:
        self.failed += 1
        name = str(error.name())
        self.errors[LEFT_OVER if name in {"_PURGE_QUEUE", "_PURGE_INFLIGHT"} else str(error.str())] += 1


class _Run:
    def __init__(
        self,
        load: Load,
        on_progress: Callable[[Progress], None] | None,
        stop: threading.Event,
        settings: Mapping[str, str],
        dataset: Dataset | None,
    ) -> None:
        self.load, self.on_progress, self.stop = load, on_progress, stop
        self.cpu_before = time.process_time()
        self.maker: Maker
        if dataset is not None:
            self.maker = DatasetMaker(dataset, load.run)
        else:
            self.maker = RecordMaker(load) if load.changes is None else ChangeMaker(load, load.changes)
        prepare_topic(load, settings, self.maker.largest_bytes)
        self.delivery = Delivery(open_producer(load, settings, self.maker.largest_bytes), load.topic)
        self._most_in_flight = max(1, min(MOST_IN_FLIGHT, MOST_IN_FLIGHT_BYTES // self.maker.mean_bytes))
        self._made = 0
        self._asked: float = load.asked or math.inf
        # Due and sent times: the wall clock's at the start plus monotonic time. No step of the wall clock moves them.
        self._start = time.monotonic()
        self._wall_minus_monotonic_ns = time.time_ns() - time.monotonic_ns() - round(1000 * load.clock_ahead_us)
        self._schedule = None if load.rate is None else Schedule(load.rate, self._now_us(), load.asked)
        self._next_tick_us = 0
        self._progress_at, self._progress_acknowledged = self._start, 0
        self._acknowledged_at, self._last_acknowledged = self._start, 0
        self._stopped: str | None = None

    def to_the_end(self) -> Summary:
        self._send()
        interrupted = self.stop.is_set()
        # The client reports on a record by its timeout; the extra second is for the report.
        allowed = INTERRUPTED_FLUSH_SECONDS if interrupted else self.load.delivery_timeout_seconds + 1
        give_up = time.monotonic() + allowed
        while self.delivery.in_flight and time.monotonic() < give_up:
            self.delivery.flush(min(LONGEST_WAIT_SECONDS, max(0, give_up - time.monotonic())))
            self._show_progress()
            if self.stop.is_set() and not interrupted:
                interrupted = True
                give_up = min(give_up, time.monotonic() + INTERRUPTED_FLUSH_SECONDS)
        elapsed = time.monotonic() - self._start
        if self.delivery.in_flight:
            self.delivery.abandon()
        return self._summary(elapsed, interrupted)

    def _send(self) -> None:
        grace = 0 if self._schedule is None else GRACE_SECONDS
        deadline = self._start + (self.load.duration_seconds or math.inf) + grace
        while self._made < self._asked and time.monotonic() < deadline:
            if self.stop.is_set() or self._must_give_up():
                return
            if (count := self._next_count()) > 0:
                self._send_batch(count)
            self._show_progress()

    def _next_count(self) -> int:
        """Returns the number of records to send now; if it is 0, this has waited a little."""
        room = self._most_in_flight - self.delivery.in_flight
        if room < min(LARGEST_BATCH, max(1, self._most_in_flight // 4)):
            self.delivery.serve(LONGEST_WAIT_SECONDS)
            return 0
        longest = self.maker.longest_batch(self.load.first_seq + self._made)
        count = int(min(room, longest, self._asked - self._made))
        if self._schedule is None:
            return count
        now_us = self._now_us()
        wait = max(self._next_tick_us - now_us, 0) / 1e6 or self._schedule.wait_seconds(self._made, now_us)
        if wait:
            self.delivery.serve(min(wait, LONGEST_WAIT_SECONDS))
            return 0
        due = self._schedule.due_count(now_us) - self._made
        if due <= count:
            # At high rates, batches are sent a little late: single records would take ten times the CPU time.
            self._next_tick_us = now_us + TICK_US
        return min(count, due)

    def _send_batch(self, count: int) -> None:
        sent_us = self._now_us()
        seq = self.load.first_seq + self._made
        due_us: int | list[int] = sent_us
        if self._schedule is not None:
            due_us = self._schedule.due_us(self._made, count)
            self._schedule.count_sent(due_us, sent_us)
        self._made += count
        self.delivery.hand_over(self.maker.batch(seq, count, due_us, sent_us))
        self.delivery.serve(0)

    def _must_give_up(self) -> bool:
        acknowledged, now = self.delivery.acknowledged, time.monotonic()
        if acknowledged > self._last_acknowledged:
            self._last_acknowledged, self._acknowledged_at = acknowledged, now
            return False
        silent = now - self._acknowledged_at
        if not self.delivery.failed or silent < self.load.delivery_timeout_seconds:
            return False
        self._stopped = f"records fail, and none was acknowledged for {self.load.delivery_timeout_seconds:g} s"
        return True

    def _show_progress(self) -> None:
        now = time.monotonic()
        if self.on_progress is None or now - self._progress_at < PROGRESS_SECONDS:
            return
        sent, acknowledged, failed = self.delivery.sent, self.delivery.acknowledged, self.delivery.failed
        rate = round((acknowledged - self._progress_acknowledged) / (now - self._progress_at), 1)
        self._progress_at, self._progress_acknowledged = now, acknowledged
        self.on_progress(Progress(sent=sent, acknowledged=acknowledged, failed=failed, records_per_second=rate))

    def _summary(self, elapsed_seconds: float, interrupted: bool) -> Summary:
        load, delivery = self.load, self.delivery
        sent, failed = delivery.sent, delivery.failed
        acknowledged = sent - failed
        mean_bytes = delivery.bytes / sent if sent else 0.0
        return Summary(
            run=load.run,
            topic=load.topic,
            first_seq=load.first_seq,
            asked=load.asked,
            sent=sent,
            acknowledged=acknowledged,
            failed=failed,
            errors=dict(delivery.errors),
            elapsed_seconds=round(elapsed_seconds, 6),
            records_per_second=round(acknowledged / elapsed_seconds, 1),
            megabytes_per_second=round(acknowledged * mean_bytes / elapsed_seconds / 1e6, 3),
            bytes=delivery.bytes,
            cpu_seconds=round(time.process_time() - self.cpu_before, 3),
            rate_asked=load.rate,
            behind=None if self._schedule is None else self._schedule.behind(sent, self._now_us()),
            interrupted=interrupted,
            stopped=self._stopped,
        )

    def _now_us(self) -> int:
        return (time.monotonic_ns() + self._wall_minus_monotonic_ns) // 1000
