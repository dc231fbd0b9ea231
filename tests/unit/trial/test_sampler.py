"""What the samples say of answers that are late, that fail, and that do not come."""

import threading
import time
from collections.abc import Callable

import pytest

from sinkbench.analysis.samples import Sample
from sinkbench.errors import ServiceError
from sinkbench.sinks import PoolReading, SinkReading
from sinkbench.stack import MachineCpu, Usage
from sinkbench.trial import sampler
from sinkbench.trial.sampler import Sampler, Sources

READ = SinkReading(stored=0, backends=None)


def sampled(sources: Sources, until: Callable[[list[Sample]], object] = bool, **background: float) -> list[Sample]:
    """The samples, one each 10 ms, until they are as they should be."""
    reading = Sampler(sources, 0.01, background)
    reading.start()
    try:
        while not until(reading.samples):
            assert reading.wait(len(reading.samples), 30.0)
    finally:
        reading.stop()
    return reading.samples


@pytest.mark.parametrize("source", ["consumed", "status", "pool"])
def test_a_service_that_hangs_is_a_gap_and_never_a_zero_and_the_sink_is_read_all_the_same(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "STALE_SECONDS", 0.1)
    monkeypatch.setattr(sampler, "ENDING_SECONDS", 0.0)
    asked, over, pooled = [], threading.Event(), PoolReading(3, 2, {"pool_waiting": 1.0})

    def hangs() -> object:
        asked.append(time.monotonic())
        if len(asked) == 2:
            over.wait(30)
        return {"consumed": 4, "pool": pooled}.get(source)

    service = sampler.ASKED[source]
    sources = Sources(sink=lambda: READ, in_topic=lambda: 10, **{source: hangs})  # type: ignore[arg-type]
    seen = sampled(sources, lambda seen: sum(service in each.silent for each in seen) >= 20, **{source: 0.01})
    over.set()
    first, *_, last = seen
    assert (first.silent, last.stored) == ({}, 0)
    assert (last.uncommitted, last.pool_clients, last.pool_servers, last.signs.get("pool_waiting")) == (None,) * 4
    if source == "pool":
        assert (first.pool_clients, first.pool_servers, first.signs["pool_waiting"]) == (3, 2, 1.0)
    # From its last answer on.
    assert last.silent[service] < last.seconds - 0.1
    assert last.problems == (f"{source}: no answer for 0.11 s",)
    # Nothing waited for it.
    assert last.seconds < 10


def test_a_service_that_fails_or_answers_late_is_silent_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "STALE_SECONDS", 0.05)
    answers = iter([1, 2, None, "late", 5])

    def read() -> int:
        if (found := next(answers, 6)) is None:
            raise ServiceError("gone")
        time.sleep(0.1 if found == "late" else 0.0)
        return 0

    seen = sampled(Sources(sink=lambda: READ, in_topic=read), lambda seen: len(seen) > 4)
    assert [list(each.silent) for each in seen[:5]] == [[], [], ["kafka"], ["kafka"], []]
    assert (seen[2].in_topic, seen[2].problems, seen[3].in_topic) == (None, ("gone",), 0)


def test_a_sink_that_answers_late_tells_of_the_end() -> None:
    def held_up() -> SinkReading:
        time.sleep(0.5)
        return READ

    # Not of the middle, as of an answer that takes no longer than the interval.
    assert sampled(Sources(sink=held_up, in_topic=lambda: 0))[0].seconds >= 0.49


def test_what_the_services_use_becomes_signs_by_service() -> None:
    used = Usage(
        cpu_seconds={"kafka": 1.0},
        jvm_cpu_seconds={"connect-1": {"gc": 1.0}, "connect-2": {"gc": 2.0, "compiler": 4.0}},
        memory_bytes={"kafka": 5e8, "connect-1": 2.0, "connect-2": None},
        troubles={"kafka": "became unhealthy"},
        machine=MachineCpu(7.0, 1.0, 2),
    )
    sample = sampled(Sources(sink=lambda: READ, in_topic=lambda: 0, usage=lambda: used))[0]
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
