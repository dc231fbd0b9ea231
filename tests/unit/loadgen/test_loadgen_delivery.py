"""Every record is accounted for: acknowledged or failed, never lost in between."""

from __future__ import annotations

from typing import Any

from loadgen.delivery import LEFT_OVER, Delivery
from loadgen.records import Message


class Error:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def str(self) -> str:
        return f"Local: {self._name}"


class FakeProducer:
    """Queues up to `room` records; a poll reports on all of them: those whose key is in `failing` failed."""

    def __init__(self, room: int = 100, failing: frozenset[str] = frozenset(), silent: bool = False) -> None:
        self.room, self.failing, self.silent = room, failing, silent
        self.queue: list[tuple[str, Any]] = []
        self.order: list[str] = []

    def produce_batch(self, _topic: str, messages: list[Message], *, on_delivery: Any) -> int:
        accepted = 0
        for message in messages:
            key = str(message["key"])
            if key.startswith("huge"):
                message["_error"] = Error("MSG_SIZE_TOO_LARGE")
            elif len(self.queue) >= self.room:
                message["_error"] = Error("_QUEUE_FULL")
            else:
                self.queue.append((key, on_delivery))
                self.order.append(key)
                accepted += 1
        return accepted

    def poll(self, _timeout: float) -> int:
        if not self.silent:
            self._report(None)
        return 0

    def flush(self, _timeout: float) -> int:
        self.poll(0)
        return len(self.queue)

    def purge(self) -> None:
        self._report(Error("_PURGE_QUEUE"))

    def _report(self, error: Error | None) -> None:
        while self.queue:
            key, callback = self.queue.pop(0)
            if error is not None or key in self.failing:
                callback(error or Error("_MSG_TIMED_OUT"), None)

    def __len__(self) -> int:
        return len(self.queue)


def records(*keys: str) -> list[Message]:
    return [{"key": key, "value": "x" * 5} for key in keys]


def keys(count: int) -> list[str]:
    return [f"k{number}" for number in range(count)]


def test_what_is_reported_on_without_an_error_is_acknowledged() -> None:
    delivery = Delivery(FakeProducer(), "t")
    delivery.hand_over(records(*keys(7)))
    assert (delivery.sent, delivery.acknowledged, delivery.in_flight) == (7, 0, 7)
    delivery.serve(0)
    assert (delivery.sent, delivery.acknowledged, delivery.failed, delivery.bytes) == (7, 7, 0, 35)


def test_failures_are_counted_by_their_text() -> None:
    delivery = Delivery(FakeProducer(failing=frozenset({"k1", "k4"})), "t")
    delivery.hand_over(records(*keys(7)))
    delivery.serve(0)
    assert (delivery.acknowledged, delivery.failed) == (5, 2)
    assert delivery.errors == {"Local: _MSG_TIMED_OUT": 2}


def test_a_full_queue_holds_records_back_and_keeps_their_order() -> None:
    producer = FakeProducer(room=3)
    delivery = Delivery(producer, "t")
    delivery.hand_over(records(*keys(10)))
    delivery.flush(1)
    assert producer.order == keys(10)
    assert (delivery.sent, delivery.acknowledged, delivery.failed) == (10, 10, 0)


def test_a_record_that_the_client_refuses_for_good_has_failed() -> None:
    delivery = Delivery(FakeProducer(room=2), "t")
    delivery.hand_over(records("a", "huge", "b", "c", "huger"))
    delivery.flush(1)
    assert (delivery.sent, delivery.acknowledged, delivery.failed) == (5, 3, 2)
    assert delivery.errors == {"Local: MSG_SIZE_TOO_LARGE": 2}


def test_what_is_abandoned_has_failed() -> None:
    delivery = Delivery(FakeProducer(silent=True), "t")
    delivery.hand_over(records(*keys(4)))
    assert delivery.flush(1) == 4
    delivery.abandon()
    assert (delivery.sent, delivery.acknowledged, delivery.failed) == (4, 0, 4)
    assert delivery.errors == {LEFT_OVER: 4}
