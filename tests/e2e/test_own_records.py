"""Records of somebody's own go through both sinks and keep their bytes, whatever their size and wherever they lie."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from loadgen.dataset.maker import DatasetMaker
from loadgen.dataset.source import open_dataset
from sinkbench.analysis.fields import survey
from sinkbench.errors import PlanError
from sinkbench.load.records import keep_records
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Destination, open_writer
from sinkbench.sinks.elasticsearch.index import propose_index
from sinkbench.sinks.elasticsearch.sink import ElasticsearchSink
from sinkbench.sinks.postgres.propose import propose_table
from sinkbench.sinks.postgres.sink import PostgresSink
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import one_trial
from tests.support.commands import Run

PLAN = """
pipelines: [elasticsearch/camel-bulk, postgres/jdbc]
trials: 1
load: {keys: 10_000, record_bytes: 512}
drain: {compiling_percent: 100, window_seconds: 2.5, pilot_seconds: 0.5, warm_up_seconds: 0.5}
"""
# Small batches: Elasticsearch takes no request of more than 100 MB.
SIZES = """
pipelines:
  - pipeline: elasticsearch/camel-bulk
    overrides: {{camel.aggregation.size: 20, consumer.override.max.poll.records: 20}}
  - pipeline: postgres/jdbc
    overrides: {{batch.size: 20, consumer.override.max.poll.records: 20}}
trials: 1
load: {{records: {file}, key: id, partitions: 6}}
"""
FROM_TOPIC = """
pipelines: [postgres/jdbc]
load: {{records: "{source}", partitions: 6}}
"""
PROPOSED = """
pipelines:
  - {{pipeline: elasticsearch/camel-bulk, target: movies.index.json}}
  - {{pipeline: postgres/jdbc, target: movies.sql}}
load: {{records: {file}, partitions: 6}}
"""
# Written as no program here would write them.
UNUSUAL = b'{"a":1.0,"e":1e2,"u":"\\u00e9\\/", "deep":{"n":null,"l":[1,  2]},"customer":{"id":%d}}'
BYTES = (100, 4_000, 1_000_000)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A packed file of 700 small records: fewer than a trial takes."""
    path = tmp_path / "orders.ndjson.gz"
    path.write_bytes(gzip.compress(b"\n".join(UNUSUAL % number for number in range(700))))
    return path


@pytest.fixture
def topic(bootstrap: str) -> Iterator[str]:
    """The name of a topic of the test's own, removed after it with its copy."""
    name = f"own-{uuid.uuid4().hex}"
    yield name
    admin = AdminClient({"bootstrap.servers": bootstrap})
    there = [each for each in admin.list_topics(timeout=10).topics if each.startswith(name)]
    for done in admin.delete_topics(there).values() if there else ():
        done.result()


@pytest.mark.long
def test_a_race_of_ones_own_records_is_audited_and_says_what_it_was_fed_with(
    stack: LocalStack, sinkbench: Run, tmp_path: Path, orders: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    done = sinkbench("race", "mine.yaml", "--records", orders.name, "--key", "customer.id")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "results" / "latest" / "summary.json").read_text())
    kept = summary["environment"]["records"]
    facts = open_dataset(str(orders), "customer.id").facts
    assert (kept["source"], kept["sha256"], kept["records"]) == (orders.name, facts.sha256, 700)
    assert kept["with_key"] == 700
    for cell in summary["cells"]:
        audit = cell["audit"]
        assert audit["produced"] == audit["stored"] > 700
        assert audit["lost"] == audit["duplicates"] == audit["altered"] == audit["foreign"] == 0
        assert audit["compared"] >= audit["checked"] > 700
    assert "they went round up to" in done.stdout
    # What is told of a plan that cannot be resumed is told of one with another file.
    summary_path = tmp_path / "results" / "latest" / "summary.json"
    summary_path.write_text(json.dumps({**summary, "complete": False}))
    trials = summary_path.parent / "trials.jsonl"
    trials.write_text(trials.read_text().splitlines()[0] + "\n")
    orders.write_bytes(gzip.compress(b'{"other": 1}'))
    refused = sinkbench("resume", "results/latest")
    assert refused.returncode == 2
    assert "environment records.sha256 was" in refused.stdout + refused.stderr


def test_records_of_100_bytes_and_of_a_megabyte_are_stored_as_they_were_sent(stack: LocalStack, tmp_path: Path) -> None:
    path = tmp_path / "sizes.ndjson"
    with path.open("wb") as file:
        for number in range(60):
            start = b'{"id": "k-%02d", "text": "' % number
            file.write(start + b"x" * (BYTES[number % 3] - len(start) - 2) + b'"}\n')
    for cell in (0, 1):
        record, _ = one_trial(stack, tmp_path, SIZES.format(file=path), 60, cell=cell)
        assert record.audit is not None, record.invalid
        assert (record.audit.stored, record.audit.clean, record.audit.checked) == (60, True, 60), record.invalid


