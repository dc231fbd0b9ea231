"""What a plan and its connector files show to be wrong, before any service is started."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from loadgen.forms import Form
from sinkbench.analysis.connectors import Offered, misfits
from sinkbench.errors import PlanError
from sinkbench.load.records import keep_records
from sinkbench.plan.cells import expand
from sinkbench.plan.checks import lone_queue
from sinkbench.plan.entries import read_connector
from sinkbench.race import preparation
from sinkbench.race.preparation import check_plan
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import sink_kind
from sinkbench.stack import Endpoint, Endpoints
from sinkbench.stack.local import VARIABLES
from sinkbench.topology import KafkaNodes, Topology, load_topology
from tests.support.trials import connectors_in, plan_in

CONNECTORS = CHECKOUT / "connectors"
SMALL, PUBLISHED = Topology(), load_topology("published", CHECKOUT, CHECKOUT)
SINKS = {"elasticsearch": Endpoint("", options={"index": "theirs"}), "postgres": Endpoint("host=db dbname=bench")}
QUEUE = "errors.deadletterqueue.topic.name"
COPIES = "errors.deadletterqueue.topic.replication.factor"


def stack(layout: Topology | None = SMALL) -> Any:
    nodes = {name: Endpoint("") for name in ("postgres", "postgres-2") if layout is PUBLISHED}
    sinks = {**SINKS, "postgres": replace(SINKS["postgres"], nodes=nodes)}
    endpoints = Endpoints("b:1", {}, {}, sinks=sinks)
    known = {"faults": None, "variables": VARIABLES, "profiler": layout}
    return SimpleNamespace(name="a", layout=layout, endpoints=endpoints, **known)


def refused(folder: Path, text: str, on: Any = None, connectors: Path = CONNECTORS) -> list[str]:
    """The lines with which a plan is refused, without the folder; none if it is not."""
    plan, at = plan_in(folder, text, connectors), on or stack()
    try:
        with keep_records(plan.load, lambda: at.endpoints) as records:
            check_plan(plan, expand(plan, 3), at, records)
    except PlanError as error:
        return str(error).replace(f"{folder}/", "").splitlines()
    return []


@pytest.mark.parametrize("path", sorted((CHECKOUT / "plans").glob("*.yaml")), ids=lambda path: path.stem)
def test_no_plan_of_sinkbench_is_refused(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Which faults a stack has is tested elsewhere.
    monkeypatch.setattr(preparation, "check_faults", lambda *arguments: ())
    on, brokers = stack(PUBLISHED), load_topology("five-brokers", CHECKOUT, CHECKOUT).kafka
    on.layout, on.faults = PUBLISHED.model_copy(update={"kafka": brokers}), SimpleNamespace(hold=True)
    assert refused(tmp_path, path.read_text(), on) == []


# In docs/pipelines.md.
DOCUMENTED: dict[str, tuple[Form, ...]] = {
    "jdbc-document-schema": ("document-schema",),
    "camel-bulk-json-schema": ("document-schema",),
    "camel-bulk-debezium": ("document-debezium",),
    "camel-bulk-debezium-schema": ("document-debezium-schema",),
    "jdbc-row-unwrap": ("row-debezium-schema",),
    "jdbc-row": ("row-schema", "row-debezium-schema"),
    "jdbc-row-content": ("row",),
    "jdbc-row-debezium-content": ("row-debezium",),
}


@pytest.mark.parametrize("file", sorted(CONNECTORS.glob("*/*.json")), ids=lambda file: file.stem)
def test_a_connector_file_takes_the_forms_that_are_documented(file: Path) -> None:
    config, of_sink = {**read_connector(file), "topics": "tides"}, sink_kind(file.parent.name).misfits
    assert of_sink is not None
    forms = DOCUMENTED.get(file.stem, ("document",))
    loads = [Offered(form) for form in get_args(Form)]
    taken = [load.form for load in loads if not [*misfits(config, load), *of_sink(config, load, None)]]
    assert set(forms) <= set(taken)
    # An envelope or a schema that nothing takes out.
    if file.stem not in DOCUMENTED and file.stem not in ("jdbc-upsert", "camel-keyed"):
        assert set(taken) <= {"document", "row"}


ELSEWHERE = """pipelines:
  - {pipeline: postgres/jdbc, label: fixed, overrides: {collection.name.format: readings}}
  - {pipeline: postgres/jdbc, label: prefix, overrides: {collection.name.format: "gauge_${topic}"}}
  - pipeline: postgres/jdbc
    label: router
    overrides:
      transforms: payload,route
      transforms.route.type: org.apache.kafka.connect.transforms.RegexRouter
      transforms.route.regex: ".*"
      transforms.route.replacement: readings
  - pipeline: elasticsearch/camel-index
    label: index
    overrides: {camel.sink.url: "elasticsearch://sinkbench?operation=Index&indexName=readings"}
