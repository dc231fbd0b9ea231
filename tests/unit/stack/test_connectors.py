"""Changes of connectors as KafkaConnector resources: what the API server is asked, and what the operator answers."""

from typing import Any

import pytest

from sinkbench.errors import ConnectError
from sinkbench.services.connect import ConnectCluster
from sinkbench.stack import connectors
from sinkbench.stack.operators import NotThere

NAME, FOLDER = "tides-ab12cd-001", "/apis/kafka.strimzi.io/v1/namespaces/ns/"
CONFIG = {"name": NAME, "connector.class": "a.Sink", "tasks.max": "3", "topics": "tides_ab12cd_001"}
NOT_READY = {"type": "NotReady", "status": "True", "message": "PUT /config returned 400: topics.regex is missing"}
WRITE = [("fieldManager", "sinkbench"), ("fieldValidation", "Strict")]


class Server:
    """Answers with one resource, and notes other requests than reads."""

    def __init__(self, **status: Any) -> None:
        self.found = {"kind": "KafkaConnector", "metadata": {"name": NAME, "generation": 2}, "status": status}
        self.asked: list[Any] = []

    def path(self, resource: str) -> str:
        return FOLDER + resource

    def call(self, path: str, method: str = "GET", **more: Any) -> Any:
        if method != "GET":
            self.asked.append((method, path.rpartition("/")[2], more))
        return self.found


def cluster_of(server: Any, monkeypatch: pytest.MonkeyPatch) -> ConnectCluster:
    monkeypatch.setattr(connectors, "OPERATOR_SECONDS", 0.0)
    cluster = ConnectCluster([])
    cluster.changes = connectors.KafkaConnectors(server, "bench")
    monkeypatch.setattr(cluster, "config", lambda name: CONFIG)
    return cluster


def test_connectors_are_changed_by_their_resources_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(observedGeneration=2, connectorStatus={}, conditions=[NOT_READY])
    with cluster_of(server, monkeypatch) as cluster:
        cluster.create(NAME, CONFIG)
        cluster.set_tasks(NAME, 6)
        for change in (cluster.pause, cluster.resume, cluster.restart, cluster.restart_failed, cluster.delete):
            change(NAME)
    created, scaled, *changed, deleted = server.asked
    config = {"topics": "tides_ab12cd_001"}
    resource = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaConnector",
        "metadata": {"name": NAME, "labels": {"strimzi.io/cluster": "bench"}},
        "spec": {"class": "a.Sink", "tasksMax": 3, "state": "running", "config": config},
    }
    header = {"Content-Type": "application/apply-patch+yaml"}
    more = {"body": resource, "header_params": header, "query_params": [*WRITE, ("force", "true")]}
    assert created == ("PATCH", NAME, more)
    assert scaled[2]["body"]["spec"] == {**resource["spec"], "tasksMax": 6}  # type: ignore[dict-item]
    asked = ["includeTasks", "includeTasks,onlyFailed"]
    assert [each["body"] for _, _, each in changed] == [
        *({"spec": {"state": state}} for state in ("paused", "running")),
        *({"metadata": {"annotations": {"strimzi.io/restart": each}}} for each in asked),
    ]
    assert {each["header_params"]["Content-Type"] for _, _, each in changed} == {"application/merge-patch+json"}
    assert all(each["query_params"] == WRITE for _, _, each in changed)
    assert deleted == ("DELETE", NAME, {})


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"observedGeneration": 2, "conditions": [NOT_READY]}, f"{NAME}: is not ready: .* topics.regex is missing"),
        ({"observedGeneration": 1, "conditions": [NOT_READY]}, f"{NAME}: no operator has acted upon it in 0 s"),
    ],
)
def test_what_the_operator_did_not_do_is_told(status: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster_of(Server(**status), monkeypatch) as cluster, pytest.raises(ConnectError, match=said):
        cluster.create(NAME, CONFIG)


def test_a_connector_without_a_resource_is_left_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    monkeypatch.setattr(server, "call", lambda *asked, **more: (_ for _ in ()).throw(NotThere("none")))
    with cluster_of(server, monkeypatch) as cluster:
        assert cluster.changes is not None
        assert not cluster.changes("DELETE", f"/connectors/{NAME}", None)
