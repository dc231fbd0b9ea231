"""Who else is there when a race begins."""

from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.errors import StackError
from sinkbench.plan.plan import Plan
from sinkbench.race import others
from sinkbench.race.others import also_there, in_words, refusal
from sinkbench.services.access import Access
from sinkbench.trial.others import Others
from tests.support.fakecluster import FakeCluster

WORKER = "http://127.0.0.1:18083"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    monkeypatch.setattr(others, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(others, "sinks_of", lambda endpoints: ["postgres"])
    return FakeCluster(Plan.model_validate({"name": "p", "pipelines": ["postgres/jdbc"]}))


def found(cluster: FakeCluster, *looks: Others, shared: bool) -> list[str]:
    cluster.meets = list(looks)
    cluster.stack.endpoints = SimpleNamespace(shared=shared, connect={"connect-1": WORKER}, connect_access=Access())
    fake: Any = cluster
    return also_there(fake)


def test_a_connector_that_runs_on_a_stack_of_ones_own_is_refused_with_what_to_do(cluster: FakeCluster) -> None:
    with pytest.raises(StackError) as refused:
        found(cluster, Others({"by-hand": 3}), shared=False)
    said = str(refused.value)
    assert said.startswith(
        "connector by-hand (3 tasks) runs on this stack, and would share workers, CPU and connections"
    )
    assert f"curl -X DELETE {WORKER}/connectors/by-hand" in said
    assert "\n" not in said


def test_several_connectors_are_all_named() -> None:
    said = refusal(Others({"a": 1, "b": 2}), WORKER)
    assert said.startswith("connector a (1 task) and connector b (2 tasks) run on this stack")
    secured = refusal(Others({"a": 1}), WORKER, "curl -u bench")
    assert f"`curl -u bench -X DELETE {WORKER}/connectors/a`" in secured
    many = refusal(Others({f"c{number}": 1 for number in range(8)}), WORKER)
    assert "connector c4 (1 task) and 3 more connectors run" in many


def test_on_clusters_of_others_it_is_named(cluster: FakeCluster) -> None:
    assert found(cluster, Others({}), Others({}), shared=True) == []
    look = Others({"by-hand": 3}, connections={"postgres": 4})
    assert found(cluster, look, look, shared=True) == [
        "connector by-hand (3 tasks) running: it shares workers, CPU and connections",
        "4 connections to postgres open: no trial counts them, but they share what it has of these",
    ]


def test_a_load_is_named_and_a_record_now_and_then_is_not() -> None:
    before = Others({}, {"orders": 0, "connect-status": 0}, {"orders of postgres": 0})
    after = Others({}, {"orders": 900, "connect-status": 9}, {"orders of postgres": 900})
    assert [line.split(":")[0] for line in in_words(before, after)] == [
        "records going into the topic orders",
        "records going into orders of postgres",
    ]