"""


def test_every_pipeline_that_would_write_elsewhere_is_told_where(tmp_path: Path) -> None:
    own = "not into the trial's own table; name it ${topic}"
    assert refused(tmp_path, ELSEWHERE) == [
        f"mine.yaml:2: fixed: collection.name.format: the records would go into readings, {own}",
        f"mine.yaml:3: prefix: collection.name.format: the records would go into gauge_${{topic}}, {own}",
        "mine.yaml:8: router: transforms.route.type: RegexRouter sends the records to readings, not to the trial's own"
        " table or index; take route out of transforms",
        "mine.yaml:13: index: camel.sink.url: the documents would go into readings, not into the trial's own index;"
        " name ${env:ELASTICSEARCH_INDEX}",
    ]


def test_five_mistakes_of_all_kinds_are_shown_at_once(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    more = "  - {pipeline: postgres/jdbc, label: b, target: x.json, settings: {postgres: {fsync: 1}}}\n"
    said = refused(tmp_path, f"{ELSEWHERE}{more}load: {{replication: 2}}\n")
    assert said[0].startswith("mine.yaml:14: the sink postgres takes no target ")
    assert said[1].startswith("mine.yaml:14: postgres has no setting 'fsync'")
    assert (len(said), said[-1]) == (6, "and 2 more")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Has connector files of one's own below `connectors`."""
    monkeypatch.setattr(preparation, "CONNECTORS", tmp_path / "connectors")
    return tmp_path


def own_file(folder: Path, sink: str, config: dict[str, str]) -> list[str]:
    """The lines with which a connector file is refused that is one of ours with other keys."""
    first = {"postgres": "jdbc", "elasticsearch": "camel-bulk"}[sink]
    keys = {**read_connector(CONNECTORS / sink / f"{first}.json"), **config}
    connectors = connectors_in(folder, f"{sink}/mine", text=json.dumps({"name": "mine", "config": keys}, indent=2))
    return refused(folder, f"pipelines: [{sink}/mine]\n", connectors=connectors)


URL, CAMEL = "jdbc:postgresql://db/bench", "elasticsearch://a?operation=Index"
SMT, OFFSETS = "org.apache.kafka.connect.transforms", "consumer.override.auto.offset.reset"
JSON = "org.apache.kafka.connect.json.JsonConverter"
CONFLUENT = {"connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector", "insert.mode": "upsert"}


def moved(kind: str, **keys: str) -> dict[str, str]:
    """A transform besides that of the file."""
    return {"transforms": "payload,a", "transforms.a.type": kind, **{f"transforms.a.{n}": v for n, v in keys.items()}}


