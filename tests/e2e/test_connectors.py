"""The connector files as they stand, and scaling them by hand, through REST alone."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest

from sinkbench.errors import ConnectError, PlanError
from sinkbench.plan.cells import expand
from sinkbench.race.preparation import unread, validate_configs
from sinkbench.services.connect import ConnectCluster, is_even, placement
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import open_sink
from sinkbench.stack.local import PLUGINS, LocalStack
from sinkbench.trial.cluster import Cluster
from tests.e2e.races import offer_defaults, remove_connectors
from tests.support.commands import Run, loadgen, refuses, succeeded
from tests.support.trials import plan_in
from tests.support.waiting import until

ALL = sorted((CHECKOUT / "connectors").glob("*/*.json"))


def works_as_it_stands(file: Path) -> bool:
    """Whether a file's plugin comes with sinkbench, and it reads what is in the topic by hand.

    Others need a vendor's archive, which no test can fetch, or records of another form: see test_converters.
    """
    config = json.loads(file.read_text())["config"]
    plain = file.stem == "camel-bulk-json" or "JsonConverter" not in config.get("value.converter", "")
    return config["connector.class"] in PLUGINS and plain


FILES = [file for file in ALL if works_as_it_stands(file)]
RECORDS = 600
# These need another table than the one that is there by hand.
TABLES = {
    "jdbc-upsert": "keyed.sql",
    "jdbc-idempotent": "targets/positions.sql",
    "jdbc-checked": "targets/positions.sql",
    "reference-copy-exactly-once": "targets/positions.sql",
}


@pytest.fixture(scope="module")
def topic(stack: LocalStack) -> Iterator[str]:
    """The topic that the files name, with some records in it, and what they write to."""
    kafka = Kafka(stack.endpoints.kafka)
    kafka.delete_topic("tides")
    offer_defaults(stack)
    to = ("--bootstrap", stack.endpoints.kafka, "--topic", "tides")
    succeeded(loadgen(*to, "--count", str(RECORDS), "--partitions", "24"))
    yield "tides"
    kafka.delete_topic("tides")
    kafka.create_topic("tides", 24)


@pytest.fixture
def posted(stack: LocalStack, connect: ConnectCluster, kafka: Kafka) -> Iterator[Callable[[Path], str]]:
    """Posts a connector file as curl would, byte by byte; deletes the connector after the test."""
    names: list[str] = []

    def post(file: Path) -> str:
        worker = next(iter(stack.endpoints.connect.values()))
        body, kind = file.read_bytes(), {"content-type": "application/json"}
        answer = httpx.post(f"{worker}/connectors", content=body, headers=kind, timeout=60)
        assert answer.status_code == httpx.codes.CREATED, answer.text
        names.append(answer.json()["name"])
        return names[-1]

    yield post
    remove_connectors(connect, kafka, *names)


def stored_by_hand(stack: LocalStack, sink: str) -> int:
    """Rows of the table "tides", or documents behind the alias of that name."""
    if sink == "postgres":
        with psycopg.connect(stack.endpoints.sinks["postgres"].address) as connection:
            return int(connection.execute("SELECT count(*) FROM tides").fetchall()[0][0])
    there = stack.endpoints.sinks["elasticsearch"]
    url = f"{there.address}/{there.options['index']}"
    httpx.post(f"{url}/_refresh")
    return int(httpx.get(f"{url}/_count").json()["count"])


def made_of(stack: LocalStack, file: Path | None) -> None:
    """Makes PostgreSQL's table by hand anew, of that file."""
    with closing(open_sink("postgres", stack.endpoints, CHECKOUT)) as sink:
        sink.drop("tides")
        sink.create("tides", file)


# Two of them, and in CI all.
POSTED = [
    pytest.param(file, marks=() if file.stem in ("camel-bulk", "jdbc") else pytest.mark.long, id=file.stem)
    for file in FILES
]


@pytest.mark.parametrize("file", POSTED)
def test_a_connector_file_works_when_it_is_posted_as_it_stands(
    stack: LocalStack, topic: str, posted: Callable[[Path], str], connect: ConnectCluster, file: Path
) -> None:
    sink = file.parent.name
    if table := TABLES.get(file.stem):
        made_of(stack, CHECKOUT / "postgres" / table)
    before = stored_by_hand(stack, sink)
    status = connect.wait_for_tasks(posted(file), 3)
    assert status.running == 3, status
    assert is_even(placement(status, stack.endpoints.worker_ids))
    until(lambda: stored_by_hand(stack, sink) >= before + RECORDS, 90)
    assert stored_by_hand(stack, sink) == before + RECORDS
    if table:
        made_of(stack, None)


