"""A request that Kafka's client gets no answer to: nobody waits for it for ever, nor asks that client again."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from sinkbench.errors import ServiceError, ServiceTimeout
from sinkbench.services import kafka as module
from sinkbench.services.kafka import Kafka

HERE = "127.0.0.1:1"


class Client:
    """Answers each request with an error, or never."""

    def __init__(self, code: int | None = None) -> None:
        self._code = code

    def list_consumer_group_offsets(self, asked: list[Any], **more: Any) -> dict[str, Future[Any]]:
        future: Future[Any] = Future()
        if self._code is not None:
            future.set_exception(KafkaException(KafkaError(self._code)))
        return {asked[0].group_id: future}


def test_the_next_one_has_another_client() -> None:
    asked, client = Kafka(HERE), Client(KafkaError._TIMED_OUT)
    asked._admin = client
    with pytest.raises(ServiceError, match="_TIMED_OUT"):
        asked.committed("connect-mine", "tides")
    assert isinstance(asked._admin, AdminClient)


def test_an_answer_that_is_an_error_is_one() -> None:
    asked, client = Kafka(HERE), Client(KafkaError.COORDINATOR_NOT_AVAILABLE)
    asked._admin = client
    with pytest.raises(ServiceError, match="COORDINATOR_NOT_AVAILABLE"):
        asked.committed("connect-mine", "tides")
    assert asked._admin is client


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MORE_SECONDS", 0.01)
    asked = Kafka(HERE, timeout_seconds=0.01)
    asked._admin = Client()
    with pytest.raises(ServiceTimeout, match=r"Kafka at 127.0.0.1:1: no answer in time"):
        asked.committed("connect-mine", "tides")
    assert isinstance(asked._admin, AdminClient)