def test_records_that_go_over_several_lines_are_stored_as_they_were_sent(stack: LocalStack, tmp_path: Path) -> None:
    path = tmp_path / "sizes.json"
    path.write_text(json.dumps([{"id": str(number), "below": {"list": [1, 2]}} for number in range(40)], indent=2))
    for cell in (0, 1):
        record, _ = one_trial(stack, tmp_path, SIZES.format(file=path), 40, cell=cell)
        assert record.audit is not None, record.invalid
        assert (record.audit.stored, record.audit.clean, record.audit.checked) == (40, True, 40), record.invalid


def copy(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loadgen", "run", "--no-progress", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def read(bootstrap: str, topic: str, count: int) -> list[tuple[int, bytes | None, bytes]]:
    """The time, the key and the value of so many records of a topic, by their times."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "read", "auto.offset.reset": "earliest"})
    found: list[tuple[int, bytes | None, bytes]] = []
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        give_up = time.monotonic() + 30
        while len(found) < count and time.monotonic() < give_up:
            found += [(each.timestamp()[1], each.key(), each.value()) for each in consumer.consume(count, timeout=1)]
    finally:
        consumer.close()
    return sorted(found, key=lambda each: each[0])


def test_a_topic_is_copied_with_its_keys_in_its_own_rhythm(bootstrap: str, kafka: Kafka, topic: str) -> None:
    kafka.create_topic(topic, 3)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, at in enumerate((0, 100, 1_100)):
        key = None if number == 1 else f"key-{number}"
        producer.produce(topic, UNUSUAL % number, key, timestamp=1_700_000_000_000 + at)
    producer.produce(topic, None, "key-0", timestamp=1_700_000_000_200)
    producer.flush(10)
    source = f"kafka://{bootstrap}/{topic}"
    done = copy(*("--bootstrap", bootstrap, "--topic", f"{topic}-copy"),
                *("--records", source, "--pace", "recorded", "--count", "3", "--run", "r"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 of them have no key" in done.stderr
    assert "1 without a value are left out" in done.stderr
    copied = read(bootstrap, f"{topic}-copy", 3)
    assert [key for _, key, _ in copied] == [b"key-0", None, b"key-2"]
    for number, (_, _, value) in enumerate(copied):
        assert value.startswith((UNUSUAL % number)[:-1] + b', "bench": {"run": "r", "seq": %d, ' % number)
    gaps = [after[0] - before[0] for before, after in pairwise(copied)]
    assert gaps[1] > 2 * gaps[0]


def test_a_topic_is_read_up_to_its_end_at_the_start_though_more_is_written(
    stack: LocalStack, bootstrap: str, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    kafka.create_topic(topic, 1)
    source = f"kafka://{bootstrap}/{topic}"
    with (
        pytest.raises(PlanError, match="has no record with a value"),
        keep_records(PlanLoad(records=source), lambda: stack.endpoints),
    ):
        pass
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(50):
        producer.produce(topic, b'{"id": %d}' % number, partition=0)
    producer.flush(10)
    writing = Producer({"bootstrap.servers": bootstrap})
    dataset = open_dataset(source, "id")
    writing.produce(topic, b'{"late": 1}')
    writing.flush(10)
    assert dataset.facts.records == dataset.facts.with_key == 50
    record, _ = one_trial(stack, tmp_path, FROM_TOPIC.format(source=source), 100)
    assert record.audit is not None, record.invalid
    assert (record.audit.stored, record.audit.clean, record.audit.checked) == (100, True, 100), record.invalid
    producer.produce(topic, b"no JSON")
    producer.flush(10)
    refused = copy("--bootstrap", bootstrap, "--topic", f"{topic}-copy", "--records", source, "--count", "3")
    assert refused.returncode == 2
    assert f"{source}, partition 0, offset 51: is no JSON" in refused.stderr
    absent = copy("--bootstrap", bootstrap, "--topic", f"{topic}-copy", "--records", f"{source}-no", "--count", "3")
    assert absent.returncode == 2
    assert "there is no such topic to read" in absent.stderr


ORDER = {
    "id": "o-1", "total": 12.5, "as text": "1.25", "paid": True, "at": "2026-01-31", "then": "2026-01-31T12:00:00Z",
    "customer": {"id": 7, "it's \\ odd": "here"}, "lat": 47.4, "lon": 8.5, "lines": [{"sku": "a", "pieces": 2}],
    "text": "a long sentence that is looked for by its words", "place": "47.4,8.5", "odd": 1,
    "where": {"type": "Point", "coordinates": [8.5, 47.4]},
    "area": {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]},
}  # fmt: skip


def test_what_is_proposed_takes_the_records_that_it_was_proposed_for(
    stack: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    records = [ORDER, {**ORDER, "odd": {"x": 1}, "total": 3, "text": None}, {"id": "o-3"}]
    path = tmp_path / "orders.ndjson"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert sinkbench("propose", "orders.ndjson").returncode == 0
    again = sinkbench("propose", "orders.ndjson")
    assert again.returncode == 2
    assert "orders.index.json: is there already" in again.stdout + again.stderr
    endpoints, target = stack.endpoints.sinks, f"tides_{uuid.uuid4().hex[:12]}"
    sinks = {
        "elasticsearch": (ElasticsearchSink(endpoints["elasticsearch"], tmp_path / "orders.index.json"), "bulk"),
        "postgres": (PostgresSink(endpoints["postgres"].address, None, tmp_path / "orders.sql"), "COPY"),
    }
    dataset = open_dataset(str(path))
    values = [
        dataset.opening(index) + b'"bench": {"run": "%b", "seq": %d}}' % (target.encode(), index) for index in range(3)
    ]
    for name, (sink, way) in sinks.items():
        with closing(sink):
            sink.create(target)
            try:
                writer = open_writer(Destination(name, way, target, endpoints[name]))
                writer.write(writer.batch(values))
                writer.close()
                sink.settle(target)
                assert sorted(seq for seqs in sink.sequences(target, target) for seq in seqs) == [0, 1, 2]
            finally:
                sink.drop(target)


# What they are like: nested, with nulls, of unlike kinds in one column, of very unlike sizes, in all text formats.
SETS = (
    "movies.json", "budget.json", "us-10m.json", "miserables.json", "monarchs.json", "weekly-weather.json", "cars.json",
    "airports.csv", "la-riots.csv", "birdstrikes.csv", "unemployment.tsv", "londonTubeLines.json",
)  # fmt: skip


@pytest.fixture(scope="module")
def vega(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data sets that nobody here has written: those of the npm package vega-datasets."""
    folder = tmp_path_factory.mktemp("vega")
    if shutil.which("npm") is None:
        pytest.skip("needs npm, which brings the data sets")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), "vega-datasets@3.2.1"]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        pytest.skip(f"npm brings no data sets: {done.stderr[-200:]}")
    return folder / "node_modules" / "vega-datasets" / "data"


