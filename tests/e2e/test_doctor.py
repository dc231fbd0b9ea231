"""The doctor on the real stack: what is wrong is found, with its figure, and a stack that is well shows nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from sinkbench.doctor import look as looking
from sinkbench.doctor.diagnosis import Diagnosis, Found, diagnose
from sinkbench.doctor.look import Look
from sinkbench.doctor.rules import RULES, services
from sinkbench.plan.plan import load_plan
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack import Stack
from sinkbench.stack.external import ExternalStack
from sinkbench.stack.local import LocalStack
from tests.e2e.races import cluster_set, offer_defaults, remove_connectors, stack_file
from tests.support.commands import Run, loadgen, succeeded
from tests.support.ports import free_ports
from tests.support.trials import config_of
from tests.support.waiting import until

JDBC = config_of("postgres/jdbc")
TOPIC = "doctor"
WELL = """
pipelines:
  - elasticsearch/camel-bulk
  - {pipeline: postgres/jdbc-tuned, overrides: {connection.pool.max_size: 2}}
  - {pipeline: postgres/jdbc-pgbouncer, overrides: {connection.pool.min_size: 1}}
"""
# Each entry is wrong in its own way.
ILL = """
load: {keys: 5}
pipelines:
  - {pipeline: postgres/jdbc, label: greedy, multiples: [1, 8]}
  - pipeline: postgres/jdbc-pgbouncer
    label: prepares
    multiples: [8]
    overrides: {connection.url: "jdbc:postgresql://${env:PGBOUNCER_HOST}:${env:PGBOUNCER_PORT}/${env:POSTGRES_DB}"}
  - {pipeline: postgres/jdbc, label: drops, overrides: {errors.tolerance: all}}
  - {pipeline: postgres/jdbc, label: misspelt, overrides: {batch.sise: 3}}
  - {pipeline: elasticsearch/camel-index, target: frail.json}