@pytest.mark.parametrize(
    ("sink", "config", "said"),
    [
        ("postgres", {"topics.regex": "a.*"}, "topics.regex: a trial's connector reads one topic"),
        ("postgres", {OFFSETS: "Latest"}, "auto.offset.reset: is latest, but the records are in"),
        ("postgres", {"table.name.format": "archive.${topic}"}, r"table.name.format: .* into archive.\$\{topic\}, not"),
        ("postgres", {"connection.url": f"{URL}?currentSchema=a,b"}, "url: currentSchema=a,b leads to other tables"),
        ("postgres", {"connection.url": f"{URL}2"}, "connection.url: leads to the database bench2; name the stack's"),
        ("postgres", {"camel.sink.url": "sql:insert into readings (a) VALUES (#)"}, "camel.sink.url: .* into readings"),
        ("postgres", moved(f"{SMT}.TimestampRouter"), "TimestampRouter sends the records to another topic, not"),
        ("postgres", moved("io.aiven.kafka.connect.transforms.ExtractTopic$Value"), r"ExtractTopic\$Value sends the"),
        ("postgres", moved("a.ExtractNewRecordState", **{"route.by.field": "x"}), "sends the records to x, not"),
        ("elasticsearch", {"camel.sink.url": CAMEL, "camel.sink.endpoint.indexName": "x"}, "endpoint.indexName: .* x,"),
        ("elasticsearch", {"camel.sink.url": f"{CAMEL}&indexName=a-{{{{topics}}}}"}, r"into a-\{\{topics\}\}, not"),
        ("elasticsearch", {"topic.index.map": "a:b"}, "topic.index.map: .* into a:b, not .*; take it out"),
        ("elasticsearch", {"index": "readings"}, r"index: the documents would go into readings, not .*; name \$"),
        ("postgres", {"table": "readings"}, r"table: the records would go into readings, not .*; name it \$\{topic"),
        # What a converter cannot read.
        ("postgres", {"value.converter": "io.confluent.connect.avro.AvroConverter"}, "AvroConverter cannot read rec"),
        ("postgres", {"key.converter": JSON}, "key.converter: JsonConverter cannot read the records' keys"),
        ("elasticsearch", {"value.converter": JSON}, "JsonConverter reads objects of .* form document has no schema;"),
        ("elasticsearch", {"value.converter": JSON, "value.converter.schema.content": "{}"}, "content: has no member"),
        # What a JDBC sink cannot store.
        ("postgres", {"transforms": ""}, "value.converter: the sink stores structs .* would get a text; use"),
        ("postgres", {"value.converter": JSON, "value.converter.schemas.enable": "false"}, "would get a map; use"),
        ("postgres", {"primary.key.mode": "record_value", "primary.key.fields": "id"}, "records have no id beside pay"),
        ("postgres", {QUEUE: "d"}, "factor: is 3 by default, and Kafka has 1 broker and min.insync.replicas 1; set it"),
    ],
)
def test_what_a_connector_file_shows_is_refused_in_one_line(
    sink: str, config: dict[str, str], said: str, folder: Path
) -> None:
    (line,) = own_file(folder, sink, config)
    assert re.search(rf"^(connectors/{sink}/mine.json:\d+|mine.yaml:1): {sink}/mine: .*{said}", line), line
    lines = (folder / "connectors" / sink / "mine.json").read_text().splitlines()
    number, parts = re.match(r"\S+json:(\d+)", line), line.split(": ")[2].split(".")
    assert number is None or lines[int(number[1]) - 1].lstrip().startswith(f'"{".".join(parts[:2])}'), line


@pytest.mark.parametrize(
    ("sink", "config"),
    [
        ("postgres", {"topics": "mine", "tasks.max": "9", OFFSETS: "earliest"}),
        ("postgres", {**CONFLUENT, "table.name.format": '"public"."${topic}"', "pk.mode": "kafka"}),
        ("postgres", {"connection.url": f"{URL}?currentSchema=a,public"}),
        # It leaves the trial's topic alone.
        ("postgres", moved(f"{SMT}.RegexRouter", regex=r"server\.public\.(.*)", replacement="$1")),
        # Only the canary can tell.
        ("postgres", moved(f"{SMT}.RegexRouter", regex=".*", replacement="a", predicate="p")),
        ("postgres", moved("com.me.Transform")),
        ("elasticsearch", {"camel.sink.url": f"{CAMEL}&indexName=theirs"}),
        ("elasticsearch", {"camel.sink.url": f"{CAMEL}&indexName={{{{topics}}}}"}),
        ("postgres", {QUEUE: "d", COPIES: "1"}),
        ("postgres", {"table": "${topic}"}),
        ("elasticsearch", {"index": "${topic}"}),
    ],
)
def test_what_leads_to_the_trials_target_is_not_refused(sink: str, config: dict[str, str], folder: Path) -> None:
    assert own_file(folder, sink, config) == []


UPSERT = "{pipeline: postgres/jdbc-upsert, target: postgres/keyed.sql}"


