"""Records of somebody's own go through both sinks and keep their bytes, whatever their size and wherever they lie."""

import gzip
import json
import shutil
import subprocess
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from loadgen.dataset.source import open_dataset
from loadgen.dataset.store import DatasetMaker, opening
from loadgen.records import made_by
from sinkbench.analysis.fields import survey
from sinkbench.errors import PlanError
from sinkbench.load.records import keep_records
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Sink
from sinkbench.sinks.elasticsearch.index import propose_index
from sinkbench.sinks.elasticsearch.sink import ElasticsearchSink
from sinkbench.sinks.postgres.asking import propose_table
from sinkbench.sinks.postgres.sink import PostgresSink
from sinkbench.stack.local import LocalStack
from tests.e2e.hands import store, with_target
from tests.e2e.onetrial import one_trial
from tests.e2e.topics import records_of
from tests.support.commands import Run, loadgen, refuses, succeeded
from tests.support.latest import summary_of

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
# Written as no program here would write them.
UNUSUAL = b'{"a":1.0,"e":1e2,"u":"\\u00e9\\/", "deep":{"n":null,"l":[1,  2]},"customer":{"id":%d}}'
BYTES = (100, 4_000, 1_000_000)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A packed file of 700 small records: fewer than a trial takes."""
    path = tmp_path / "orders.ndjson.gz"
    path.write_bytes(gzip.compress(b"\n".join(UNUSUAL % number for number in range(700))))
    return path


@pytest.mark.long
def test_a_race_of_ones_own_records_is_audited_and_says_what_it_was_fed_with(
    stack: LocalStack, sinkbench: Run, tmp_path: Path, orders: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    succeeded(sinkbench("race", "mine.yaml", "--records", orders.name, "--key", "customer.id"))
    summary = summary_of(tmp_path)
    kept = summary["environment"]["records"]
    facts = open_dataset(str(orders), "customer.id").facts
    assert (kept["source"], kept["sha256"], kept["records"]) == (orders.name, facts.sha256, 700)
    assert kept["with_key"] == 700
    for cell in summary["cells"]:
        audit = cell["audit"]
        assert audit["produced"] == audit["stored"] > 700
        assert audit["lost"] == audit["duplicates"] == audit["altered"] == audit["foreign"] == 0
        assert audit["compared"] >= audit["checked"] > 700
    # What is told of a plan that cannot be resumed is told of one with another file.
    summary_path = tmp_path / "results" / "latest" / "summary.json"
    summary_path.write_text(json.dumps({**summary, "complete": False}))
    trials = summary_path.parent / "trials.jsonl"
    trials.write_text(trials.read_text().splitlines()[0] + "\n")
    orders.write_bytes(gzip.compress(b'{"other": 1}'))
    refused = refuses(sinkbench("resume", "results/latest"))
    assert "environment records.sha256 was" in refused.stdout + refused.stderr


def sizes() -> str:
    """Records of 100 bytes and of a megabyte, a line each."""
    lines = []
    for number in range(60):
        start = f'{{"id": "k-{number:02}", "text": "'
        lines.append(start + "x" * (BYTES[number % 3] - len(start) - 2) + '"}\n')
    return "".join(lines)


def over_lines() -> str:
    return json.dumps([{"id": str(number), "below": {"list": [1, 2]}} for number in range(60)], indent=2)


@pytest.mark.parametrize(("made", "cell"), [(sizes, 0), (sizes, 1), (over_lines, 1)])
def test_records_of_all_sizes_and_over_several_lines_are_stored_as_they_were_sent(
    stack: LocalStack, tmp_path: Path, made: Callable[[], str], cell: int
) -> None:
    file = tmp_path / ("sizes.ndjson" if made is sizes else "lines.json")
    file.write_text(made())
    record, _ = one_trial(stack, tmp_path, SIZES.format(file=file), 60, cell=cell)
    assert record.audit is not None, record.invalid
    assert (record.audit.stored, record.audit.clean, record.audit.checked) == (60, True, 60), record.invalid


METERS = """
{"meter": "m-1", "reading": 18446744073709551615, "total": 12345678901234567890.12345}
{"meter": "m-2", "reading": 9223372036854775807, "total": 1e23}
{"meter": "m-3", "reading": 9007199254740993, "total": -0.0}
"""
OF_METERS = "pipelines: [{pipeline}]\nload: {{records: {file}, key: meter, partitions: 6}}\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("pipeline", "altered", "how"),
    [
        ("postgres/jdbc", 0, ""),
        (
            "elasticsearch/camel-index",
            20,
            "to -1, read as a long by the connector or a converter; total from 123456789",
        ),
        ("elasticsearch/camel-bulk-tuned", 0, ""),
    ],
)
def test_a_number_that_a_connector_changes_is_named_and_one_that_is_kept_is_not_altered(
    stack: LocalStack, tmp_path: Path, pipeline: str, altered: int, how: str
) -> None:
    (tmp_path / "meters.ndjson").write_text(METERS)
    plan = OF_METERS.format(pipeline=pipeline, file=tmp_path / "meters.ndjson")
    record, _ = one_trial(stack, tmp_path, plan, 60)
    assert record.audit is not None, record.invalid
    assert (record.audit.stored, record.audit.checked, record.audit.altered) == (60, 60, altered), record.notes
    assert how in " ".join(record.notes)


@pytest.mark.long
@pytest.mark.parametrize(
    "pipeline", ["{pipeline: postgres/jdbc-upsert, target: postgres/keyed.sql}", "elasticsearch/camel-keyed"]
)
def test_a_pipeline_that_stores_one_row_a_key_is_audited_by_key(
    stack: LocalStack, tmp_path: Path, pipeline: str
) -> None:
    (tmp_path / "changes.ndjson").write_text("".join(f'{{"meter": "m-{n % 3}", "level": {n}}}\n' for n in range(7)))
    plan = OF_METERS.format(pipeline=pipeline, file=tmp_path / "changes.ndjson")
    record, _ = one_trial(stack, tmp_path, plan, 60)
    audit = record.audit
    assert audit is not None, record.invalid
    assert (audit.stored, audit.superseded, audit.lost, audit.compared, audit.clean) == (3, 57, 0, 3, True), record


def test_a_topic_is_copied_with_its_keys_in_the_order_of_their_times(bootstrap: str, kafka: Kafka, topic: str) -> None:
    kafka.create_topic(topic, 3)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, at in enumerate((0, 100, 1_100)):
        key = None if number == 1 else f"key-{number}"
        producer.produce(topic, UNUSUAL % number, key, timestamp=1_700_000_000_000 + at)
    producer.produce(topic, None, "key-0", timestamp=1_700_000_000_200)
    producer.flush(10)
    source = f"kafka://{bootstrap}/{topic}"
    to = ("--bootstrap", bootstrap, "--topic", f"{topic}-copy")
    done = succeeded(loadgen(*to, "--records", source, "--count", "3", "--run", "r"))
    assert "1 of them have no key" in done.stderr
    assert "1 without a value are left out" in done.stderr
    copied = sorted(records_of(kafka, f"{topic}-copy"), key=lambda each: json.loads(each.value())["bench"]["seq"])
    assert [each.key() for each in copied] == [b"key-0", None, b"key-2"]
    for number, each in enumerate(copied):
        assert each.value().startswith((UNUSUAL % number)[:-1] + b', "bench": {"run": "r", "seq": %d, ' % number)


@pytest.mark.long
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
    to = ("--bootstrap", bootstrap, "--topic", f"{topic}-copy", "--count", "3")
    refused = refuses(loadgen(*to, "--records", source))
    assert f"{source}, partition 0, offset 51: is no JSON" in refused.stderr
    assert "there is no such topic to read" in refuses(loadgen(*to, "--records", f"{source}-no")).stderr


ORDER = {
    "id": "o-1", "total": 12.5, "as text": "1.25", "paid": True, "at": "2026-01-31", "then": "2026-01-31T12:00:00Z",
    "customer": {"id": 7, "it's \\ odd": "here"}, "lat": 47.4, "lon": 8.5, "lines": [{"sku": "a", "pieces": 2}],
    "text": "a long sentence that is looked for by its words", "place": "47.4,8.5", "odd": 1,
    "where": {"type": "Point", "coordinates": [8.5, 47.4]},
    "area": {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]},
}  # fmt: skip


def check_taken(stack: LocalStack, sink: Sink, target: str, values: Sequence[bytes]) -> None:
    """The sink takes these records, whose run is the target's name; it is closed afterwards."""
    with with_target(sink, target):
        store(stack, sink.name, target, values)
        sink.settle(target)
        assert sorted(seq for seqs in sink.sequences(target, target) for seq in seqs) == [*range(len(values))]


