"""Runs a load: makes its records, sends them when they are due, and waits for their reports."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadgen.changestream import ChangeMaker
from loadgen.client import MOST_IN_FLIGHT, MOST_IN_FLIGHT_BYTES, open_producer
from loadgen.dataset.maker import DatasetMaker
from loadgen.dataset.store import Dataset
from loadgen.delivery import Delivery
from loadgen.forms import DOCUMENT
from loadgen.options import Load
from loadgen.records import LARGEST_BATCH, Maker, RecordMaker
from loadgen.schedule import LATE_MS, Lateness, schedule_of
from loadgen.summary import Behind, Progress, Summary
from loadgen.topic import prepare_topic

PROGRESS_SECONDS = 1.0
TICK_US = 1_000
LONGEST_WAIT_SECONDS = 0.2
GRACE_SECONDS = 1.0
INTERRUPTED_FLUSH_SECONDS = 5.0


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
    anything is produced, if an option, the broker or the topic cannot be used.
    """
    cpu_before = time.process_time()
    maker = _maker_of(load, dataset)
    settings = client_settings or {}
    prepare_topic(load, settings, maker.largest_bytes)
    producer = open_producer(load, settings, maker.largest_bytes)
    # Sizes vary with tombstones and forms other than documents.
    record_bytes = load.record_bytes if load.changes is None and load.form == DOCUMENT else 0
    delivery = Delivery(producer, load.topic, record_bytes)
    return _Run(load, maker, delivery, on_progress, stop or threading.Event(), cpu_before, dataset).to_the_end()


def _maker_of(load: Load, dataset: Dataset | None) -> Maker:
    if dataset is not None:
        return DatasetMaker(dataset, load.run)
    return RecordMaker(load) if load.changes is None else ChangeMaker(load, load.changes)


@dataclass
class _Run:
    load: Load
    maker: Maker
    delivery: Delivery
    on_progress: Callable[[Progress], None] | None
    stop: threading.Event
    cpu_before: float
    dataset: Dataset | None = None

    def __post_init__(self) -> None:
        load = self.load
        room = MOST_IN_FLIGHT_BYTES // self.maker.mean_bytes
        self._most_in_flight = max(1, min(MOST_IN_FLIGHT, room))
        self._made = 0
        self._asked: float = load.asked or math.inf
        # Due and sent times are the wall clock's at the start plus monotonic time, so that no step of the wall clock
        # moves the schedule.
        self._start = time.monotonic()
        self._wall_minus_monotonic_ns = time.time_ns() - time.monotonic_ns()
        self._schedule = schedule_of(load, self.dataset, self._now_us())
        ends = None if self._schedule is None or load.asked is None else self._schedule.one_due_us(load.asked - 1)
        self._lateness = Lateness(ends)
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
            self._lateness.add(due_us, sent_us)
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
        behind = None
        if self._schedule is not None:
            due = self._schedule.due_count(self._now_us())
            behind = Behind(
                max_ms=self._lateness.max_us / 1000,
                records_late=self._lateness.records_late,
                late_ms=LATE_MS,
                records_unsent=int(max(0, min(due, self._asked) - sent)),
                records_in_time=self._lateness.records_in_time,
            )
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
            behind=behind,
            interrupted=interrupted,
            stopped=self._stopped,
        )

    def _now_us(self) -> int:
        return (time.monotonic_ns() + self._wall_minus_monotonic_ns) // 1000
