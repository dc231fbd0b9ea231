"""A load sends what it was asked for, ends in each of its ways, and its summary adds up."""

import json
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loadgen.engine as engine
from loadgen.client import producer_config
from loadgen.engine import LEFT_OVER, Delivery, Schedule
from loadgen.errors import OptionsError
from loadgen.options import Load, load_from
from loadgen.summary import Progress, Summary
from tests.support.fakeproducer import FakeProducer
from tests.support.present import present


def run(
    monkeypatch: pytest.MonkeyPatch, broker: FakeProducer, stop: threading.Event | None = None, **options: Any
) -> tuple[Summary, list[Progress]]:
    monkeypatch.setattr(engine, "prepare_topic", lambda *_: None)
    monkeypatch.setattr(engine, "open_producer", lambda *_: broker)
    monkeypatch.setattr(engine, "PROGRESS_SECONDS", 0.0)
    shown: list[Progress] = []
    load: Load = load_from({"bootstrap": "b", "topic": "t", "keys": 5, **options})
    return engine.run(load, shown.append, stop), shown


def benches(broker: FakeProducer) -> list[dict[str, int]]:
    return [json.loads(str(message["value"]))["bench"] for message in broker.taken]


def test_a_count_is_sent_to_the_last_record(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeProducer()
    summary, shown = run(monkeypatch, broker, count=1234, first_seq=95)
    assert [bench["seq"] for bench in benches(broker)] == list(range(95, 95 + 1234))
    assert (summary.asked, summary.sent, summary.acknowledged, summary.failed) == (1234, 1234, 1234, 0)
    assert summary.bytes == sum(len(str(message["value"])) for message in broker.taken)
    assert (summary.behind, summary.stopped) == (None, None)
    assert [each.acknowledged for each in shown] == sorted(each.acknowledged for each in shown)


def test_with_a_rate_no_record_is_sent_before_it_is_due_and_waiting_does_not_spin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = FakeProducer()
    summary, _ = run(monkeypatch, broker, rate=2000, duration_seconds=0.2)
    lateness_us = [bench["sent_us"] - bench["due_us"] for bench in benches(broker)]
    assert summary.asked == summary.acknowledged == 400
    assert min(lateness_us) >= 0
    assert present(summary.behind).max_ms == max(lateness_us) / 1000
    # A poll of less than a millisecond returns at once. One such poll goes with each batch, no more.
    short = sum(1 for seconds in broker.polls_seconds if seconds < 0.001)
    assert short <= len({bench["sent_us"] for bench in benches(broker)})


def test_times_are_by_the_clock_of_who_started_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, before_us = FakeProducer(), time.time_ns() / 1000
    run(monkeypatch, broker, rate=2000, count=10, clock_ahead_us=1e9)
    sent_us = [bench["sent_us"] + 1e9 for bench in benches(broker)]
    assert before_us <= min(sent_us)
    assert max(sent_us) <= time.time_ns() / 1000


def test_a_slow_broker_moves_no_due_time_and_what_stays_unsent_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_IN_FLIGHT", 100)
    monkeypatch.setattr(engine, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(engine, "INTERRUPTED_FLUSH_SECONDS", 0.1)
    stop = threading.Event()
    stopper = threading.Timer(0.6, stop.set)
    stopper.start()
    summary, _ = run(monkeypatch, FakeProducer(silent=True), stop, rate=1000, duration_seconds=0.3)
    stopper.join()
    assert summary.asked == 300
    assert summary.sent < 300
    assert present(summary.behind).records_unsent == 300 - summary.sent
    assert (summary.acknowledged, summary.failed) == (0, summary.sent)


def test_a_stopped_load_says_so_and_accounts_for_what_it_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    stop.set()
    summary, _ = run(monkeypatch, FakeProducer(), stop, count=10)
    assert summary.interrupted
    assert (summary.sent, summary.acknowledged, summary.failed, summary.records_per_second) == (0, 0, 0, 0)


def test_a_load_gives_up_when_records_fail_and_none_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeProducer(fails=lambda _: True)
    summary, _ = run(monkeypatch, broker, duration_seconds=60, delivery_timeout_seconds=1)
    assert summary.stopped == "records fail, and none was acknowledged for 1 s"
    assert not summary.interrupted
    assert summary.failed == summary.sent == len(broker.taken) > 0
    assert summary.errors == {"Local: _MSG_TIMED_OUT": summary.failed}


@pytest.mark.parametrize(
    ("producer", "handed", "counts", "errors"),
    [
        (FakeProducer(fails=lambda key: key in "be"), "a b c d e", (5, 3, 2), {"Local: _MSG_TIMED_OUT": 2}),
        # A full queue holds records back and keeps their order.
        (FakeProducer(room=3), "a b c d e f g", (7, 7, 0), {}),
        (FakeProducer(room=2), "a huge b c huger", (5, 3, 2), {"Local: MSG_SIZE_TOO_LARGE": 2}),
        (FakeProducer(silent=True), "a b c d", (4, 0, 4), {LEFT_OVER: 4}),
    ],
)
def test_every_record_is_acknowledged_or_has_failed(
    producer: FakeProducer, handed: str, counts: tuple[int, int, int], errors: dict[str, int]
) -> None:
    delivery, keys = Delivery(producer, "t"), handed.split()
    delivery.hand_over([{"key": key, "value": "x" * 5} for key in keys])
    assert (delivery.bytes, delivery.sent) == (5 * len(keys), len(keys))
    delivery.flush(0)
    delivery.abandon()
    assert ((delivery.sent, delivery.acknowledged, delivery.failed), delivery.errors) == (counts, errors)
    assert [message["key"] for message in producer.taken] == [key for key in keys if not key.startswith("huge")]


START_US = 1_769_879_160_000_000
rates = st.floats(0.01, 1e7)


def test_record_i_is_due_i_over_rate_after_the_start() -> None:
    schedule = Schedule(1000, START_US)
    assert [due - START_US for due in schedule.due_us(0, 4)] == [0, 1000, 2000, 3000]
    assert schedule.due_us(60_000, 1) == [START_US + 60_000_000]
    assert schedule.wait_seconds(1, START_US + 400) == 0.0006


@given(rate=rates, first=st.integers(0, 10**9), count=st.integers(1, 50))
def test_due_times_are_in_order_and_do_not_depend_on_what_was_asked_before(rate: float, first: int, count: int) -> None:
    schedule = Schedule(rate, START_US)
    dues = schedule.due_us(first, count)
    assert dues == sorted(dues)
    assert dues == [schedule.due_us(first + each, 1)[0] for each in range(count)]


@given(rate=rates, after_us=st.integers(0, 10**11))
def test_exactly_the_records_due_until_now_are_due(rate: float, after_us: int) -> None:
    schedule, now_us = Schedule(rate, START_US), START_US + after_us
    count = schedule.due_count(now_us)
    assert schedule.due_count(START_US - 1) == 0
    assert schedule.wait_seconds(count - 1, now_us) == 0 < schedule.wait_seconds(count, now_us)
    assert schedule.due_us(count - 1, 1)[0] <= now_us < schedule.due_us(count, 1)[0]


def load(**options: Any) -> Load:
    return load_from({"bootstrap": "127.0.0.1:9092", "topic": "tides", "count": 10, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": None}, "count, duration: found neither; give one of the two"),
        ({"duration_seconds": 3}, "count, duration: found both; give one of the two"),
        ({"count": 0}, "count: found 0; input should be greater than or equal to 1"),
        ({"rate": 0}, "rate: found 0; input should be greater than 0"),
        ({"rate": float("nan")}, "rate: found nan"),
        ({"acks": "2"}, "acks: found '2'; input should be '0', '1' or 'all'"),
        ({"topic": "a topic"}, "topic: found 'a topic'; "),
        ({"record_bytes": 2_000_000}, "record_bytes: found 2000000; "),
        ({"speed": 3}, "speed: no option has this name"),
        ({"form": "rows"}, "form: found 'rows'; input should be 'document', "),
        ({"changes": {"inserts": 0.5, "updates": 0.5}, "form": "row"}, "form: found 'row'; changes are made of doc"),
        ({"changes": '{"inserts": 0.5, "updates": 0.4}'}, "changes: .* deletes 0 add up to 0.9; make that 1"),
        ({"changes": '{"inserts": 0, "updates": 1}'}, "changes: .*; inserts is 0, so no key"),
        ({"changes": '{"inserts": 1, "updates": 0, "upserts": 1}'}, "changes.upserts: no option has this name"),
        ({"key": "id"}, "key: records of noaa have the key of their gauge; "),
        ({"records": "a.ndjson", "keys": 500}, "records: found 'a.ndjson', whose sizes, keys and form are their own; "),
    ],
)
def test_an_unusable_option_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionsError, match=rf"^{message}.*\Z"):
        load(**options)
    with pytest.raises(OptionsError, match="bootstrap: is missing"):
        load_from({"topic": "t", "count": 1})


def test_a_rate_and_a_duration_ask_for_what_is_due_within_it() -> None:
    by_time = [{"duration_seconds": 2, "rate": 1000}, {"duration_seconds": 0.1, "rate": 0.5}, {"duration_seconds": 2}]
    assert [load(count=None, **each).asked for each in by_time] == [2000, 1, None]
    assert load().asked == 10


def test_retries_cannot_duplicate_when_all_replicas_acknowledge() -> None:
    assert producer_config(load(), 1)["enable.idempotence"] is True
    assert producer_config(load(acks="1"), 1)["enable.idempotence"] is False
    # Else a producer that is not idempotent sends each few records at once, however many requests wait.
    assert len({producer_config(load(acks=acks), 1)["max.in.flight"] for acks in ("all", "1", "0")}) == 1