"""
FRAIL = {"settings": {"index.translog.durability": "async"}}


def examined(stack: Stack, plan: Path | None = None) -> Diagnosis:
    wanted = None if plan is None else load_plan(plan, CHECKOUT / "connectors")
    return diagnose(Look(stack, CHECKOUT, wanted).facts(), RULES)


def found(diagnosis: Diagnosis, code: str, subject: str | None = None) -> Found | None:
    """What the rule of that code has found, of that subject if one is named."""
    those = [each for each in diagnosis.findings if each.code == code]
    return next((each for each in those if subject in (None, each.subject)), None)


@pytest.fixture(autouse=True, scope="module")
def _offered(stack: LocalStack) -> None:
    """What connectors write to by hand."""
    offer_defaults(stack)


@pytest.fixture(scope="module")
def ill(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    """What is found in a plan of which every entry is wrong."""
    folder = tmp_path_factory.mktemp("ill")
    (folder / "frail.json").write_text(json.dumps(FRAIL))
    (folder / "mine.yaml").write_text(ILL)
    return examined(stack, folder / "mine.yaml")


@pytest.mark.parametrize(
    ("code", "subject", "said", "invalidates"),
    [
        ("race-refused", "plan mine", "did you mean 'batch.size'", True),
        ("few-keys", "plan mine", "5 keys: about 5 of 24 partitions get records, for up to 24 tasks", True),
        ("too-many-connections", "greedy", "24 tasks open 120 to 768 connections, and the database has 9", True),
        ("small-pool", "prepares", "24 tasks share 10 connections", False),
        ("prepared-statements", "prepares", "prepareThreshold is 5, the default", True),
        ("no-dead-letter-queue", "drops", "errors.tolerance is all", True),
        ("request-a-record", "elasticsearch/camel-index", "operation=Index", False),
        ("durability-differs", "elasticsearch", "index.translog.durability is async", True),
    ],
)
def test_what_is_wrong_in_a_plan_is_found(
    ill: Diagnosis, code: str, subject: str, said: str, invalidates: bool
) -> None:
    finding = found(ill, code, subject)
    assert finding is not None, ill
    assert said in finding.what
    assert finding.invalidates is invalidates


def test_what_is_right_in_such_a_plan_is_not(ill: Diagnosis) -> None:
    assert found(ill, "prepared-statements", "greedy") is None
    assert ill.unseen == {}


def test_a_plan_that_is_well_shows_nothing(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(WELL)
    seen = examined(stack, tmp_path / "mine.yaml")
    assert seen.findings == (), seen
    assert seen.unseen == {}
    assert len(seen.checked) == len(RULES)


def test_a_stack_that_is_well_shows_nothing(stack: LocalStack) -> None:
    seen = examined(stack)
    assert seen.findings == (), seen
    assert seen.unseen == {}


def test_what_is_wrong_with_services_and_machine_is_found_and_gone_afterwards(
    stack: LocalStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = "cluster.routing.allocation.disk"
    stages = {"low": "1%", "high": "99%", "flood_stage": "99.5%"}
    wanted = {f"{disk}.threshold_enabled": True, **{f"{disk}.watermark.{stage}": at for stage, at in stages.items()}}
    with cluster_set(stack, wanted), monkeypatch.context() as patch:
        # A real machine has too much of these.
        patch.setattr(looking, "LEAST_FREE_BYTES", 10**18)
        patch.setattr(services, "LEAST_AVAILABLE_BYTES", 10**18)
        seen = examined(stack)
    expected = {
        "full-disk": "beyond the low watermark, 1%",
        "little-memory": "GB of memory are available",
        "little-disk": "at least 1000000000 GB",
    }
    assert {each.code for each in seen.findings} == expected.keys()
    for code, said in expected.items():
        finding = found(seen, code)
        assert said in finding.what, finding
    assert examined(stack).findings == ()


@pytest.fixture
def connect(stack: LocalStack, kafka: Kafka) -> Iterator[ConnectCluster]:
    """The workers; the connectors of a test are gone after it."""
    with ConnectCluster(stack.endpoints.connect.values()) as cluster:
        yield cluster
        remove_connectors(cluster, kafka, *cluster.connectors())


@pytest.fixture
def skewed(stack: LocalStack, kafka: Kafka) -> Iterator[str]:
    """A topic whose records all have one key."""
    to = ("--bootstrap", stack.endpoints.kafka, "--topic", TOPIC)
    succeeded(loadgen(*to, "--count", "2000", "--partitions", "3", "--keys", "1"))
    yield TOPIC
    kafka.delete_topic(TOPIC)


@pytest.mark.long
def test_what_is_wrong_with_connectors_that_run_is_found(
    stack: LocalStack, skewed: str, connect: ConnectCluster, kafka: Kafka, tmp_path: Path
) -> None:
    # The topic is deleted after the connectors: a consumer that has lost its topic takes a minute to leave.
    mine = {**JDBC, "topics": skewed, "collection.name.format": "tides"}
    connect.create("doctor-new", {**mine, "tasks.max": "4"})
    connect.create("doctor-fails", {**JDBC, "topics": skewed, "tasks.max": "1"})
    connect.wait_for_tasks("doctor-new", 4)
    until(lambda: (status := connect.status("doctor-fails")) is not None and bool(status.failed))
    seen = examined(stack)
    expected = {
        ("failed-tasks", "doctor-fails"): "1 of 1 tasks FAILED",
        ("more-tasks-than-partitions", "doctor-new"): "4 tasks read 3 partitions, so that 1 of them",
        ("empty-partitions", "doctor-new"): "1 of the 3 partitions that it reads have records, for 4 tasks",
    }
    for (code, subject), said in expected.items():
        finding = found(seen, code, subject)
        assert finding is not None, (code, seen)
        assert said in finding.what, finding
    # With a plan they are what the race would have beside it.
    (tmp_path / "mine.yaml").write_text(WELL)
    assert found(examined(stack, tmp_path / "mine.yaml"), "other-connectors", "doctor-new") is not None


def test_what_clusters_of_others_do_not_show_is_named(
    stack: LocalStack, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinkbench: Run
) -> None:
    endpoints = stack.endpoints
    password = str(conninfo_to_dict(endpoints.sinks["postgres"].address)["password"])
    monkeypatch.setenv("DOCTOR_PASSWORD", password)

    def clusters(port: int) -> ExternalStack:
        dsn = f"host=127.0.0.1 port={port} dbname=sinkbench user=sinkbench"
        postgres = {"dsn": dsn, "password": {"env": "DOCTOR_PASSWORD"}}
        elasticsearch = {"url": endpoints.sinks["elasticsearch"].address}
        return ExternalStack(stack_file(tmp_path, endpoints, postgres=postgres, elasticsearch=elasticsearch))

    seen = examined(clusters(settings.port("postgres_port")))
    assert seen.findings == ()
    assert {"little-memory", "little-disk", "small-pool"} <= set(seen.unseen)
    assert {"failed-tasks", "empty-partitions", "too-many-connections", "full-disk"} <= set(seen.checked)
    (closed,) = free_ports(1)
    clusters(closed)
    done = succeeded(sinkbench("doctor", "--stack", "clusters.yaml"))
    assert "too-many-connections" in done.stdout
    assert f"port {closed} failed" in done.stdout.replace("\n", " ")
