"""The user's own records are read once for a run, and sent to each load generator that does not have them."""

import json
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from loadgen.dataset.store import Dataset
from loadgen.summary import LoadName
from sinkbench.errors import PlanError, TrialFailed
from sinkbench.load.part import RemotePart
from sinkbench.load.records import keep_records
from sinkbench.plan.plan import PlanLoad
from sinkbench.stack import Endpoints
from tests.support.present import present

STACK = Endpoints(kafka="b1:9092,b2:9092", connect={}, worker_ids={}, kafka_settings={"sasl.username": "me"})
not_asked = Mock(side_effect=AssertionError("the stack was asked"))


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = tmp_path / "orders.ndjson"
    path.write_text('{"id": 1}\n{"id": 22}\n')
    return str(path)


def test_they_are_kept_in_a_file_for_as_long_as_they_are_needed(orders: str) -> None:
    with keep_records(PlanLoad(records=orders, key="id"), not_asked) as found:
        kept = present(found)
        assert Dataset.read(kept.path).value(1) == b'{"id": 22}'
        assert kept.facts.with_key == 2
        assert kept.largest_bytes > 100
    assert not kept.path.exists()
    table = Path(orders).with_name("t.txt")
    table.write_text("1,2\n")
    with keep_records(PlanLoad(records=str(table), delimiter=",", header=False), not_asked) as found:
        assert Dataset.read(present(found).path).value(0) == b'{"column0": 1, "column1": 2}'
    with keep_records(PlanLoad(), not_asked) as found:
        assert found is None


@pytest.mark.parametrize(
    ("load", "why"),
    [
        ({"records": "none.ndjson"}, "load.records: none.ndjson: there is no such file"),
        ({"records": "kafka://k"}, "load.records: kafka://k: names no topic; write kafka://HOST:PORT/TOPIC"),
        ({"records": "kafka://u:hunter2@k:1/t"}, "load.records: kafka://"),
        ({"records": "none.ndjson", "cluster": {}}, "load.cluster: is for a topic"),
        ({"records": "kafka://b:1/t", "cluster": {"sasl.password": "hunter2"}}, "load.cluster.sasl.password must not"),
        ({"records": "kafka://b:1/t", "cluster": {"acks": "1"}}, "load.cluster.acks is not a setting for SASL"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(load: dict[str, object], why: str) -> None:
    with pytest.raises(PlanError) as refused, keep_records(PlanLoad.model_validate(load), lambda: STACK):
        pass
    assert why in str(refused.value)
    assert [each for each in ("hunter2", "\n") if each in str(refused.value)] == []


class Generator:
    """A load generator's interface to its records."""

    def __init__(self, there: str | None, answer: int = 201) -> None:
        self.there, self.answer, self.sent = there, answer, b""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, text=json.dumps(self.there and {"sha256": self.there}))
        self.sent = request.read()
        return httpx.Response(self.answer, json={"error": "too many"})


def give(generator: Generator, load: PlanLoad) -> bytes:
    name = LoadName(run="r", topic="t", first_seq=0, count=1)
    with httpx.Client(transport=httpx.MockTransport(generator)) as client, keep_records(load, not_asked) as found:
        kept = present(found)
        if generator.there == "same":
            generator.there = kept.facts.sha256
        RemotePart(client, "loadgen-1", "http://g", name).give(kept)
        return kept.path.read_bytes()


def test_they_are_sent_once(orders: str) -> None:
    for there in (None, "another"):
        generator = Generator(there)
        assert give(generator, PlanLoad(records=orders)) == generator.sent
    assert give(generator := Generator("same"), PlanLoad(records=orders))
    assert generator.sent == b""


def test_a_load_generator_that_does_not_take_them_is_named(orders: str) -> None:
    with pytest.raises(TrialFailed, match="loadgen-1 does not take the records: too many"):
        give(Generator(None, 413), PlanLoad(records=orders))