def test_scaling_by_hand_spreads_the_tasks_evenly_and_names_the_nearest_of_a_connector_that_is_not_there(
    stack: LocalStack, topic: str, posted: Callable[[Path], str], connect: ConnectCluster, sinkbench: Run
) -> None:
    name = posted(CHECKOUT / "connectors" / "postgres" / "jdbc-pgbouncer.json")
    connect.wait_for_tasks(name, 3)
    command = [str(CHECKOUT / "scripts" / "scale"), name, "2"]
    done = succeeded(subprocess.run(command, capture_output=True, text=True, check=False, timeout=120))
    assert "6 of 6 tasks run" in done.stdout
    assert connect.config(name)["tasks.max"] == "6"
    found = connect.status(name)
    assert placement(found, stack.endpoints.worker_ids) == {"connect-1": 2, "connect-2": 2, "connect-3": 2}
    misspelt = refuses(sinkbench("scale", "postgres-jdcb", "2"))
    assert re.search(f"postgres-jdcb: no such connector.*{name}", misspelt.stderr), misspelt.stderr


def test_a_refused_configuration_gives_connects_own_message(connect: ConnectCluster) -> None:
    with pytest.raises(ConnectError, match="NoSuchConnector"):
        connect.create("nothing", {"connector.class": "NoSuchConnector", "topics": "tides"})


def test_the_files_hold_no_host_and_no_password() -> None:
    for file in ALL:
        text = file.read_text()
        assert "127.0.0.1" not in text
        assert "localhost" not in text
        config = json.loads(text)["config"]
        assert all("${env:" in value for key, value in config.items() if "password" in key)


@pytest.mark.parametrize(
    ("pipeline", "override", "said"),
    [
        ("postgres/jdbc", "batch.sise: 100", "the key 'batch.sise' is known neither .*; did you mean 'batch.size'"),
        ("elasticsearch/camel-bulk", "camel.agregation.size: 100", "; did you mean 'camel.aggregation.size'"),
        ("postgres/jdbc", "batch.size: many", "Connect refuses 'batch.size': .*many.*"),
    ],
    ids=["misspelt", "misspelt for Camel", "no number"],
)
def test_an_override_that_would_change_nothing_is_refused_before_anything_is_created(
    connect: ConnectCluster, kafka: Kafka, sinkbench: Run, tmp_path: Path, pipeline: str, override: str, said: str
) -> None:
    topics = kafka.topics()
    entry = f"  - pipeline: {pipeline}\n    label: mine\n    overrides:\n      {override}\n"
    (tmp_path / "mine.yaml").write_text(f"pipelines:\n  - {pipeline}\n{entry}")
    done = refuses(sinkbench("race", "mine.yaml"))
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert re.search(rf"mine.yaml:6: mine: .*{said}", done.stderr), done.stderr
    assert connect.connectors() == []
    assert kafka.topics() == topics
    assert not (tmp_path / "results" / "latest").exists()


WRONG = """
pipelines:
  - {pipeline: postgres/jdbc, label: a, overrides: {consumer.override.max.pol.records: 5}}
  - {pipeline: postgres/jdbc, label: b, overrides: {consumer.override.max.poll.records: many}}
  - {pipeline: postgres/jdbc, label: c, overrides: {transforms.payload.feild: x}}
  - {pipeline: postgres/jdbc, label: d, overrides: {connection.url: "jdbc:postgresql://${env:POSTGRES_NODE}/x"}}
  - {pipeline: elasticsearch/camel-bulk, label: e, overrides: {camel.sink.endpoint.operation: Index}}
"""


def test_what_connect_says_of_keys_of_every_kind_is_told(stack: LocalStack, tmp_path: Path) -> None:
    plan = plan_in(tmp_path, WRONG)
    with closing(Cluster(stack, plan, CHECKOUT)) as bench, pytest.raises(PlanError) as refused:
        validate_configs(bench, expand(plan, stack.workers), print)
    expected = [
        ":3: a: .* did you mean 'consumer.override.max.poll.records'",
        ":4: b: Connect cannot read the configuration: .*max.poll.records",
        ":5: c: .* did you mean 'transforms.payload.field'",
        ":6: d: 'connection.url' needs the variable POSTGRES_NODE, which the workers do not know",
        ":7: e: the key 'camel.sink.endpoint.operation' is known neither",
    ]
    for line, pattern in zip(str(refused.value).splitlines(), expected, strict=True):
        assert re.search(pattern, line), line


OF_TESTS = [
    CHECKOUT / "tests" / "compose" / "plugin" / "http.json",
    CHECKOUT / "tests" / "e2e" / "mariadb_sink" / "jdbc.json",
]


@pytest.mark.parametrize("file", [*FILES, *OF_TESTS], ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_key_of_a_connector_file_is_known_and_every_value_taken(connect: ConnectCluster, file: Path) -> None:
    config = json.loads(file.read_text())["config"]
    # The plugin of that version is there only in the containers of its own test.
    version = config.pop("connector.plugin.version", None)
    said = connect.validate({**config, "name": "a"})
    assert said.errors == {}
    assert unread([*config, *(["connector.plugin.version"] if version else [])], said.listed) == []
