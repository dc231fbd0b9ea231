"""One row a key and your own records in an audit, and why records are lost, on a cluster without services."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sinkbench.analysis.content import Content
from sinkbench.analysis.keyed import keyed_by
from sinkbench.errors import ServiceError
from sinkbench.load.records import keep_records
from sinkbench.plan.cells import expand
from sinkbench.plan.entries import known_pipelines, read_connector
from sinkbench.plan.plan import PlanLoad
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Refused
from sinkbench.stack import Endpoints
from sinkbench.trial import audit
from sinkbench.trial.audit import counted, why_refused
from sinkbench.trial.names import Names
from tests.support.fakecluster import FakeCluster, FakeSink, drained, resources
from tests.support.trials import plan_of

CONNECTORS = CHECKOUT / "connectors"
UPSERT = read_connector(CONNECTORS / "postgres" / "jdbc-upsert.json")
NOWHERE = Endpoints(kafka="", connect={}, worker_ids={})
CHANGES = ["g-1", "g-2", "g-1", "g-3", "g-1", "g-2"]


def test_of_the_shipped_connectors_two_keep_one_row_a_key() -> None:
    found = {name: keyed_by(read_connector(CONNECTORS / f"{name}.json")) for name in known_pipelines(CONNECTORS)}
    assert {name: key for name, key in found.items() if key} == {
        "elasticsearch/camel-keyed": "transforms.id.headers",
        "postgres/jdbc-upsert": "primary.key.mode",
    }


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"insert.mode": "INSERT"}, None),
        ({"primary.key.mode": "kafka"}, None),
        ({"transforms": "at", "transforms.at.offset.field": "offset"}, None),
        (
            {"connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector", "pk.mode": "record_key"},
            "primary.key.mode",
        ),
        ({"connector.class": "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector"}, "key.ignore"),
        ({"connector.class": "a.ElasticsearchSinkConnector", "key.ignore": True}, None),
        ({"connector.class": "a.ElasticsearchSinkConnector", "key.ignore": False}, "key.ignore"),
    ],
)
def test_what_says_so_is_named(changed: dict[str, Any], key: str | None) -> None:
    assert keyed_by({**UPSERT, **changed}) == key


class Keyed(FakeCluster):
    """Its connector keeps one row a key."""

    def config(self, *of: Any) -> dict[str, str]:
        return {**super().config(*of), **UPSERT}


def cluster_of(monkeypatch: pytest.MonkeyPatch, rows: list[int], **load: Any) -> Any:
    """One whose table has these `bench.seq`."""
    chunks = [np.array(rows[:2]), np.array(rows[2:], dtype=int)]
    monkeypatch.setattr(FakeSink, "sequences", lambda self, target, run: iter(chunks))
    monkeypatch.setattr(FakeSink, "count", lambda self, target: len(rows))
    return Keyed(plan_of("postgres/jdbc-upsert", load=load))


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        # Of twelve records, the file twice, these are the last of their keys.
        ([9, 10, 11], {}),
        ([9, 4, 11], {"stale": ["g-1"]}),
        ([9, 11], {"missing": ["g-1"]}),
        # A row of another load, and one too many.
        ([9, 10, 11, 10, 99], {}),
    ],
)
def test_your_own_records_are_audited_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[int], wrong: dict[str, list[str]]
) -> None:
    path = tmp_path / "changes.ndjson"
    path.write_text("".join(json.dumps({"gauge": gauge}) + "\n" for gauge in CHANGES))
    load = {"records": str(path), "key": "gauge"}
    with keep_records(PlanLoad.model_validate(load), lambda: NOWHERE) as kept:
        cluster = cluster_of(monkeypatch, rows, **load)
        cluster.records = kept
        found: Any = counted(resources(cluster, records=12))
    made = found.result()
    assert found.wrong_keys() == wrong
    extra = max(len(rows) - 4, 0)
    assert (made.lost, made.superseded, made.duplicates, made.foreign) == (0, 9, extra, extra)


def test_so_are_those_of_noaa_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    record = drained(cluster_of(monkeypatch, [19_999, 19_998, 19_997, 19_996], keys=4))
    assert record.reasons == []
    assert (record.audit.stored, record.audit.superseded, record.audit.clean) == (4, 19_996, True)


def test_what_is_altered_of_your_own_records_is_named_by_the_records_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "meters.ndjson"
    path.write_text('{"n": 1}\n{"n": 18446744073709551615}\n')
    plan = plan_of(load={"records": str(path)})
    monkeypatch.setattr(audit, "content_of", lambda *of: Content(60, 1, altered_seqs=(5,)))
    monkeypatch.setattr(FakeSink, "some", lambda *of: {5: {"n": -1, "bench": {"seq": 5}}})
    cluster: Any = FakeCluster(plan)
    with keep_records(plan.load, lambda: NOWHERE) as cluster.records:
        found = audit.stored_content(resources(cluster))
    assert found is not None
    assert found.how.startswith("n changed; n from 18446744073709551615 to -1, read as a long")


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
    assert why_refused(resources(cluster, replace(CELL, form=form)), lambda seq: seq >= 2) == why
    assert tried == ([] if written is None else [record(written)])
