"""What an index is made with where a plan sets it, on a cluster that takes everything."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.sinks import needed
from sinkbench.sinks.elasticsearch import sink as module
from sinkbench.sinks.elasticsearch.sink import ElasticsearchSink
from sinkbench.stack import Endpoint

FILE = {"settings": {"number_of_shards": 3, "index": {"refresh_interval": "1s"}}, "mappings": {"dynamic": False}}


class Cluster:
    """Makes every index as it is asked to."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.indices = SimpleNamespace(
            create=lambda index, body, wait_for_active_shards: self.bodies.append(body),
            get_settings=lambda index, **how: {index: self._made()},
            get=lambda index, **how: {index: self._made()},
            get_mapping=lambda index: {},
            update_aliases=lambda actions: None,
        )
        self.cat = SimpleNamespace(shards=lambda index, **how: [])
        self.options = lambda **how: self
        self.nodes = SimpleNamespace(info=lambda **how: {"nodes": {}})

    def _made(self) -> dict[str, Any]:
        settings = module.flat_settings(self.bodies[-1]["settings"])
        return {"settings": {name: str(value) for name, value in settings.items()}, "mappings": {"dynamic": "false"}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(module, "connect", lambda endpoint: made)
    return made


def test_what_a_plan_sets_comes_before_what_the_file_says(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text(json.dumps(FILE))
    endpoint = Endpoint("http://nowhere", "nowhere", options={"index": "tides"})
    sink = ElasticsearchSink(endpoint, tmp_path / "index.json")
    given = {"index.number_of_shards": "1", "index.translog.durability": "async"}
    settings = needed(sink.capabilities.service_settings, "service_settings")
    assert settings.refusal({"elasticsearch": given}) is None
    settings.apply({"elasticsearch": given})
    sink.create("tides_ab12cd_001")
    assert cluster.bodies[-1]["settings"] == {**given, "index.refresh_interval": "1s"}
    assert settings.revert() == []
    sink.create("tides_ab12cd_002")
    assert cluster.bodies[-1]["settings"] == FILE["settings"]
