"""What queries must find among the records that were sent, and how they are asked beside a load, when they are due."""

import json
import math
import time
from pathlib import Path
from threading import Event, Timer
from typing import Any, cast
from unittest.mock import Mock

import pytest

from loadgen.options import Load
from loadgen.records import LARGEST_BATCH, RecordMaker, columns_of
from sinkbench.analysis.query import Answer, Query
from sinkbench.errors import ServiceError
from sinkbench.plan.entries import load_queries
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Capabilities, Sink
from sinkbench.stack import Endpoints
from sinkbench.trial.queries import SentRecords, asked
from sinkbench.trial.reads import Order, ask_until
from tests.support.present import present

COUNT, KEYS = 4_000, 900


@pytest.fixture(scope="module")
def records() -> list[Any]:
    options = {"bootstrap": "x:1", "topic": "t", "run": "r", "count": COUNT, "keys": KEYS, "record_bytes": 0}
    maker = RecordMaker(Load.model_validate(options))
    starts = range(0, COUNT, LARGEST_BATCH)
    texts = [str(each["value"]) for at in starts for each in maker.batch(at, min(LARGEST_BATCH, COUNT - at), 1, 2)]
    return [json.loads(text) for text in texts]


def ask(**keys: Any) -> Answer:
    with SentRecords(COUNT, KEYS) as sent:
        return present(sent.answer(Query.model_validate({"name": "x", "asks": "?", **keys})))


def test_the_columns_are_those_of_the_records(records: list[Any]) -> None:
    columns = columns_of(COUNT, KEYS)
    level = {number: place for place, number in enumerate(columns["levels"]["level"].tolist())}
    for seq, record in enumerate(records):
        gauge, turn = columns["records"]["gauge"][seq], columns["records"]["round"][seq]
        (reading,) = record["data"]
        at = level[columns["records"]["level"][seq]]
        assert record["metadata"] == {name: columns["gauges"][name][gauge] for name in record["metadata"]}
        assert reading == {"t": columns["rounds"]["t"][turn], **{name: columns["levels"][name][at] for name in "vsfq"}}
        assert record["bench"]["seq"] == seq


def test_a_value_a_range_a_word_and_a_member(records: list[Any]) -> None:
    station = ask(where=[{"field": "metadata.id", "is": "9414290"}], newest={"by": "data.0.t", "most": 3})
    seqs = [n for n, record in enumerate(records) if record["metadata"]["id"] == "9414290"]
    assert (station.found, list(station.rows)) == (len(seqs), [(seq,) for seq in reversed(seqs[-3:])])
    levels = [float(record["data"][0]["v"]) for record in records]
    assert ask(where=[{"field": "data.0.v", "from": -0.1, "before": 0.25}]).found == sum(
        -0.1 <= v < 0.25 for v in levels
    )
    named = [record for record in records if "island" in record["metadata"]["name"].lower().split()]
    assert ask(where=[{"field": "metadata.name", "words": "Island"}]).found == len(named) > 0
    flagged = [record for record in records if record["data"][0]["f"] == "1,0,0,0"]
    assert ask(member={"data": [{"f": "1,0,0,0"}]}).found == len(flagged) > 0


def test_near_a_place_is_by_the_great_circle(records: list[Any]) -> None:
    def km(record: Any) -> float:
        lat, lon = math.radians(float(record["metadata"]["lat"])), math.radians(float(record["metadata"]["lon"]))
        here, there = (math.radians(40.7), math.radians(-74.0))
        angle = math.sin(here) * math.sin(lat) + math.cos(here) * math.cos(lat) * math.cos(lon - there)
        return 6371.0088 * math.acos(angle)

    found = ask(where=[{"field": "metadata.location", "near": {"lat": 40.7, "lon": -74.0, "km": 300}}])
    assert found.found == sum(km(record) <= 300 for record in records) > 0


def test_a_member_that_no_record_has_has_no_answer() -> None:
    with SentRecords(10, 10) as sent:
        for keys in ({"member": {"gone": 1}}, {"where": [{"field": 'a"', "is": 1}]}):
            assert sent.answer(Query.model_validate({"name": "x", "asks": "?", **keys})) is None


def test_the_shipped_queries_find_something_in_few_and_in_many_records() -> None:
    for count in (4_000, 200_000):
        with SentRecords(count, 10_000) as sent:
            answers = {query.name: sent.answer(query) for query in load_queries(CHECKOUT / "queries")}
        assert [name for name, answer in answers.items() if answer is None or not answer.found] == []
        assert len(answers) == 7


def test_an_answer_is_judged_by_what_was_sent(tmp_path: Path) -> None:
    one = Query.model_validate({"name": "x", "asks": "?", "member": {"a": 1}})
    right = asked(one, lambda: Answer(2, by_index=True), Answer(2))
    assert (right.right, right.by_index, right.found, right.problem) == (True, True, 2, "")
    assert asked(one, lambda: Answer(1), Answer(2)).right is False
    assert asked(one, lambda: Answer(0), Answer(0)).right is None
    assert asked(one, lambda: Answer(0), Answer(2)).right is False
    assert asked(one, lambda: Answer(2), None).right is None
    failed = asked(one, Mock(side_effect=ServiceError("no such field\nat all")), Answer(2))
    assert (failed.right, failed.by_index, failed.problem) == (False, None, "no such field at all")


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


def read(rate: float, seconds: float, *sinks: Slow) -> Any:
    stop = Event()
    timer = Timer(seconds, stop.set)
    timer.start()
    order = Order(cast("Endpoints", None), Path(), "postgres", "t", QUERIES, rate)
    told = ask_until(stop, order, cast("list[Sink]", list(sinks)))
    timer.join()
    return told


def test_queries_are_asked_in_turn_and_what_fails_is_counted_apart() -> None:
    sink = Slow(0.0)
    told = read(100, 0.5, sink)
    assert sink.asked[:4] == ["one", "two", "bad", "one"]
    assert told.failed == sink.asked.count("bad") > 0
    assert told.problem == "no such field"
    assert len(told.latencies_us) == len(sink.asked) - told.failed


def test_a_query_that_has_to_wait_for_another_counts_from_when_it_was_due() -> None:
    # Each takes ten times as long as the next one is away, on a single connection.
    began = time.monotonic()
    told = read(100, 0.6, Slow(0.1))
    due = 100 * (time.monotonic() - began)
    assert told.latencies_us[-1] > 2 * told.latencies_us[0]
    assert min(told.latencies_us) >= 0.1e6
    # Sixty at least.
    assert 40 <= told.unasked <= due + 2 - len(told.latencies_us)
    assert read(20, 0.4, Slow(0.0), Slow(0.0)).unasked <= 3