@pytest.mark.parametrize(
    ("load", "entry", "said"),
    [
        ("key: gauge", "postgres/jdbc", []),
        ("key: gauge", UPSERT, [r"upsert.json:\d+: .* but 1 of 2 have none at load.key gauge, the first in line 2;"]),
        ("", "elasticsearch/camel-keyed", ["headers: every .* but 2 of 2 have none; name a path to it: load.key$"]),
        ("key: level", "elasticsearch/camel-keyed", []),
        ("", "elasticsearch/camel-bulk-debezium", ["after.field: records without envelope have no such member, or"]),
        ("", "elasticsearch/camel-bulk-json-schema", ['your own records get the third member "bench"; use StringConv']),
    ],
)
def test_records_of_ones_own_have_the_keys_and_the_form_that_a_pipeline_needs(
    load: str, entry: str, said: list[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.ndjson").write_text('{"gauge": "g-1", "level": 1}\n{"gauge": null, "level": 2}\n')
    found = refused(tmp_path, f"pipelines: [{entry}]\nload: {{records: {tmp_path}/mine.ndjson, {load}}}\n")
    assert [bool(re.search(*pair)) for pair in zip(said, found, strict=True)] == [True] * len(said), found


def test_records_that_cannot_be_read_are_named_with_their_line_or_option(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, "pipelines: [postgres/jdbc]\nload:\n  records: nowhere.json\n")
    assert plan.where_records == f"{tmp_path}/mine.yaml:3: load.records"
    assert plan.with_records("elsewhere.json", None).where_records == "--records"


def test_a_pipeline_that_stores_one_row_a_key_is_raced_in_drains_alone(tmp_path: Path) -> None:
    text = "pipelines: [elasticsearch/camel-keyed]\n"
    assert refused(tmp_path, text) == []
    (line,) = refused(tmp_path, f"{text}mode: sustain\nsustain: {{records_per_second: 10}}\n")
    assert re.search(r"camel-keyed.json:\d+: .*headers: only the last record of each key stays, .* mode: drain$", line)


def test_queries_go_to_a_standby_only_where_there_is_one(tmp_path: Path) -> None:
    text = (CHECKOUT / "plans" / "standby-reads.yaml").read_text()
    said = "queries of the standby: reads_from: postgres has one node here; race with SINKBENCH_TOPOLOGY=published"
    assert refused(tmp_path, text) == [said]


SYNCED = PUBLISHED.model_copy(update={"kafka": PUBLISHED.kafka.model_copy(update={"min_insync_replicas": 2})})
FEW = "with acks: all Kafka takes no record below its min.insync.replicas, 2; set it to 2 or more, or acks to 1"


@pytest.mark.parametrize(
    ("load", "on", "said"),
    [
        ("{replication: 3}", stack(), ["load.replication is 3, and Kafka has 1 broker; lower it to 1"]),
        ("{replication: 1}", stack(SYNCED), [f"load.replication is 1, and {FEW}"]),
        ("{replication: 1, acks: 1}", stack(SYNCED), []),
        ("{}", stack(SYNCED), []),
        ("{replication: 30}", stack(None), []),
    ],
)
def test_a_topic_has_as_many_copies_as_the_brokers_can_keep_and_demand(
    load: str, on: Any, said: list[str], tmp_path: Path
) -> None:
    found = refused(tmp_path, f"pipelines: [postgres/jdbc]\nload: {load}\n", on)
    assert found == [f"mine.yaml:2: {line}" for line in said]


def test_the_brokers_of_clusters_of_ones_own_are_asked_before_anything_is_made(tmp_path: Path) -> None:
    settings = {"broker_settings": lambda names: dict.fromkeys(names, "2"), "topics": lambda: ["there"]}
    kafka = SimpleNamespace(brokers=lambda: {1, 2, 3}, **settings)
    plan = plan_in(tmp_path, "pipelines: [postgres/jdbc]\nload: {partitions: 3}\n")
    cluster: Any = SimpleNamespace(plan=plan, stack=stack(None), kafka=kafka, records=None)
    with pytest.raises(PlanError, match=f"mine.yaml:2: load.replication is 1, and {FEW}"):
        preparation.validate_configs(cluster, [], print)
    assert len(list(lone_queue({QUEUE: "there"}, KafkaNodes()))) == 1
    assert list(lone_queue({QUEUE: "there"}, KafkaNodes(), ["there"])) == []
