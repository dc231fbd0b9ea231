"""Runs a load: makes its records, hands them over as they are due, and waits for what becomes of them."""

from __future__ import annotations

import math
import resource
import threading
import time
from collections.abc import Callable, Mapping

from loadgen.client import MOST_IN_FLIGHT, MOST_IN_FLIGHT_BYTES, open_producer
from loadgen.delivery import Delivery
from loadgen.options import Load
from loadgen.records import LARGEST_BATCH, RecordMaker
from loadgen.schedule import LATE_MS, Lateness, Schedule
from loadgen.summary import Behind, Progress, Summary
from loadgen.topic import prepare_topic

__all__ = ["probe_every", "run"]

UNPADDED_BYTES = 400

PROBE_ALL_UP_TO = 100_000
PROBES_PER_SECOND = 10_000
UNTHROTTLED_PROBE_EVERY = 61  # a prime, so that the probes go round all keys

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
) -> Summary:
    """Produces the records of `load` and waits until each is acknowledged or has failed.

    A record has failed if the broker refused it, if it was not acknowledged within `delivery_timeout_seconds`, or if it
    was still in flight when the load was interrupted and 5 s had passed. A load ends early if records fail and for
    `delivery_timeout_seconds` none was acknowledged, and, with a rate and a duration, 1 s after its duration.

    Args:
        load: what to produce.
        on_progress: called about once a second, from this thread.
        stop: once it is set the load ends, and its summary says so.
        client_settings: further settings of the Kafka client (librdkafka's names), such as those for SASL and TLS.

    Raises:
        UnusableError: an option, the broker or the topic cannot be used; nothing was produced.
    """
    cpu_before = _cpu_seconds()
    maker = RecordMaker(load)
    settings = client_settings or {}
    prepare_topic(load, settings)
    delivery = Delivery(open_producer(load, settings), load.topic, probe_every(load), load.record_bytes)
    return _Run(load, maker, delivery, on_progress, stop or threading.Event(), cpu_before).to_the_end()


def probe_every(load: Load) -> int:
    """The latency is measured on one in so many records: on all if that costs little, else on about 10,000 a second."""
    if load.asked is not None and load.asked <= PROBE_ALL_UP_TO:
        return 1
    if load.rate is None:
        return UNTHROTTLED_PROBE_EVERY
    return max(1, math.ceil(load.rate / PROBES_PER_SECOND))


