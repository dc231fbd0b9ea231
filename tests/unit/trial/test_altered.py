"""Which members of your own records are altered, if none of those that were compared with the topic is."""

from pathlib import Path
from typing import Any

import pytest

from sinkbench.analysis.content import Content
from sinkbench.load.records import keep_records
from sinkbench.plan.plan import Plan
from sinkbench.stack import Endpoints
from sinkbench.trial import audit
from tests.support.fakecluster import FakeCluster, FakeSink, resources


def test_they_are_named_by_the_records_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "meters.ndjson"
    path.write_text('{"n": 1}\n{"n": 18446744073709551615}\n')
    plan = Plan.model_validate({"name": "p", "pipelines": ["postgres/jdbc"], "load": {"records": str(path)}})
    monkeypatch.setattr(audit, "content_of", lambda *of: Content(60, 1, altered_seqs=(5,)))
    monkeypatch.setattr(FakeSink, "some", lambda *of: {5: {"n": -1, "bench": {"seq": 5}}})
    cluster: Any = FakeCluster(plan)
    with keep_records(plan.load, lambda: Endpoints(kafka="", connect={}, worker_ids={})) as cluster.records:
        found = audit.stored_content(resources(cluster))
    assert found is not None
    assert found.how.startswith("n changed; n from 18446744073709551615 to -1, read as a long")
