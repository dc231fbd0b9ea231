"""Changes of connectors as KafkaConnector resources: what the API server is asked, and what the operator answers."""

from typing import Any

import pytest

from sinkbench.errors import ConnectError
from sinkbench.services.connect import ConnectCluster
from sinkbench.stack import connectors
from sinkbench.stack.operators import NotThere

NAME = "tides-ab12cd-001"
CONFIG = {"name": NAME, "connector.class": "a.Sink", "tasks.max": "3", "topics": "tides_ab12cd_001"}
FAILED = {"type": "NotReady", "status": "True", "message": "PUT /config returned 400 (Bad Request): topics is missing"}
DONE = {"observedGeneration": 2, "connectorStatus": {}, "conditions": [FAILED]}
LATE = "no operator has acted upon it in 0 s"


class Server(list[Any]):
    """Has one resource, or none, and notes the requests that change it."""

    found: Any = None

    def path(self, resource: str) -> str:
        return f"/apis/kafka.strimzi.io/v1/namespaces/ns/{resource}"

    def call(self, path: str, method: str = "GET", **more: Any) -> Any:
        if self.found is None:
            raise NotThere(path)
        if method != "GET":
            header, query = (more.get(each, {}) for each in ("header_params", "query_params"))
            self.append((method, path.rpartition("/")[2], *header.values(), more.get("body"), dict(query)))
        return self.found

    def list(self, resource: str) -> Any:
        return [] if self.found is None else [self.found]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(connectors, "OPERATOR_SECONDS", 0.0)
    monkeypatch.setattr(ConnectCluster, "config", lambda self, name: CONFIG)
    return Server()


def cluster_of(server: Any, status: Any) -> ConnectCluster:
    metadata = {"name": NAME, "labels": {"strimzi.io/cluster": "bench"}, "generation": 2}
    server.found = {"kind": "KafkaConnector", "metadata": metadata, "status": status}
    cluster = ConnectCluster([])
    cluster.changes = connectors.KafkaConnectors(server, "bench")
    return cluster


def test_connectors_are_changed_by_their_resources_alone(server: Any) -> None:
    with cluster_of(server, DONE) as cluster:
        cluster.create(NAME, CONFIG)
        cluster.set_tasks(NAME, 6)
        for change in (cluster.pause, cluster.resume, cluster.restart, cluster.restart_failed, cluster.delete):
            change(NAME)
    metadata = {"name": NAME, "labels": {"strimzi.io/cluster": "bench"}}
    spec = {"class": "a.Sink", "tasksMax": 3, "state": "running", "config": {"topics": "tides_ab12cd_001"}}
    resource = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaConnector", "metadata": metadata}
    restarts = ({"annotations": {"strimzi.io/restart": f"includeTasks{each}"}} for each in ("", ",onlyFailed"))
    states = ({"state": each} for each in ("paused", "running"))
    changes = [*({"spec": each} for each in states), *({"metadata": each} for each in restarts)]
    sent = {"fieldManager": "sinkbench", "fieldValidation": "Strict"}
    given = [{**resource, "spec": {**spec, "tasksMax": tasks}} for tasks in (3, 6)]
    assert server == [
        *(("PATCH", NAME, "application/apply-patch+yaml", each, {**sent, "force": "true"}) for each in given),
        *(("PATCH", NAME, "application/merge-patch+json", each, sent) for each in changes),
        ("DELETE", NAME, None, {}),
    ]


@pytest.mark.parametrize(
    ("observed", "code", "said"), [(2, "400", "is not ready: .* topics is missing"), (1, "400", LATE), (2, "409", LATE)]
)
def test_what_the_operator_did_not_do_is_told(server: Any, observed: int, code: str, said: str) -> None:
    condition = {**FAILED, "message": FAILED["message"].replace("400", code)}
    cluster = cluster_of(server, {"observedGeneration": observed, "conditions": [condition]})
    with cluster, pytest.raises(ConnectError, match=f"KafkaConnector {NAME}: {said}"):
        cluster.create(NAME, CONFIG)


def test_a_connector_without_a_resource_is_left_to_rest(server: Any) -> None:
    assert not connectors.KafkaConnectors(server, "bench")("DELETE", f"/connectors/{NAME}", None)


@pytest.mark.parametrize(("made", "lacking"), [([], [NAME]), ([NAME], [])])
def test_a_connector_that_its_operator_has_not_made_is_declared_alone(
    server: Any, monkeypatch: pytest.MonkeyPatch, made: list[str], lacking: list[str]
) -> None:
    monkeypatch.setattr(ConnectCluster, "connectors", lambda self: made)
    with cluster_of(server, DONE) as cluster:
        assert cluster.only_declared() == lacking
        # Another Connect of the namespace has its own.
        server.found["metadata"]["labels"]["strimzi.io/cluster"] = "other"
        assert cluster.only_declared() == []
