"""What index.json asks for, against what became of it."""

from typing import Any

import pytest

from loadgen.reading import parse_json
from sinkbench.settings import CHECKOUT
from sinkbench.sinks.elasticsearch.index import compare, spread

ITS_OWN = {
    **{"index.creation_date": "1769879160000", "index.provided_name": "tides_ab12cd_001", "index.uuid": "Hx3"},
    **{"index.version.created": "9040099", "index.routing.allocation.include._tier_preference": "data_content"},
}


def became(settings: dict[str, Any] | None = None, mappings: Any = None, **more: Any) -> dict[str, Any]:
    """What Elasticsearch tells of an index."""
    usual = {"index.number_of_shards": "1", "index.number_of_replicas": "1"}
    return {"settings": {**usual, **(settings or {}), **ITS_OWN}, "mappings": mappings or {}, **more}


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
