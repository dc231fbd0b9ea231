"""Passes records to the producer and counts exactly what became of them.

librdkafka reports once on every record that it accepted, and `len(producer)` counts the pending reports. Only failures
call Python code (`delivery.report.only.error`; reports of successes would take a tenth of all CPU time), so at any time

    acknowledged = handed over - failed - len(producer)"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from loadgen.records import Message

LEFT_OVER = "not acknowledged when the load ended"
REFUSED_WAIT_SECONDS = 0.01


class ProducerLike(Protocol):
    def produce_batch(self, topic: str, messages: list[Message], *, on_delivery: Any) -> int: ...
    def poll(self, timeout: float) -> int: ...
    def flush(self, timeout: float) -> int: ...
    def purge(self) -> None: ...
    def __len__(self) -> int: ...


class Delivery:
    """The records of one load on their way to one topic."""

    def __init__(self, producer: ProducerLike, topic: str, record_bytes: int = 0) -> None:
        """`record_bytes` is 0 if the size of records varies."""
        self._record_bytes = record_bytes
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
        self.bytes += self._record_bytes * len(messages) or sum(map(_value_bytes, messages))
        while messages:
            accepted = self._producer.produce_batch(self._topic, messages, on_delivery=self._failed)
            self.sent += accepted
            messages[:] = self._refused(messages) if accepted < len(messages) else ()
            if messages:
                self._producer.poll(REFUSED_WAIT_SECONDS)

    def _refused(self, messages: Sequence[Message]) -> list[Message]:
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
        return self._producer.flush(timeout_seconds)

    def abandon(self) -> None:
        self._producer.purge()
        if left := self.flush(1):
            self.failed += left
            self.errors[LEFT_OVER] += left

    def _failed(self, error: Any, _message: Any) -> None:
        self.failed += 1
        name = str(error.name())
        self.errors[LEFT_OVER if name in {"_PURGE_QUEUE", "_PURGE_INFLIGHT"} else str(error.str())] += 1


def _value_bytes(message: Message) -> int:
    """Length of a record's value; texts are ASCII, and a tombstone has none."""
    value: Any = message["value"]
    return 0 if value is None else len(value)
