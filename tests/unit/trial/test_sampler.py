"""How often a source is asked."""

import time

import pytest

from sinkbench.errors import ServiceError
from sinkbench.sinks import SinkReading
from sinkbench.stack import MachineCpu, Usage
from sinkbench.trial import sampler
from sinkbench.trial.sampler import Sampler, Sources, throttled

READ = SinkReading(stored=0, backends=None)


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sampler, "time", clock)
    return clock


def test_what_was_read_last_stands_until_it_is_due_again(clock: Clock) -> None:
    answers = iter([1, 2, 3])
    read = throttled(lambda: next(answers), 1.0)
    assert [read(), read()] == [1, 1]
    clock.now += 0.9
    assert read() == 1
    clock.now += 0.2
    assert [read(), read()] == [2, 2]
    # A count that must not be repeated is absent in between.
    once = throttled(lambda: {"kafka": clock.now}, 1.0, meanwhile=dict)
    assert [once(), once()] == [{"kafka": clock.now}, {}]


def test_a_source_that_fails_is_asked_again_the_next_time(clock: Clock) -> None:
    asked = []

    def read() -> int:
        asked.append(clock.now)
        if len(asked) == 1:
            raise ServiceError("gone")
        return 7

    often = throttled(read, 1.0)
    with pytest.raises(ServiceError):
        often()
    assert often() == 7
    assert len(asked) == 2


def test_a_sink_that_answers_late_tells_of_the_end() -> None:
    def held_up() -> SinkReading:
        time.sleep(0.5)
        return READ

    reading = Sampler(Sources(sink=held_up, in_topic=lambda: 0), 0.01)
    reading.start()
    (sample, *_) = reading.wait(0, 30.0)
    reading.stop()
    # Not of the middle, as of an answer that takes no longer than the interval.
    assert sample.seconds >= 0.49


def test_what_the_services_use_becomes_signs_by_service() -> None:
    used = Usage(
        cpu_seconds={"kafka": 1.0},
        jvm_cpu_seconds={"connect-1": {"gc": 1.0}, "connect-2": {"gc": 2.0, "compiler": 4.0}},
        memory_bytes={"kafka": 5e8, "connect-1": 2.0, "connect-2": None},
        troubles={"kafka": "became unhealthy"},
        machine=MachineCpu(7.0, 1.0, 2),
    )
    reading = Sampler(Sources(sink=lambda: READ, in_topic=lambda: 0, usage=lambda: used), 60.0)
    reading.start()
    (sample,) = reading.wait(0, 30.0)
    reading.stop()
    assert (sample.cpu_seconds["kafka"], sample.troubles) == (1.0, {"kafka": "became unhealthy"})
    assert sample.signs == {
        **{"connect_gc_cpu_seconds_total": 3.0, "connect_compiler_cpu_seconds_total": 4.0},
        # Of Connect a part was not seen.
        "kafka_memory_bytes": 5e8,
        **{"machine_cpu_seconds_total": 7.0, "machine_stolen_seconds_total": 1.0},
    }


def test_a_moment_is_told_on_the_clock_of_the_samples() -> None:
    reading = Sampler(Sources(sink=lambda: READ, in_topic=lambda: 0), 0.01)
    before = time.monotonic()
    reading.start()
    (first, *_) = reading.wait(0, 30.0)
    seen = time.monotonic()
    zero = time.monotonic() - reading.now()
    reading.stop()
    assert before <= zero + first.seconds <= seen
