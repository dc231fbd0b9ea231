"""What becomes of the exceptions of a service's client."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import httpx
import psycopg
import pytest
import trustme
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from elasticsearch import ApiError, TransportError
from elasticsearch import ConnectionError as NoConnection
from sinkbench.errors import ServiceError, ServiceTimeout, StackError
from sinkbench.secrets import conceal
from sinkbench.services.access import Access
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.connect_metrics import ConnectMetrics
from sinkbench.services.failures import in_one_line, map_exceptions, maps_exceptions
from sinkbench.services.http import http_errors, tls
from sinkbench.services.kafka import Kafka
from sinkbench.sinks import Destination, open_writer
from sinkbench.sinks.elasticsearch.sink import ElasticsearchSink
from sinkbench.sinks.postgres.sink import PostgresSink
from sinkbench.stack import Endpoint
from tests.support.ports import free_ports
from tests.support.tlsserver import served

SEARCH = (ApiError, TransportError)


@pytest.mark.parametrize(
    ("kinds", "error", "says"),
    [
        ((httpx.HTTPError,), httpx.ConnectError("refused"), "ConnectError: refused"),
        ((psycopg.Error,), psycopg.OperationalError("the server\nclosed"), "OperationalError: the server closed"),
        (SEARCH, NoConnection("refused"), "ConnectionError: refused"),
        (SEARCH, ApiError("index_not_found", meta=SimpleNamespace(status=404), body={}), "ApiError: "),
        ((KafkaException,), KafkaException(KafkaError(KafkaError._TRANSPORT)), "KafkaException: KafkaError{code=_TR"),
    ],
)
def test_a_clients_exception_becomes_one_of_ours_that_says_the_same(
    kinds: tuple[type[Exception], ...], error: Exception, says: str
) -> None:
    with pytest.raises(ServiceError) as raised, map_exceptions(*kinds):
        raise error
    assert str(raised.value).startswith(says)
    assert raised.value.__cause__ is error
    with pytest.raises(ZeroDivisionError), map_exceptions(*kinds):
        raise ZeroDivisionError


def test_no_answer_in_time_is_a_kind_of_its_own() -> None:
    with pytest.raises(ServiceTimeout), http_errors():
        raise httpx.ConnectTimeout("too long")
    with pytest.raises(ServiceError) as raised, http_errors():
        raise httpx.ConnectError("refused")
    assert not isinstance(raised.value, ServiceTimeout)


def test_a_text_is_one_short_line_without_a_secret_and_names_the_kind_of_a_foreign_error() -> None:
    conceal("geheimnis")
    said = in_one_line(psycopg.OperationalError("password geheimnis\n" + 300 * "x"))
    assert said.startswith("OperationalError: password *** xxx")
    assert len(said) == 200
    assert in_one_line(StackError("no table\nhere")) == "no table here"


@maps_exceptions(psycopg.Error)
class Client:
    """Fails in all the ways that a client can."""

    def __init__(self, *, fails: bool = False) -> None:
        if fails:
            self._fail()

    def call(self) -> None:
        self._fail()

    def rows(self) -> Iterator[int]:
        yield 1
        self._fail()

    def _fail(self) -> None:
        raise psycopg.OperationalError("inside")


def test_a_class_is_mapped_as_a_whole_generators_too() -> None:
    client = Client()
    rows = client.rows()
    assert next(rows) == 1
    for fails in (lambda: Client(fails=True), client.call, client.call, lambda: next(rows)):
        with pytest.raises(ServiceError, match="OperationalError: inside"):
            fails()
    assert Client.rows.__name__ == "rows"


def test_a_certificate_that_cannot_be_read_is_named_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"ca.pem: cannot be used as the CA: No such file"):
        tls(Access(ca=tmp_path / "ca.pem"))


def at(port: int) -> Endpoint:
    return Endpoint(f"http://127.0.0.1:{port}", options={"index": "tides"})


ASKS: dict[str, Callable[[int], object]] = {
    "count": lambda port: ElasticsearchSink(at(port), Path("index.json")).count("tides"),
    "sequences": lambda port: list(ElasticsearchSink(at(port), Path("index.json")).sequences("tides", "r")),
    "bulk": lambda port: open_writer(Destination("elasticsearch", "bulk", "t", at(port))).write(b"{}\n"),
    "postgres": lambda port: PostgresSink(f"host=127.0.0.1 port={port}", None, Path("schema.sql")),
    "copy": lambda port: open_writer(Destination("postgres", "COPY", "t", Endpoint(f"host=127.0.0.1 port={port}"))),
    "connect": lambda port: ConnectCluster([f"http://127.0.0.1:{port}"]).connectors(),
    "metrics": lambda port: ConnectMetrics({"connect-1": f"http://127.0.0.1:{port}/metrics"}).read("tides"),
}


@pytest.mark.parametrize("ask", ASKS)
def test_a_closed_port_ends_with_our_error(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sinkbench.services.connect.REBALANCE_SECONDS", 0.0)
    with pytest.raises(ServiceError, match="refused"):
        ASKS[ask](*free_ports(1))


def test_workers_are_searched_anew_when_none_answers() -> None:
    with served(Starlette(routes=[Route("/connectors", lambda request: JSONResponse(["mine"]))])) as port:
        known = iter([*free_ports(1), port])
        with ConnectCluster(lambda: [f"http://127.0.0.1:{next(known)}"]) as connect:
            assert connect.connectors() == ["mine"]


class Groups:
    """Answers about consumer groups by some brokers, the errors of others."""

    def __init__(self, states: Mapping[str, ConsumerGroupState], *codes: int) -> None:
        self.valid = [SimpleNamespace(group_id=name, state=state) for name, state in states.items()]
        self.errors = [KafkaError(code) for code in codes]

    def list_consumer_groups(self, **_: object) -> Future[Self]:
        future: Future[Self] = Future()
        future.set_result(self)
        return future

    def list_groups(self, group: str, **_: object) -> list[object]:
        raise KafkaException(*self.errors)


def test_a_group_of_which_nothing_is_known_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka("127.0.0.1:1")
    monkeypatch.setattr(kafka, "_admin", Groups({"other": ConsumerGroupState.STABLE}))
    assert [kafka.is_empty(name) for name in ("mine", "other")] == [True, False]
    monkeypatch.setattr(kafka, "_admin", Groups({"other": ConsumerGroupState.EMPTY}, KafkaError._TIMED_OUT))
    assert kafka.is_empty("other")
    with pytest.raises(ServiceError):
        kafka.is_empty("mine")
    with pytest.raises(StackError, match=r"still has members after 0 s: .*TIMED_OUT"):
        kafka.wait_until_empty("mine", 0.2)
    assert kafka.members("mine") is None


def test_clients_share_what_they_trust_until_its_file_changes(tmp_path: Path) -> None:
    assert tls(Access()) is tls(Access())
    ca = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(ca))
    first = tls(Access(ca=ca))
    assert first is tls(Access(ca=ca))
    assert first is not tls(Access())
    trustme.CA().cert_pem.write_to_path(str(ca))
    os.utime(ca, ns=(0, 1))
    assert tls(Access(ca=ca)) is not first
