"""When a node of several is ready: it takes part in its cluster, or streams from its primary."""

from collections.abc import Set
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from loadgen.server import make_app
from loadgen.service import LoadService
from sinkbench.errors import ServiceError, StackError
from sinkbench.services.access import Access
from sinkbench.sinks.elasticsearch import service as elasticsearch
from sinkbench.stack import Endpoint, assembly
from sinkbench.stack.assembly import checks
from tests.support.endpoints import endpoints
from tests.support.tlsserver import issue, served

Told = list[str]


def awaited(says: Told, seconds: float, ended: dict[str, str], **answers: list[str | None]) -> None:
    """Waits for nodes that answer so, one after another; `b` is started once `a` is ready."""
    left = {name: iter(each) for name, each in answers.items()}
    waiting = {"b"}

    def start(ready: Set[str]) -> Set[str]:
        if "a" in ready and waiting:
            says.append("b is started")
            waiting.clear()
        return waiting

    assembly.await_ready(
        list(answers),
        lambda: {name: lambda each=each: next(each) for name, each in left.items()},  # type: ignore[misc]
        lambda: ended,
        lambda name: f"the log of {name}",
        seconds,
        says.append,
        start,
    )


def test_nodes_are_waited_for_and_started_once_those_that_they_need_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "POLL_SECONDS", 0.0)
    says: Told = []
    awaited(says, 60, {"b": "not started"}, a=["no", None], b=[None])
    assert says == ["a is ready", "b is started", "b is ready"]
    with pytest.raises(StackError, match=r"^a died while starting \(exit 1\); the end of its log:\nthe log of a$"):
        awaited(says, 60, {"a": "exit 1"}, a=["no"])
    with pytest.raises(StackError, match=r"^a was not ready in 0 s: no\nthe log of a$"):
        awaited(says, 0, {}, a=["no"], b=[None])


@pytest.mark.parametrize(
    ("found", "options", "problem"),
    [
        ({"status": "green", "number_of_nodes": 3}, {"nodes": "3"}, None),
        ({"status": "yellow", "number_of_nodes": 3}, {"nodes": "3"}, None),
        ({"status": "green", "number_of_nodes": 2}, {"nodes": "3"}, "its cluster has 2 of 3 nodes"),
        ({"status": "red", "number_of_nodes": 3}, {"nodes": "3"}, "its state is red"),
        # Of others' clusters the number of nodes is not known.
        ({"status": "green", "number_of_nodes": 1}, {}, None),
        ({"state": "green"}, {}, 'it is no Elasticsearch: {"state":"green"}'),
    ],
)
def test_a_node_of_elasticsearch_is_ready_once_it_has_found_the_others(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], options: dict[str, str], problem: str | None
) -> None:
    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=found)))
    monkeypatch.setattr(assembly, "http_client", lambda *_: client)
    assert elasticsearch.SERVICE.ready(Endpoint("http://node", options=options), False, 1.0) == problem


@pytest.mark.parametrize(
    ("there", "problem", "found"),
    [
        (frozenset({1, 2}), None, [None, None, "broker 3 is none of its cluster's yet"]),
        (frozenset({1, 2, 3}), None, [None, None, None]),
        (frozenset(), None, ["gone again"] * 3),
        (frozenset({1, 2, 3}), "no connection", ["no connection"] * 3),
    ],
)
def test_a_broker_is_ready_once_it_takes_part_in_its_cluster(
    monkeypatch: pytest.MonkeyPatch, there: frozenset[int], problem: str | None, found: list[str | None]
) -> None:
    client = Mock()
    client.return_value.problem.return_value = problem
    client.return_value.brokers.side_effect = None if there else ServiceError("gone again")
    client.return_value.brokers.return_value = there
    monkeypatch.setattr(assembly, "Kafka", client)
    brokers = {"kafka": "h:1", "kafka-2": "h:3", "kafka-east": "h:5"}
    asked = checks(endpoints(",".join(brokers.values()), brokers=brokers))
    assert list(asked) == list(brokers)
    assert [check() for check in asked.values()] == found
    # Each by its own address: another would answer in its place.
    assert [call.args[0] for call in client.call_args_list] == list(brokers.values())
    # One broker alone is only asked whether it answers, whatever its number is.
    assert [check() for check in checks(endpoints("h:1")).values()] == [problem]


@pytest.mark.parametrize(
    ("user", "password", "problem"),
    [("bench", "hunter2-hunter2", None), ("bench", "wrong-wrong", "HTTP 401 "), (None, None, "HTTP 401 ")],
)
def test_a_load_generator_is_ready_for_users_that_it_lets_in_and_another_server_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str | None, password: str | None, problem: str | None
) -> None:
    files = issue(tmp_path)
    with served(make_app(LoadService({}), users={"bench": "hunter2-hunter2"}), files) as port:
        access = Access(user=user, password=password, ca=files.ca)
        where = endpoints(loadgens={"loadgen-1": f"https://127.0.0.1:{port}"}, loadgen_access=access)
        found = checks(where, loadgens=True)["loadgen-1"]()
    assert found is None if problem is None else found is not None and found.startswith(problem)
    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, text="hello")))
    monkeypatch.setattr(assembly, "http_client", lambda *_: client)
    assert checks(where, loadgens=True)["loadgen-1"]() == "it is no load generator of this version: hello"
