"""What is proposed for records fits what they are, and is what the sinks demand of a file."""

import json
from typing import Any

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
    assert proposal.notes == ("not indexed by Elasticsearch, but kept: odd, odd.x",)


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
    assert "-- no index for odd: " in text
    assert text.count("'lines'") == 1


def test_what_would_be_too_many_indexes_are_comments() -> None:
    proposal = propose_table(survey([{f"n{number}": number for number in range(25)}]), CHECKOUT, "x\n; DROP TABLE y")
    made = [line for line in proposal.text.splitlines() if line.startswith("CREATE INDEX")]
    assert len(made) == 20
    assert proposal.text.count("-- CREATE INDEX") == 5
    assert not any(line.startswith(";") for line in proposal.text.splitlines())
    assert proposal.notes == ("5 further indexes of PostgreSQL's table are comments",)
