"""What can be told from Connect's answers."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from sinkbench.errors import ConnectError
from sinkbench.services import connect
from sinkbench.services.access import Access, curl
from sinkbench.services.connect import (
    ConnectCluster,
    ConnectorStatus,
    Task,
    Validation,
    is_even,
    placement,
    validation_of,
)
from tests.support.ports import free_ports
from tests.support.tlsserver import issue, served


def test_every_worker_is_counted_and_one_that_is_not_known_stands_for_itself() -> None:
    tasks = (Task(0, "RUNNING", "a:1"), Task(1, "RUNNING", "a:1"), Task(2, "RUNNING", "c:1"))
    found = placement(ConnectorStatus("RUNNING", "", tasks), {"a:1": "connect-1", "b:1": "connect-2"})
    assert found == {"connect-1": 2, "connect-2": 0, "c:1": 1}
    assert not is_even(found)
    assert is_even({"a": 2, "b": 1})
    assert is_even({})


def key(name: str, value: object, *errors: str, kind: str | None = "STRING") -> dict[str, object]:
    """A key as Connect answers with it; of no kind if nothing declares it."""
    definition = None if kind is None else {"name": name, "type": kind}
    return {"definition": definition, "value": {"name": name, "value": value, "errors": list(errors)}}


def test_a_validation_lists_what_is_declared_and_keeps_no_secret() -> None:
    given = {"batch.size": "many", "connection.password": "[hidden]", "consumer.override.max.pol.records": "5"}
    (size, password, override) = given
    configs = [
        key(size, given[size], "Invalid value many:\n  not a number"),
        key(password, given[password], kind="PASSWORD"),
        key(override, given[override], kind=None),
        key("topics", None),
    ]
    assert validation_of({"configs": configs}) == Validation(
        frozenset({size, password, "topics"}),
        {"batch.size": ("Invalid value many: not a number",)},
        {name: value for name, value in given.items() if name != "connection.password"},
    )


def test_a_worker_whose_certificate_expired_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So long it would be asked, and the message says so.
    monkeypatch.setattr(connect, "REBALANCE_SECONDS", 2.0)
    day = timedelta(days=1)
    expired, good = issue(tmp_path, "expired", begins=-3 * day, ends=-day), issue(tmp_path, "good")
    none = Starlette(routes=[Route("/connectors", lambda request: JSONResponse([]))])
    with served(none, expired) as there, served(none, good) as other:
        urls = [f"https://127.0.0.1:{port}" for port in (there, other)]
        with (
            ConnectCluster(urls[:1], Access(ca=expired.ca)) as cluster,
            pytest.raises(ConnectError, match=rf"^{urls[0]}: .*certificate has expired"),
        ):
            cluster.connectors()
        # Another one that can be trusted answers for both.
        with ConnectCluster(urls, Access(ca=good.ca)) as cluster:
            assert cluster.connectors() == []


def test_curl_gets_all_that_lets_a_person_in_but_no_secret() -> None:
    access = Access(user="o'neil $HOME", password="swordfish", ca=Path("/a b.pem"))  # noqa: S106
    assert shlex.split(curl(access)) == ["curl", "--cacert", "/a b.pem", "-u", "o'neil $HOME"]
    assert curl(Access()) == "curl"


def test_an_interrupt_shortens_the_wait_of_another_thread_for_dead_workers() -> None:
    (port,) = free_ports(1)
    with ConnectCluster([f"http://127.0.0.1:{port}"]) as cluster, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cluster.delete, "gone")
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.5)
        cluster.patience_seconds = 0.1
        with pytest.raises(ConnectError, match="did not take DELETE"):
            waiting.result(timeout=20)
