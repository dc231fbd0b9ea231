"""Queries against the real sinks: each target answers what its file says, and what it cannot answer is seen."""
# ruff: noqa: S608 - the table's name is a constant

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from elasticsearch import Elasticsearch
from loadgen.options import Load
from loadgen.records import LARGEST_BATCH, RecordMaker
from sinkbench.analysis.query import Query
from sinkbench.errors import ServiceError
from sinkbench.plan.entries import load_queries
from sinkbench.results import Asked
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Sink, open_sink
from sinkbench.stack.local import LocalStack
from sinkbench.trial.queries import SentRecords, asked
from tests.e2e.hands import store, with_target

COUNT, KEYS = 20_000, 5_000
RUN = "equal"
TARGET = "tides_test_equal"
ALL = {query.name for query in load_queries(CHECKOUT / "queries")}
# What an index helps with, by target file.
JOBS = {
    "elasticsearch/index.json": ALL,
    "elasticsearch/targets/five.json": ALL - {"any-key"},
    "elasticsearch/targets/none.json": set(),
    "postgres/schema.sql": set(),
    "postgres/targets/brin.sql": {"station-day", "time-range"},
    "postgres/targets/btree.sql": {"station-day", "time-range", "value-range"},
    "postgres/targets/five.sql": ALL - {"any-key"},
    "postgres/targets/indexed.sql": ALL,
    "postgres/targets/columns.sql": ALL,
}
# What NOAA answers where nothing was measured, and what others write into such places.
GAPS = [
    b'{"error": {"message": "No data was found."}}',
    b'{"metadata": null, "data": []}',
    *(b'{"metadata": {"name": "", "lat": "", "location": "%b"}}' % each for each in (b"", b",", b"north, 1")),
    *(
        b'{"data": [{"t": "", "v": %b, "s": %b}]}' % (each, each)
        for each in (b'""', b'"n/a"', b'"NaN"', b"null", b"[]")
    ),
]


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    maker = RecordMaker(Load(bootstrap="-", topic="-", run=RUN, count=COUNT, keys=KEYS, record_bytes=0))
    return [
        str(each["value"]).encode()
        for at in range(0, COUNT, LARGEST_BATCH)
        for each in maker.batch(at, LARGEST_BATCH, 1, 2)
    ]


@pytest.fixture
def filled(stack: LocalStack, records: list[bytes], request: pytest.FixtureRequest) -> Iterator[Sink]:
    """The sink of a target file, with all records, and those with gaps, in a target that is made by it."""
    empty = open_sink(Path(request.param).parts[0], stack.endpoints, CHECKOUT)
    with with_target(empty, TARGET, CHECKOUT / request.param) as sink:
        store(stack, sink.name, TARGET, [*records, *GAPS])
        sink.settle(TARGET)
        yield sink


def ask_all(sink: Sink) -> dict[str, Asked]:
    ask = partial(sink.capabilities.queries.ask, TARGET)
    with SentRecords(COUNT, KEYS) as sent:
        return {
            query.name: asked(query, partial(ask, query), sent.answer(query))
            for query in load_queries(CHECKOUT / "queries")
        }


@pytest.mark.parametrize(("filled", "job"), JOBS.items(), indirect=["filled"], ids=list(JOBS))
def test_a_target_answers_by_an_index_what_it_is_made_for(filled: Sink, job: set[str]) -> None:
    answers = ask_all(filled)
    assert {name for name, each in answers.items() if each.right and each.by_index} == job
    if filled.name == "postgres":
        # Whatever has no index is found by reading the whole table.
        assert {name for name, each in answers.items() if not each.right} == set()


@pytest.mark.parametrize("filled", ["postgres/targets/columns.sql"], indirect=True)
def test_a_record_that_a_hand_has_changed_makes_an_answer_wrong(filled: Sink, database: psycopg.Connection) -> None:
    database.execute(f"UPDATE {TARGET} SET payload = jsonb_set(payload, '{{data,0,v}}', '\"9.9\"') WHERE id = 71")
    assert [name for name, each in ask_all(filled).items() if each.right is False] == ["station-hours"]
    database.execute(f"DELETE FROM {TARGET} WHERE id = 71")
    assert "station-day" in {name for name, each in ask_all(filled).items() if each.right is False}


@pytest.mark.parametrize("filled", ["postgres/targets/columns.sql"], indirect=True)
def test_a_query_that_fails_says_why_and_the_next_one_is_answered(filled: Sink) -> None:
    wrong = Query.model_validate({"name": "x", "asks": "?", "where": [{"field": "gone", "is": "1"}]})
    with pytest.raises(ServiceError, match='column "gone" does not exist'):
        filled.capabilities.queries.ask(TARGET, wrong)
    assert ask_all(filled)["station-day"].right


@pytest.mark.parametrize("filled", ["elasticsearch/targets/none.json"], indirect=True)
def test_a_field_that_is_not_indexed_fails_or_finds_nothing(filled: Sink, stack: LocalStack) -> None:
    answers = ask_all(filled)
    assert "geo" in answers["near-place"].problem
    assert (answers["full-text"].found, answers["full-text"].right) == (0, False)
    with Elasticsearch(stack.endpoints.sinks["elasticsearch"].address) as client:
        assert client.count(index=TARGET)["count"] == COUNT + len(GAPS)