def test_what_is_proposed_takes_the_records_that_it_was_proposed_for(
    stack: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    records = [ORDER, {**ORDER, "odd": {"x": 1}, "total": 3, "text": None}, {"id": "o-3"}]
    path = tmp_path / "orders.ndjson"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert sinkbench("propose", "orders.ndjson").returncode == 0
    again = refuses(sinkbench("propose", "orders.ndjson"))
    assert "orders.index.json: is there already" in again.stdout + again.stderr
    endpoints, target = stack.endpoints.sinks, f"tides_{uuid.uuid4().hex[:12]}"
    dataset = open_dataset(str(path))
    values = [
        opening(dataset.value(index)) + b'"bench": {"run": "%b", "seq": %d}}' % (target.encode(), index)
        for index in range(3)
    ]
    index = ElasticsearchSink(endpoints["elasticsearch"], tmp_path / "orders.index.json")
    check_taken(stack, index, target, values)
    check_taken(stack, PostgresSink(endpoints["postgres"].address, None, tmp_path / "orders.sql"), target, values)


# Names that Elasticsearch reads as a path, and those that are hard to write.
PODS = (
    {
        "pod": "a",
        "labels": {"app": "gauge", "app.kubernetes.io/name": "tide", "tier.x": 1},
        "it's \\ \u00e9": [],
        "_x": 1,
    },
    {"pod": "b", "labels": {"app.kubernetes.io/part-of": "tides", "tier": {}}, "x" * 600: 1, "n": 10**400, "v": None},
)


def test_a_proposal_is_tried_where_a_stack_is_up(stack: LocalStack, sinkbench: Run, tmp_path: Path) -> None:
    (tmp_path / "pods.ndjson").write_text("".join(f"{json.dumps(record)}\n" for record in PODS))
    done = succeeded(sinkbench("propose", "pods.ndjson"))
    for name, file in (("elasticsearch", "pods.index.json"), ("postgres", "pods.sql")):
        assert f"{file}: {name} has created it, and taken 2 records" in done.stdout
    (tmp_path / "mongo.ndjson").write_text('{"_id": {"$oid": "7"}}\n')
    done = sinkbench("propose", "mongo.ndjson")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mongo.index.json: elasticsearch has created it, but refuses records: " in done.stdout
    assert "mongo.sql: postgres has created it, and taken 1 records" in done.stdout


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


@pytest.mark.long
def test_data_sets_of_others_go_into_what_is_proposed_for_them(stack: LocalStack, vega: Path, tmp_path: Path) -> None:
    endpoints, sizes = stack.endpoints.sinks, []
    for name in SETS:
        dataset = open_dataset(str(vega / name))
        count = min(dataset.facts.records, 300)
        found = survey(json.loads(dataset.value(index)) for index in range(count))
        target = f"tides_{uuid.uuid4().hex[:12]}"
        made = made_by(DatasetMaker(dataset, target), 0, count)
        sizes += [len(value) for value in made]
        index, table = tmp_path / f"{name}.index.json", tmp_path / f"{name}.sql"
        index.write_text(propose_index(found, CHECKOUT, name).text)
        table.write_text(propose_table(found, CHECKOUT, name).text)
        check_taken(stack, ElasticsearchSink(endpoints["elasticsearch"], index), target, made)
        check_taken(stack, PostgresSink(endpoints["postgres"].address, None, table), target, made)
    assert max(sizes) > 1_000 * min(sizes)
