"""What is proposed for records fits what they are, and is what the sinks demand of a file."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.analysis.fields import survey
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.elasticsearch.index import propose_index
from sinkbench.sinks.postgres.asking import propose_table

ORDER: dict[str, Any] = {
    "id": "o-1",
    "total": 12.5,
    "paid": True,
    "at": "2026-01-31",
    "customer": {"id": 7, "it's": "here"},
    **{"lat": 47.4, "lon": 8.5},
    "lines": [{"sku": "a", "pieces": 2}],
    "text": "a long sentence that is looked for by its words",
    "where": {"type": "Point", "coordinates": [8.5, 47.4]},
    "odd": 1,
}
FOUND = survey([ORDER, {**ORDER, "odd": {"x": 1}}])


def test_an_index_has_a_type_for_each_member_and_bench_as_the_audit_needs_it() -> None:
    proposal = propose_index(FOUND, CHECKOUT, "orders.ndjson")
    body = json.loads(proposal.text)
    usual = json.loads((CHECKOUT / "elasticsearch" / "index.json").read_text())
    properties = body["mappings"]["properties"]
    assert properties.pop("bench") == usual["mappings"]["properties"]["bench"]
    assert body["settings"] == usual["settings"]
    assert body["mappings"]["dynamic"] is False
    assert properties["customer"]["properties"]["id"] == {"type": "long"}
    assert properties["lines"]["properties"]["sku"]["type"] == "keyword"
    assert {name: each.get("type") for name, each in properties.items()} == {
        "id": "keyword", "total": "double", "paid": "boolean", "at": "date", "customer": None, "lat": "double",
        "lon": "double", "lines": None, "text": "text", "where": "geo_point",
    }  # fmt: skip
    why = "a value in some records, an object in others"
    assert proposal.left_out == body["mappings"]["_meta"]["not_indexed"] == {"odd": why, "odd.x": why}


def test_a_table_has_an_index_for_each_member_that_is_asked_for() -> None:
    text = propose_table(FOUND, CHECKOUT, "orders.ndjson").text
    assert text.startswith((CHECKOUT / "postgres" / "schema.sql").read_text().rstrip())
    for made in (
        "((payload ->> 'id'));",
        "(((payload ->> 'total')::numeric));",
        "((payload ->> 'at'));",
        "(((payload -> 'customer' ->> 'id')::numeric));",
        "((payload -> 'customer' ->> 'it''s'));",
        "USING gin ((payload -> 'lines') jsonb_path_ops);",
        "USING gin (to_tsvector('simple', payload ->> 'text'));",
        "USING gist (point((payload ->> 'lon')::float8, (payload ->> 'lat')::float8));",
        "USING gist (point((payload -> 'where' -> 'coordinates' ->> 0)::float8,",
    ):
        assert f"CREATE INDEX ON tides {made}" in text
    assert "-- no index for odd: a value in some records" in text
    assert text.count("'lines'") == 1


def test_what_would_be_too_many_indexes_are_comments() -> None:
    proposal = propose_table(survey([{f"n{number}": number for number in range(25)}]), CHECKOUT, "x\n; DROP TABLE y")
    assert len([line for line in proposal.text.splitlines() if line.startswith("CREATE INDEX")]) == 20
    assert proposal.text.count("-- CREATE INDEX") == 5
    assert not any(line.startswith(";") for line in proposal.text.splitlines())
    assert proposal.notes == ("5 further indexes of PostgreSQL's table are comments",)


def mapped(records: list[dict[str, Any]]) -> tuple[dict[str, Any], Mapping[str, str]]:
    proposal = propose_index(survey(records), CHECKOUT, "x")
    properties = json.loads(proposal.text)["mappings"]["properties"]
    return {name: each for name, each in properties.items() if name != "bench"}, proposal.left_out


def test_a_name_with_dots_is_a_path_in_an_index_and_a_name_in_a_table() -> None:
    pod = {"pod": "a", "labels": {"app": "gauge", "app.kubernetes.io/name": "tide", "tier.x": 1}}
    properties, left_out = mapped([pod])
    assert properties["labels"] == {"properties": {"tier": {"properties": {"x": {"type": "long"}}}}}
    assert {*left_out} == {"labels.app", "labels.app.kubernetes.io/name"}
    assert all(reason.startswith("Elasticsearch reads dots as a path") for reason in left_out.values())
    table = propose_table(survey([pod]), CHECKOUT, "x")
    assert "((payload -> 'labels' ->> 'app.kubernetes.io/name'));" in table.text
    assert table.left_out == {}


@pytest.mark.parametrize(
    ("record", "shown", "why"),
    [
        ({"_id": "7"}, "_id", "Elasticsearch uses the name itself"),
        ({"": 1}, "''", "Elasticsearch has no fields of blank names"),
        ({" ": 1}, "' '", "Elasticsearch has no fields of blank names"),
        ({"a..b": 1}, "a..b", "Elasticsearch has no fields of blank names"),
        ({"x" * 600: 1}, "x" * 80, "it has more than 20 levels, or names of more than 512"),
        ({".".join("a" * 21): 1}, ".".join("a" * 21), "it has more than 20 levels"),
    ],
)
def test_a_name_that_elasticsearch_cannot_take_is_told(record: dict[str, Any], shown: str, why: str) -> None:
    properties, left_out = mapped([{**record, "fine": 1}])
    assert {*properties} == {"fine"}
    assert left_out[shown].startswith(why)


def test_a_number_beyond_any_sinks_is_a_word() -> None:
    properties, _ = mapped([{"n": 10**400, "empty": "x"}, {"n": 1, "empty": {}}])
    assert {name: each["type"] for name, each in properties.items()} == {"n": "text"}


NAMES = st.sampled_from(["a", "b", "a.b", "a.b.c", "b.a", "", " ", ".", "a..b", "_id", "_x", "\0", "'", '"\n'])
RECORDS = st.dictionaries(
    NAMES,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["w", "2026-01-31", "1.5", "47.4,8.5"]),
        lambda below: st.lists(below, max_size=2) | st.dictionaries(NAMES, below, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


def fits(value: Any, mapping: Mapping[str, Any] | None) -> bool:
    """Whether an index that maps a field so takes a value there, by how Elasticsearch reads names with dots."""
    if mapping is None or value is None:
        return True
    if isinstance(value, list):
        return all(fits(each, mapping) for each in value)
    if not isinstance(value, dict):
        return "type" in mapping
    for name, below in value.items():
        found: Mapping[str, Any] | None = mapping
        for step in name.split("."):
            if found is not None and "type" in found:
                return False
            found = None if found is None else found["properties"].get(step)
        if not fits(below, found):
            return False
    return "type" not in mapping


@given(st.lists(RECORDS, min_size=1, max_size=4))
@settings(deadline=None)
def test_an_index_takes_the_values_of_the_records_that_it_was_proposed_for(records: list[dict[str, Any]]) -> None:
    properties, _ = mapped(records)
    assert all(fits(record, {"properties": properties}) for record in records)
    assert "\0" not in propose_table(survey(records), CHECKOUT, "x").text
