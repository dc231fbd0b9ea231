"""Why records are lost, on a cluster without services."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sinkbench.errors import ServiceError
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.plan import Plan
from sinkbench.sinks import Refused
from sinkbench.trial import refused
from sinkbench.trial.names import Names
from sinkbench.trial.refused import why_refused
from sinkbench.trial.resources import Resources
from tests.support.fakecluster import FakeCluster, Quiet

PLAN = Plan.model_validate({"name": "p", "pipelines": ["elasticsearch/camel-bulk"]})
CELL = expand(PLAN, 3)[0]
NAMES = Names.of("abcdef_001")


def record(seq: int) -> bytes:
    return json.dumps({"bench": {"run": NAMES.trial, "seq": seq}}).encode()


class Writer:
    """Refuses every record."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.written: list[bytes] = []

    def batch(self, records: list[bytes]) -> list[bytes]:
        return records

    def write(self, batch: list[bytes]) -> None:
        self.written += batch
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        return


def asked(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, sent: list[bytes], cell: Cell = CELL
) -> tuple[str | None, Writer]:
    writer = Writer(error)
    monkeypatch.setattr(refused, "open_writer", lambda to: writer)
    cluster: Any = FakeCluster(PLAN, sent=sent)
    cluster.stack.endpoints.sinks = {"elasticsearch": None}
    own = Resources(cluster, cell, NAMES, 10, Quiet())
    return why_refused(own, lambda seq: seq >= 2), writer


def test_a_lost_record_is_written_and_the_sink_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    why, writer = asked(monkeypatch, Refused("failed to parse"), [b"{", record(1), record(2), record(3)])
    assert (why, writer.written) == ("failed to parse", [record(2)])


@pytest.mark.parametrize("error", [None, ServiceError("no answer")])
def test_a_sink_that_takes_the_record_or_does_not_answer_says_nothing(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    assert asked(monkeypatch, error, [record(2)])[0] is None


def test_without_a_lost_record_at_hand_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    why, writer = asked(monkeypatch, Refused("no"), [record(1)])
    assert (why, writer.written) == (None, [])


def test_of_another_form_the_document_is_written_without_what_is_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [json.dumps({"schema": {}, "payload": json.loads(record(2))}).encode()]
    why, writer = asked(monkeypatch, Refused("no"), sent, replace(CELL, form="document-schema"))
    assert (why, writer.written) == ("no", [record(2)])


def test_a_row_is_not_written_by_a_client_of_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [json.dumps({"bench_run": NAMES.trial, "bench_seq": 2}).encode()]
    why, writer = asked(monkeypatch, Refused("no"), sent, replace(CELL, form="row"))
    assert (why, writer.written) == (None, [])
