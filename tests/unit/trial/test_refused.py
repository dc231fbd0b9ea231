"""Why records are lost, on a cluster without services."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sinkbench.errors import ServiceError
from sinkbench.plan.cells import expand
from sinkbench.sinks import Refused
from sinkbench.trial import audit
from sinkbench.trial.audit import why_refused
from sinkbench.trial.names import Names
from tests.support.fakecluster import FakeCluster, resources
from tests.support.trials import plan_of

PLAN = plan_of("elasticsearch/camel-bulk")
CELL = expand(PLAN, 3)[0]
NAMES = Names.of("abcdef_001")


def record(seq: int) -> bytes:
    return json.dumps({"bench": {"run": NAMES.trial, "seq": seq}}).encode()


AROUND = json.dumps({"schema": {}, "payload": json.loads(record(2))}).encode()


@pytest.mark.parametrize(
    ("error", "sent", "form", "why", "written"),
    [
        (Refused("failed to parse"), [b"{", record(1), record(2), record(3)], "document", "failed to parse", 2),
        # The sink takes the record, or does not answer.
        (None, [record(2)], "document", None, 2),
        (ServiceError("no answer"), [record(2)], "document", None, 2),
        # No lost record is at hand.
        (Refused("no"), [record(1)], "document", None, None),
        # The document is written without what is around it; a row is not written by a client of documents.
        (Refused("no"), [AROUND], "document-schema", "no", 2),
        (Refused("no"), [json.dumps({"bench_run": NAMES.trial, "bench_seq": 2}).encode()], "row", None, None),
    ],
)
def test_a_lost_record_is_written_and_the_sink_says_why_not(
    error: Exception | None,
    sent: list[bytes],
    form: Any,
    why: str | None,
    written: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[bytes] = []

    def write(batch: list[bytes]) -> None:
        tried.extend(batch)
        if error is not None:
            raise error

    writer = SimpleNamespace(batch=lambda records: records, write=write, close=lambda: None)
    monkeypatch.setattr(audit, "open_writer", lambda to: writer)
    cluster: Any = FakeCluster(PLAN, sent=sent)
    cluster.stack.endpoints.sinks = {"elasticsearch": None}
    own = resources(cluster, replace(CELL, form=form))
    assert why_refused(own, lambda seq: seq >= 2) == why
    assert tried == ([] if written is None else [record(written)])