def test_data_sets_of_others_go_into_what_is_proposed_for_them(stack: LocalStack, vega: Path, tmp_path: Path) -> None:
    endpoints, sizes = stack.endpoints.sinks, []
    for name in SETS:
        dataset = open_dataset(str(vega / name))
        count = min(dataset.facts.records, 300)
        found = survey(json.loads(dataset.value(index)) for index in range(count))
        target = f"tides_{uuid.uuid4().hex[:12]}"
        maker = DatasetMaker(dataset, target)
        made: list[bytes] = []
        while len(made) < count:
            seq = len(made)
            batch = maker.batch(seq, min(maker.longest_batch(seq), count - seq), 0, 0)
            made += [value for message in batch if isinstance(value := message["value"], bytes)]
        sizes += [len(value) for value in made]
        index, table = tmp_path / f"{name}.index.json", tmp_path / f"{name}.sql"
        index.write_text(propose_index(found, CHECKOUT, name).text)
        table.write_text(propose_table(found, CHECKOUT, name).text)
        for way in ("bulk", "COPY"):
            with closing(
                ElasticsearchSink(endpoints["elasticsearch"], index)
                if way == "bulk"
                else PostgresSink(endpoints["postgres"].address, None, table)
            ) as sink:
                sink.create(target)
                try:
                    writer = open_writer(Destination(sink.name, way, target, endpoints[sink.name]))
                    writer.write(writer.batch(made))
                    writer.close()
                    sink.settle(target)
                    assert sorted(seq for seqs in sink.sequences(target, target) for seq in seqs) == [*range(count)], (
                        name
                    )
                finally:
                    sink.drop(target)
    assert max(sizes) > 1_000 * min(sizes)


@pytest.mark.long
def test_a_data_set_of_others_goes_through_connect_as_it_is(
    stack: LocalStack, sinkbench: Run, vega: Path, tmp_path: Path
) -> None:
    file = vega / "movies.json"
    done = sinkbench("propose", str(file))
    assert done.returncode == 0, done.stderr
    for cell in (0, 1):
        record, _ = one_trial(stack, tmp_path, PROPOSED.format(file=file), 3_201, cell=cell)
        assert record.audit is not None, record.invalid
        assert (record.audit.stored, record.audit.clean, record.audit.checked) == (3_201, True, 3_201), record.invalid
