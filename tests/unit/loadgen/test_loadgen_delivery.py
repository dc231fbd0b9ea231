"""Every record is accounted for: acknowledged or failed, never lost in between."""

from loadgen.delivery import LEFT_OVER, Delivery
from loadgen.records import Message
from tests.support.fakeproducer import FakeProducer


def records(*keys: str) -> list[Message]:
    return [{"key": key, "value": "x" * 5} for key in keys]


def keys(count: int) -> list[str]:
    return [f"k{number}" for number in range(count)]


def test_what_is_reported_on_without_an_error_is_acknowledged_and_failures_are_counted_by_their_text() -> None:
    delivery = Delivery(FakeProducer(fails=lambda key: key in {"k1", "k4"}), "t")
    delivery.hand_over(records(*keys(7)))
    assert (delivery.sent, delivery.acknowledged, delivery.in_flight) == (7, 0, 7)
    delivery.serve(0)
    assert (delivery.sent, delivery.acknowledged, delivery.failed, delivery.bytes) == (7, 5, 2, 35)
    assert delivery.errors == {"Local: _MSG_TIMED_OUT": 2}


def test_a_full_queue_holds_records_back_and_keeps_their_order() -> None:
    producer = FakeProducer(room=3)
    delivery = Delivery(producer, "t")
    delivery.hand_over(records(*keys(10)))
    delivery.flush(1)
    assert [message["key"] for message in producer.taken] == keys(10)
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
    assert delivery.flush(0) == 4
    delivery.abandon()
    assert (delivery.sent, delivery.acknowledged, delivery.failed, delivery.errors) == (4, 0, 4, {LEFT_OVER: 4})
