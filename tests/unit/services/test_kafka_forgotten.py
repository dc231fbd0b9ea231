"""A request that Kafka's client forgets: nobody waits for it for ever, nor for the next one of that client."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from sinkbench.errors import ServiceTimeout
from sinkbench.services import kafka as module
from sinkbench.services.kafka import Kafka


class Forgetful:
    """A client all of whose requests have no answer."""

    def list_consumer_group_offsets(self, asked: list[Any], **more: Any) -> dict[str, Future[Any]]:
        return {asked[0].group_id: Future()}


def test_it_is_given_up_and_the_next_one_has_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kafka._answer, "__defaults__", (0.01,))
    asked = Kafka("127.0.0.1:1")
    forgetful = Forgetful()
    asked._admin = forgetful  # type: ignore[assignment]
    with pytest.raises(ServiceTimeout, match=r"Kafka at 127.0.0.1:1: no answer for 0.01 s"):
        asked.committed("connect-mine", "tides")
    assert asked._admin is not forgetful
    assert isinstance(asked._admin, module.AdminClient)


def test_it_has_a_little_longer_than_the_client_itself_gives_it() -> None:
    assert module.TIMEOUT_SECONDS < module.FORGOTTEN_SECONDS < module.LATEST_SECONDS
