"""What became of index.json, times that follow from sequence numbers, and who is no Elasticsearch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from elasticsearch import Elasticsearch
from loadgen.reading import parse_json
from sinkbench.errors import ServiceError, StackError
from sinkbench.services.clocks import offset_of
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink
from sinkbench.sinks.elasticsearch.index import compare, spread
from sinkbench.sinks.elasticsearch.nodes import Nodes
from sinkbench.sinks.elasticsearch.times import SeqNoTimes, highest_found
from sinkbench.stack import Endpoint
from tests.support.endpoints import endpoints
from tests.support.tlsserver import served


def became(settings: dict[str, Any] | None = None, mappings: Any = None, **more: Any) -> dict[str, Any]:
    """What Elasticsearch tells of an index."""
    usual = {"index.number_of_shards": "1", "index.number_of_replicas": "1"}
    its_own = {
        **{"index.creation_date": "1769879160000", "index.provided_name": "tides_ab12cd_001", "index.uuid": "Hx3"},
        **{"index.version.created": "9040099", "index.routing.allocation.include._tier_preference": "data_content"},
    }
    return {"settings": {**usual, **(settings or {}), **its_own}, "mappings": mappings or {}, **more}


def fields(**of: Any) -> dict[str, Any]:
    return {"properties": of}


def test_our_own_file_is_what_it_asks_for() -> None:
    body = parse_json((CHECKOUT / "elasticsearch" / "index.json").read_text())
    settings = {"index.number_of_shards": "3", "index.number_of_replicas": "0"}
    mappings = {**body["mappings"], "dynamic": "false", "_meta": {"made_by": "sinkbench"}}
    assert compare(body, became(settings, mappings)) == compare({}, became()) == ([], [])


def test_a_setting_that_became_another_one_or_is_absent_is_lacking() -> None:
    body = {"settings": {"index": {"number_of_replicas": 2}, "refresh_interval": "1s", "codec": None, "hidden": True}}
    found = became({"index.number_of_replicas": "0"}, defaults={"index.refresh_interval": "1s", "index.hidden": "true"})
    assert compare(body, found) == (["index.number_of_replicas 2 was asked for, and is 0"], [])
    body = {"settings": {"index.sort.field": "t"}}
    assert compare(body, became()) == (["index.sort.field t was asked for, and is absent"], [])


def test_a_name_with_dots_makes_objects() -> None:
    body = {"mappings": fields(**{"a.b": {"type": "long"}, "c": {"type": "object", "properties": {}}})}
    found = became(mappings=fields(a={"properties": {"b": {"type": "long"}}}, c={"type": "object"}))
    assert compare(body, found) == ([], [])


def test_what_a_template_has_added_is_shown() -> None:
    found = became(
        {"index.default_pipeline": "stamp", "index.number_of_shards": "5"},
        fields(a={"type": "long"}, extra={"type": "date"}),
        aliases={"all": {}},
    )
    added = ["index.number_of_shards 5", "index.default_pipeline stamp", "the field extra", "the alias all"]
    assert compare({"mappings": fields(a={"type": "long"})}, found) == ([], added)


@pytest.mark.parametrize(
    "settings",
    [
        {"number_of_shards": 5, "number_of_replicas": 0, "refresh_interval": "1s"},
        {"index.number_of_shards": "5", "index.refresh_interval": "1s"},
    ],
)
def test_an_index_has_the_shards_and_replicas_of_the_topology_whatever_its_file_says(settings: dict[str, Any]) -> None:
    asked = {"settings": settings, "mappings": {"dynamic": False}}
    body = spread(asked, {"shards": "3", "replicas": "1", "index": "tides"}, {})
    named = {"refresh_interval": "1s", "number_of_shards": "3", "number_of_replicas": "1"}
    assert body["settings"] == {f"index.{name}": value for name, value in named.items()}
    assert body["mappings"] == {"dynamic": False}
    assert spread(asked, {}, {"index.codec": "x"})["settings"]["index.codec"] == "x"


@given(rate=st.floats(10, 1e5), interval_us=st.floats(1_000, 500_000), start_us=st.floats(0, 2e15))
def test_every_operation_is_found_between_two_readings(rate: float, interval_us: float, start_us: float) -> None:
    happened = start_us + np.arange(200) * 1e6 / rate
    readings = np.arange(start_us - interval_us, happened[-1] + 2 * interval_us, interval_us)[:100_000]
    highest = np.searchsorted(happened, readings, side="right") - 1
    times, widths = SeqNoTimes(readings.tolist(), highest.tolist()).at(np.arange(200))
    assert np.isfinite(times).all()
    # Microseconds since the epoch have that much room in a double.
    assert (np.abs(times - happened) <= interval_us + 1).all()
    assert np.allclose(widths, interval_us, atol=1)


def test_a_refresh_makes_all_of_an_interval_searchable_at_once() -> None:
    times, widths = SeqNoTimes([0, 100, 200], [-1, -1, 9]).at([0, 4, 9], at_once=True)
    assert times.tolist() == [150, 150, 150]
    assert SeqNoTimes.resolution_us(widths) == 50


def test_a_gap_makes_the_records_of_its_time_known_less_well_and_fills_nothing_in() -> None:
    times, widths = SeqNoTimes([0, 100, 900], [-1, 9, 19]).at([5, 15])
    assert widths.tolist() == [100, 800]
    assert 100 < times[1] < 900


def test_what_was_there_before_the_first_reading_or_came_after_the_last_is_not_known() -> None:
    times, widths = SeqNoTimes([0, 100], [3, 9]).at([2, 5, 12])
    assert np.isnan(times).tolist() == [True, False, True]
    assert np.isnan(widths).tolist() == [True, False, True]
    nothing, _ = SeqNoTimes([], []).at([1])
    assert np.isnan(nothing).all()
    assert np.isnan(SeqNoTimes.resolution_us(np.array([np.nan])))


@given(
    ahead_us=st.floats(-1e9, 1e9),
    ways=st.lists(st.tuples(st.floats(1, 1e5), st.floats(1, 1e5)), min_size=1, max_size=9),
)
def test_a_clock_is_known_to_half_of_the_quickest_round_trip(ahead_us: float, ways: list[tuple[float, float]]) -> None:
    asked = [(1e9, 1e9 + there + ahead_us, 1e9 + there + back) for there, back in ways]
    offset, resolution = offset_of(asked)
    reach = min(there + back for there, back in ways) / 2
    if offset:
        assert abs(offset - ahead_us) <= reach + 1e-3
        assert abs(resolution - reach) <= 1e-3
    else:
        assert abs(ahead_us) <= 2 * reach + 1e-3
    assert offset_of([(0.0, 2_000_500.0, 1_000.0), (5_000.0, 2_005_050.0, 5_100.0)]) == (2_000_000.0, 50.0)


def test_each_shard_has_its_highest_number_and_one_that_does_not_answer_makes_the_reading_a_gap() -> None:
    answers = [{"status": 200, "aggregations": {"last": {"value": value}}} for value in (16.0, None, 0.0)]
    assert highest_found(answers) == [16.0, -1.0, 0.0]
    for at in range(3):
        # Without it the others' numbers would be taken for those of its neighbours.
        with pytest.raises(LookupError):
            highest_found([*answers[:at], {"status": 503}, *answers[at + 1 :]])


def _busy(asked: Request) -> Response:
    if "jvm" in asked.url.path:
        return Response(status_code=429)
    return JSONResponse({"nodes": {}, "indices": {}}, headers={"x-elastic-product": "Elasticsearch"})


def test_signs_that_cannot_be_read_do_not_hide_what_is_stored_for_longer_than_one_reading() -> None:
    with served(Starlette(routes=[Route("/{path:path}", _busy)])) as port:
        nodes = Nodes(Elasticsearch(f"http://127.0.0.1:{port}"), lambda index: None)
        with pytest.raises(ServiceError):
            nodes.reading("tides")
        assert nodes.reading("tides").stored == 0


ANSWERS = {
    "/": {"name": "n", "version": {"distribution": "opensearch", "number": "2.19.1"}},
    "/_nodes/_local": {"nodes": {"AbC": {"version": "2.19.1"}}},
}
OPENSEARCH = Starlette(routes=[Route(path, lambda asked: JSONResponse(ANSWERS[asked.url.path])) for path in ANSWERS])


def test_opensearch_is_no_sink_of_elasticsearchs() -> None:
    with served(OPENSEARCH) as port:
        there = endpoints(sinks={"elasticsearch": Endpoint(f"http://127.0.0.1:{port}", options={"index": "tides"})})
        with pytest.raises(StackError) as refused:
            open_sink("elasticsearch", there, CHECKOUT)
    said = str(refused.value)
    assert said.startswith(f"elasticsearch at http://127.0.0.1:{port}: its answers bear no x-elastic-product: it is")
    assert said.endswith("sinkbench supports Elasticsearch 8.19 and 9; use such a one")