class _Run:
    """One load under way."""

    def __init__(
        self,
        load: Load,
        maker: RecordMaker,
        delivery: Delivery,
        on_progress: Callable[[Progress], None] | None,
        stop: threading.Event,
        cpu_before: float,
    ) -> None:
        self._load = load
        self._maker = maker
        self._delivery = delivery
        self._on_progress = on_progress
        self._stop = stop
        self._cpu_before = cpu_before
        self._most_in_flight = max(
            1, min(MOST_IN_FLIGHT, MOST_IN_FLIGHT_BYTES // (load.record_bytes or UNPADDED_BYTES))
        )
        self._made = 0
        # The clock of due and sent times: the wall clock as it was at the start, kept going by the monotonic one, so
        # that a step of the wall clock cannot move the schedule.
        self._start = time.monotonic()
        self._wall_minus_monotonic_ns = time.time_ns() - time.monotonic_ns()
        self._schedule = None if load.rate is None else Schedule(load.rate, self._now_us())
        ends = None if self._schedule is None or load.asked is None else self._schedule.one_due_us(load.asked - 1)
        self._lateness = Lateness(ends)
        self._next_tick_us = 0
        self._progress_at, self._progress_acknowledged = self._start, 0
        self._acknowledged_at, self._last_acknowledged = self._start, 0
        self._stopped: str | None = None

    def to_the_end(self) -> Summary:
        self._send()
        interrupted = self._stop.is_set()
        # The client reports a record at the latest by its timeout; the second is for the report itself.
        allowed = INTERRUPTED_FLUSH_SECONDS if interrupted else self._load.delivery_timeout_seconds + 1
        give_up = time.monotonic() + allowed
        while self._delivery.in_flight and time.monotonic() < give_up:
            self._delivery.flush(min(LONGEST_WAIT_SECONDS, max(0, give_up - time.monotonic())))
            self._show_progress()
            if self._stop.is_set() and not interrupted:
                interrupted = True
                give_up = min(give_up, time.monotonic() + INTERRUPTED_FLUSH_SECONDS)
        elapsed = time.monotonic() - self._start
        if self._delivery.in_flight:
            self._delivery.abandon()
        return self._summary(elapsed, interrupted)

    def _send(self) -> None:
        deadline = math.inf
        if self._load.duration_seconds is not None:
            grace = 0 if self._schedule is None else GRACE_SECONDS
            deadline = self._start + self._load.duration_seconds + grace
        asked = self._load.asked
        while (asked is None or self._made < asked) and time.monotonic() < deadline:
            if self._stop.is_set() or self._must_give_up():
                return
            count = self._next_count(asked)
            if count > 0:
                self._send_batch(count)
            self._show_progress()

    def _next_count(self, asked: int | None) -> int:
        """How many records to send now. If that is none, it has waited a little."""
        room = self._most_in_flight - self._delivery.in_flight
        if room < min(LARGEST_BATCH, self._most_in_flight):
            self._delivery.serve(LONGEST_WAIT_SECONDS)
            return 0
        count = min(room, self._maker.longest_batch(self._load.first_seq + self._made))
        if asked is not None:
            count = min(count, asked - self._made)
        if self._schedule is None:
            return count
        now_us = self._now_us()
        wait = max(self._next_tick_us - now_us, 0) / 1e6 or self._schedule.wait_seconds(self._made, now_us)
        if wait:
            self._delivery.serve(min(wait, LONGEST_WAIT_SECONDS))
            return 0
        due = self._schedule.due_count(now_us) - self._made
        if due <= count:
            # At high rates a little late rather than one by one, which would take ten times the CPU time.
            self._next_tick_us = now_us + TICK_US
        return min(count, due)

    def _send_batch(self, count: int) -> None:
        sent_us = self._now_us()
        seq = self._load.first_seq + self._made
        if self._schedule is None:
            messages = self._maker.batch(seq, count, sent_us, sent_us)
        else:
            due_us = self._schedule.due_us(self._made, count)
            self._lateness.add(due_us, sent_us)
            messages = self._maker.batch(seq, count, due_us, sent_us)
        self._made += count
        self._delivery.hand_over(messages)
        self._delivery.serve(0)

    def _must_give_up(self) -> bool:
        acknowledged, now = self._delivery.acknowledged, time.monotonic()
        if acknowledged > self._last_acknowledged:
            self._last_acknowledged, self._acknowledged_at = acknowledged, now
            return False
        silent = now - self._acknowledged_at
        if not self._delivery.failed or silent < self._load.delivery_timeout_seconds:
            return False
        self._stopped = f"records fail, and none was acknowledged for {self._load.delivery_timeout_seconds:g} s"
        return True

    def _show_progress(self) -> None:
        now = time.monotonic()
        if self._on_progress is None or now - self._progress_at < PROGRESS_SECONDS:
            return
        acknowledged = self._delivery.acknowledged
        rate = (acknowledged - self._progress_acknowledged) / (now - self._progress_at)
        self._progress_at, self._progress_acknowledged = now, acknowledged
        self._on_progress(
            Progress(
                sent=self._delivery.sent,
                acknowledged=acknowledged,
                failed=self._delivery.failed,
                records_per_second=round(rate, 1),
            )
        )

    def _summary(self, elapsed_seconds: float, interrupted: bool) -> Summary:
        load, delivery = self._load, self._delivery
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
                records_unsent=max(0, min(due, due if load.asked is None else load.asked) - sent),
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
            ack_latency_ms=delivery.latency(),
            cpu_seconds=round(_cpu_seconds() - self._cpu_before, 3),
            rate_asked=load.rate,
            behind=behind,
            interrupted=interrupted,
            stopped=self._stopped,
        )

    def _now_us(self) -> int:
        return (time.monotonic_ns() + self._wall_minus_monotonic_ns) // 1000


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
