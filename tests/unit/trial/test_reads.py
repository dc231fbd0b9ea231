"""Queries beside a load: asked when they are due, whatever became of those before."""

import time
from pathlib import Path
from threading import Event, Timer
from typing import Any, cast

from sinkbench.analysis.query import Answer, Query
from sinkbench.errors import ServiceError
from sinkbench.sinks import Capabilities, Sink
from sinkbench.stack import Endpoints
from sinkbench.trial.reads import Order, ask_until

QUERIES = [Query.model_validate({"name": name, "asks": "?", "member": {"a": 1}}) for name in ("one", "two", "bad")]


class Slow:
    """A sink that takes its time, and fails one query in three."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[str] = []
        self.capabilities = Capabilities(queries=self)

    def ask(self, target: str, query: Query, *, explain: bool = True) -> Answer:
        assert (target, explain) == ("t", False)
        self.asked.append(query.name)
        time.sleep(self.seconds)
        if query.name == "bad":
            raise ServiceError("no such field")
        return Answer(1)


def ask(rate: float, seconds: float, *sinks: Slow) -> Any:
    stop = Event()
    timer = Timer(seconds, stop.set)
    timer.start()
    order = Order(cast("Endpoints", None), Path(), "postgres", "t", QUERIES, rate)
    told = ask_until(stop, order, cast("list[Sink]", list(sinks)))
    timer.join()
    return told


def test_queries_are_asked_in_turn_and_what_fails_is_counted_apart() -> None:
    sink = Slow(0.0)
    told = ask(100, 0.5, sink)
    assert sink.asked[:4] == ["one", "two", "bad", "one"]
    assert told.failed == sink.asked.count("bad") > 0
    assert told.problem == "no such field"
    assert len(told.latencies_us) == len(sink.asked) - told.failed


def test_a_query_that_has_to_wait_for_another_counts_from_when_it_was_due() -> None:
    # Each takes ten times as long as the next one is away, on a single connection.
    began = time.monotonic()
    told = ask(100, 0.6, Slow(0.1))
    due = 100 * (time.monotonic() - began)
    assert told.latencies_us[-1] > 2 * told.latencies_us[0]
    assert min(told.latencies_us) >= 0.1e6
    # Sixty at least.
    assert 40 <= told.unasked <= due + 2 - len(told.latencies_us)
    assert ask(20, 0.4, Slow(0.0), Slow(0.0)).unasked <= 3
