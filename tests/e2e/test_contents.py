"""A hand that changes one record of many thousands is found, and what a sink does to every text is no change."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadgen.dataset.store import Builder, DatasetMaker
from loadgen.options import load_from
from loadgen.records import made_by, records_of
from sinkbench.analysis.content import Content, documents_of
from sinkbench.sinks import Sink
from sinkbench.sinks.elasticsearch.sink import ElasticsearchSink
from sinkbench.stack.local import LocalStack
from sinkbench.trial import audit
from tests.e2e.hands import HANDS, InElasticsearch, InPostgres, store, with_target
from tests.e2e.onetrial import index_with
from tests.support.anyrecords import VALUES, changed, text_of
from tests.support.counts import count
from tests.support.respelled import respelled

TARGET, RUN = "tides_test_contents", "r1"
NOAA = 20_000


@pytest.fixture
def hand(stack: LocalStack, sink: Sink) -> Iterator[InPostgres | InElasticsearch]:
    sink.create(TARGET)
    yield HANDS[sink.name](stack, TARGET)
    sink.drop(TARGET)


def spelled_otherwise(record: dict[str, Any], draw: Random, *, twice: bool) -> bytes:
    """A record in another spelling but for "bench", whose numbers the audit counts by."""
    bench = json.dumps(record.pop("bench"))
    return f'{respelled(record, draw, twice=twice)[:-1]}, "bench": {bench}}}'.encode()


def test_one_changed_record_is_found_and_another_spelling_is_no_change(
    stack: LocalStack, sink: Sink, hand: InPostgres | InElasticsearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"bootstrap": "-", "topic": "-", "run": RUN, "count": NOAA, "keys": 500, "record_bytes": 512}
    sent = records_of(load_from(options))
    draw = Random(1)
    twice = sink.name == "postgres"
    store(stack, sink.name, TARGET, [spelled_otherwise(json.loads(value), draw, twice=twice) for value in sent])
    names: Any = SimpleNamespace(target=TARGET, trial=RUN)

    def found() -> Content:
        sink.settle(TARGET)
        return audit.content_of(sink, names, documents_of(sent[:64], RUN), NOAA, 512)

    monkeypatch.setattr(audit, "CHECK_SECONDS", 60.0)
    assert found() == Content(compared=NOAA, checked=NOAA)
    hand.change(12_345, "v")
    assert found() == Content(compared=NOAA, altered=1, checked=NOAA, altered_ranges="12345")
    hand.change(12_345, "p")
    assert found().altered == 0
    # Time is up: what was not read is not called right, and the sink can be asked on.
    monkeypatch.setattr(audit, "CHECK_SECONDS", 0.0)
    short = found()
    assert (short.altered, short.checked, short.unchecked) == (0, audit.AT_ONCE, "it took longer than 0 s")
    some = [each["bench"]["seq"] for chunk in sink.capabilities.documents.all(TARGET, RUN, 7, 500) for each in chunk]
    assert len(set(some)) == len(some) == pytest.approx(NOAA / 7, rel=0.15)
    assert sink.count(TARGET) == NOAA


@given(records=st.lists(VALUES, min_size=20, max_size=20), place=st.integers(0, 19), data=st.data())
@settings(max_examples=count(40, 4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_numbers_and_texts_there_are_only_a_planted_change_is_seen(
    stack: LocalStack, sink: Sink, hand: object, records: list[Any], place: int, data: Any
) -> None:
    builder = Builder()
    for record in records:
        builder.add(f'{{"own":{text_of(record)}}}'.encode(), None)
    other = text_of(data.draw(changed(records[place])))
    for planted in (False, True):
        names: Any = SimpleNamespace(target=TARGET, trial=secrets.token_hex(4))
        sent = made_by(DatasetMaker(builder.build("here", whole=True), names.trial), 0, len(records))
        stored = list(sent)
        if planted:
            own = f'"own":{text_of(records[place])}'.encode()
            stored[place] = stored[place].replace(own, f'"own":{other}'.encode(), 1)
        store(stack, sink.name, TARGET, stored)
        sink.settle(TARGET)
        found = audit.content_of(sink, names, documents_of(sent[:8], names.trial), len(sent), 512)
        assert found is not None
        assert (found.compared, found.checked) == (20, 20)
        assert (found.altered, found.altered_ranges) == ((1, f"{place}") if planted else (0, ""))


@pytest.mark.parametrize(
    ("source", "kept"), [({"excludes": ["bench"]}, {3: {"metadata": {"id": "a"}}}), ({"enabled": False}, {})]
)
def test_documents_that_are_not_kept_whole_are_told_by_their_numbers_or_not_given(
    stack: LocalStack, tmp_path: Path, source: dict[str, Any], kept: dict[int, Any]
) -> None:
    index = index_with(tmp_path, mappings={"_source": source})
    with with_target(ElasticsearchSink(stack.endpoints.sinks["elasticsearch"], index), TARGET) as sink:
        document = json.dumps({"metadata": {"id": "a"}, "bench": {"run": RUN, "seq": 3}})
        store(stack, sink.name, TARGET, [document.encode()])
        sink.settle(TARGET)
        assert sink.capabilities.documents.some(TARGET, RUN, [3]) == kept
