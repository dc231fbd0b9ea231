"""Hands records to the producer and counts, exactly, what became of each of them.

What makes the count exact: librdkafka gives every record that it has accepted one delivery report, and `len(producer)`
is the number of records whose report has not been served yet. Reports of failures reach `_failed`; so, at any time,

    acknowledged = handed over - failed - len(producer)

Reports of successes call no Python code (`delivery.report.only.error`): one call a record would be a tenth of all CPU
time. The latency is measured on some records nonetheless, by a `_Probe` that is such a record's own delivery callback:
the client lets go of the callback once the report is served, and CPython then finalises the probe at once.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from loadgen.latency import Latency, LatencyHistogram
from loadgen.records import Message

__all__ = ["LEFT_OVER", "Delivery", "ProducerLike"]

LEFT_OVER = "not acknowledged when the load ended"
REFUSED_WAIT_SECONDS = 0.01


class ProducerLike(Protocol):
    """What is used of `confluent_kafka.Producer`."""

    def produce_batch(self, topic: str, messages: list[Message], *, on_delivery: Any) -> int: ...
    def poll(self, timeout: float) -> int: ...
    def flush(self, timeout: float) -> int: ...
    def purge(self) -> None: ...
    def __len__(self) -> int: ...


class Delivery:
    """The records of one load on their way to one topic."""

    def __init__(self, producer: ProducerLike, topic: str, probe_every: int, record_bytes: int = 0) -> None:
        """`probe_every`: measure the latency of one record in so many. `record_bytes`: each one's, 0 if they differ."""
        self._record_bytes = record_bytes
        self._producer = producer
        self._topic = topic
        self._probe_every = probe_every
        self._latencies_ns: list[int] = []
        self._histogram = LatencyHistogram()
        self.sent = 0
        self.bytes = 0
        self.failed = 0
        self.errors: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        """Records handed over of which nothing is known yet."""
        return len(self._producer)

    @property
    def acknowledged(self) -> int:
        """Records that the broker has acknowledged."""
        return self.sent - self.failed - len(self._producer)

    def hand_over(self, messages: list[Message]) -> None:
        """Hands records to the producer, in order. A record that it refuses for good has failed.

        Empties `messages`, as a probe must be referred to by the producer only.
        """
        if not messages:
            return
        self.bytes += self._record_bytes * len(messages) or sum([len(str(message["value"])) for message in messages])
        now = time.monotonic_ns()
        for index in range(-self.sent % self._probe_every, len(messages), self._probe_every):
            messages[index]["callback"] = _Probe(self, now)
        accepted = self._producer.produce_batch(self._topic, messages, on_delivery=self._failed)
        self.sent += accepted
        while accepted < len(messages):
            messages[:] = self._refused(messages)
            if not messages:
                break
            self._producer.poll(REFUSED_WAIT_SECONDS)
            accepted = self._producer.produce_batch(self._topic, messages, on_delivery=self._failed)
            self.sent += accepted
        messages.clear()

    def _refused(self, messages: Sequence[Message]) -> list[Message]:
        """The refused records that are worth another try; the others are counted as failed."""
        again = []
        for message in messages:
            error: Any = message.pop("_error", None)
            if error is None:
                continue
            if error.name() == "_QUEUE_FULL":
                again.append(message)
                continue
            self.sent += 1
            self._failed(error, None)
            probe = message.get("callback")
            if isinstance(probe, _Probe):
                probe.cancel()
        return again

    def serve(self, timeout_seconds: float) -> None:
        """Serves delivery reports; returns when there were some, or after the timeout."""
        # The client cuts it to whole ms: a wait of 0.9 ms would be none, and its caller would spin.
        self._producer.poll(math.ceil(timeout_seconds * 1000) / 1000)
        self._record()

    def flush(self, timeout_seconds: float) -> int:
        """Waits until every record is reported on, or the timeout; returns how many are not."""
        left = self._producer.flush(timeout_seconds)
        self._record()
        return left

    def abandon(self) -> None:
        """Gives up on what is still in flight: each of these records has failed."""
        self._producer.purge()
        left = self.flush(1)
        if left:
            self.failed += left
            self.errors[LEFT_OVER] += left

    def latency(self) -> Latency:
        """The quantiles of the latency from hand-over until the report was served."""
        self._record()
        return self._histogram.read(self._probe_every)

    def _record(self) -> None:
        if self._latencies_ns:
            for each in self._latencies_ns:
                self._histogram.add(each // 1000)
            self._latencies_ns.clear()

    def _failed(self, error: Any, _message: Any) -> None:
        self.failed += 1
        name = str(error.name())
        self.errors[LEFT_OVER if name in {"_PURGE_QUEUE", "_PURGE_INFLIGHT"} else str(error.str())] += 1


class _Probe:
    """The delivery callback of one record. Called if the record failed; finalised, uncalled, if it was acknowledged."""

    __slots__ = ("_delivery", "_handed_over_ns")

    def __init__(self, delivery: Delivery, handed_over_ns: int) -> None:
        self._delivery: Delivery | None = delivery
        self._handed_over_ns = handed_over_ns

    def __call__(self, error: Any, message: Any) -> None:
        if self._delivery is not None:
            self._delivery._failed(error, message)
            self._delivery = None

    def cancel(self) -> None:
        """Measure nothing."""
        self._delivery = None

    def __del__(self) -> None:
        if self._delivery is not None:
            self._delivery._latencies_ns.append(time.monotonic_ns() - self._handed_over_ns)
