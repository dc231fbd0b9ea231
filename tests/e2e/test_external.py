"""Races on clusters that are there already: the test stack, seen from a stack file, behind TLS and passwords."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import trustme
from psycopg.conninfo import conninfo_to_dict

from sinkbench.errors import StackError
from sinkbench.race.leftovers import note_run, sweep
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.sinks import open_sink
from sinkbench.stack.external import ExternalStack
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import is_ours
from tests.e2e.onetrial import one_trial
from tests.e2e.otherservices import sasl_broker
from tests.e2e.tlsdoor import door
from tests.support.commands import Run, succeeded
from tests.support.observers import At
from tests.support.processwatch import Watch
from tests.support.trials import plan_of, quick_plan

HTTP_PASSWORD = "swordfish-of-the-doors"  # noqa: S105
SQL_PASSWORD = "swordfish-of-the-tables"  # noqa: S105
WRONG = "not-the-swordfish"
ROLE = "bench_external"
STACK = """
kafka:
  bootstrap: BOOTSTRAP
connect:
  urls: [CONNECT]
  workers: 3
  user: bench
  password: {env: HTTP_PASSWORD}
  ca: ca.pem
  variables:
    POSTGRES_USER: bench_external
    POSTGRES_PASSWORD: {env: SQL_PASSWORD}
elasticsearch:
  url: ELASTICSEARCH
  index: external_tides
  user: bench
  password: {env: HTTP_PASSWORD}
  ca: ca.pem
postgres:
  dsn: host=127.0.0.1 port=PORT dbname=sinkbench user=bench_external
  password: {file: sql-password}
"""
CONSOLE = """
pgbouncer:
  dsn: host=127.0.0.1 port=PORT dbname=pgbouncer user=sinkbench
  password: {env: CONSOLE_PASSWORD}
"""


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """Who signs the certificates of the doors."""
    return trustme.CA()


@pytest.fixture(scope="module")
def role(stack: LocalStack) -> Iterator[None]:
    """A user of PostgreSQL with the rights that docs/where.md asks for, and no more."""
    with psycopg.connect(stack.endpoints.sinks["postgres"].address, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{SQL_PASSWORD}'")
        connection.execute(f"GRANT CREATE ON DATABASE sinkbench TO {ROLE}")
        connection.execute(f"GRANT CREATE ON SCHEMA public TO {ROLE}")
    yield
    with psycopg.connect(stack.endpoints.sinks["postgres"].address, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {ROLE}")
        connection.execute(f"DROP ROLE {ROLE}")


@dataclass(frozen=True)
class Clusters:
    """The test stack as somebody's own clusters: a folder with a stack file, certificates and passwords."""

    folder: Path
    text: str

    def write(self, text: str | None = None) -> str:
        """Writes the stack file, and returns its name."""
        (self.folder / "clusters.yaml").write_text(text or self.text)
        return "clusters.yaml"

    def line_of(self, part: str, text: str | None = None) -> int:
        """The line of the stack file that holds `part`."""
        return next(n for n, line in enumerate((text or self.text).splitlines(), start=1) if part in line)


@pytest.fixture
def clusters(
    stack: LocalStack, role: None, ca: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Clusters]:
    monkeypatch.setenv("HTTP_PASSWORD", HTTP_PASSWORD)
    monkeypatch.setenv("SQL_PASSWORD", SQL_PASSWORD)
    # Where the lock and the book of runs are.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    trustme.CA().cert_pem.write_to_path(tmp_path / "other-ca.pem")
    (tmp_path / "sql-password").write_text(SQL_PASSWORD + "\n")
    endpoints = stack.endpoints
    with (
        door(endpoints.connect["connect-1"], ca, "bench", HTTP_PASSWORD) as connect,
        door(endpoints.sinks["elasticsearch"].address, ca, "bench", HTTP_PASSWORD) as elasticsearch,
    ):
        text = STACK.replace("BOOTSTRAP", endpoints.kafka).replace("CONNECT]", f"{connect}]")
        text = text.replace("ELASTICSEARCH", elasticsearch)
        yield Clusters(tmp_path, text.replace("PORT", str(stack.settings.port("postgres_port"))))


def everything_below(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def names_of_trials(stack: LocalStack) -> list[str]:
    """Everything on the stack that is named like a trial's, whoever has made it."""
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        found = connect.connectors()
    found += Kafka(stack.endpoints.kafka).topics()
    found += httpx.get(f"{stack.endpoints.sinks['elasticsearch'].address}/_cat/indices?h=index").text.split()
    with psycopg.connect(stack.endpoints.sinks["postgres"].address) as connection:
        found += [name for (name,) in connection.execute("SELECT tablename FROM pg_tables").fetchall()]
    return [name for name in found if name.startswith("tides_") or is_ours(name)]


@pytest.mark.long
def test_a_race_through_tls_and_passwords_measures_what_can_be_seen_and_stores_no_secret(
    stack: LocalStack, clusters: Clusters, sinkbench: Run
) -> None:
    (clusters.folder / "mine.yaml").write_text(quick_plan("postgres/jdbc", "elasticsearch/camel-bulk", window=3))
    watch = Watch()
    with watch.going():
        done = succeeded(sinkbench("race", "mine.yaml", "--stack", clusters.write()))
    assert "not measured on these clusters: CPU time of Kafka" in done.stdout
    summary: dict[str, Any] = json.loads((clusters.folder / "results" / "latest" / "summary.json").read_text())
    jdbc, bulk = summary["cells"]
    for cell in (jdbc, bulk):
        assert cell["passed"] is True, cell
        assert cell["audit"]["produced"] == cell["audit"]["stored"] > 0
        used = dict(cell["cpu_seconds_per_million"])
        assert used.pop("controller") > 0
        assert used == {"kafka": None, "elasticsearch": None, "postgres": None, "connect": None}
        assert cell["total_peak_memory_bytes"] is None
        assert cell["disk_bytes_per_record"] is None or cell["disk_bytes_per_record"]["median"] > 50
        # Connect's own ids of the workers, since the stack file knows no others.
        assert sorted(cell["placement"].values()) == [1, 1, 1]
        assert set(cell["placement"]) == set(stack.endpoints.worker_ids)
    # The role may not see others' connections; whoever is asked by HTTP shows them.
    assert jdbc["connections"] == {"clients_peak": None, "server_peak": None, "server_limit": 100, "others": 0}
    assert bulk["connections"]["clients_peak"] > 0
    environment = summary["environment"]
    assert environment["stack"] == "external"
    assert "connections through a pooler" in environment["unmeasured"]
    assert "java" not in environment["versions"]
    assert environment["versions"]["connect"]
    # Whose machines they are, and how these are set, is not to be seen from here.
    assert environment["disk"] == {"filesystem": None, "kind": None}
    assert environment["jvm"]["kafka"] == {"version": None, "flags": None}
    assert environment["durability"]["postgres"]["fsync"] == "on"
    assert environment["plugins"]["io.debezium.connector.jdbc.JdbcSinkConnector"]
    made = [sinkbench("export", "results/latest", "--format", form).stdout for form in ("csv", "json", "md")]
    assert sinkbench("report", "results/latest").returncode == 0
    shown = done.stdout + done.stderr + "".join(made)
    # What supervisord keeps of every service, and what this account's temporary folder has.
    logs = everything_below(stack.settings.home / "log")
    others = "\n".join(path.read_text() for path in clusters.folder.glob("sinkbench-*/*") if path.is_file())
    assert any("sinkbench.services.worker" in line for line in watch.seen)
    for place in (shown, everything_below(clusters.folder / "results"), logs, others, "\n".join(watch.seen)):
        assert HTTP_PASSWORD not in place
        assert SQL_PASSWORD not in place
    assert names_of_trials(stack) == []


def test_what_somebody_else_has_made_survives_a_race(
    stack: LocalStack, clusters: Clusters, database: psycopg.Connection
) -> None:
    """Even where it is named just like something that this account's own killed run has left behind."""
    external = ExternalStack(clusters.folder / clusters.write())
    note_run(external, "ab12cd")
    theirs = "tides_ab12cd_001"
    left = "tides_ab12cd_002"
    elasticsearch = open_sink("elasticsearch", external.endpoints, CHECKOUT)
    postgres = open_sink("postgres", external.endpoints, CHECKOUT)
    try:
        postgres.create(left)
        elasticsearch.create(left)
        httpx.put(f"{stack.endpoints.sinks['elasticsearch'].address}/{theirs}").raise_for_status()
        database.execute(f"CREATE TABLE {theirs} (payload jsonb)")
        database.execute("CREATE TABLE tides_of_march (day date)")
        for sink in (postgres, elasticsearch):
            with pytest.raises(StackError, match=f"sinkbench has not made the .* {theirs}"):
                sink.drop(theirs)
            with pytest.raises(StackError, match=f"did not make the .* {theirs} .* already exists"):
                sink.create(theirs)
        with closing(Cluster(external, plan_of(), CHECKOUT)) as cluster:
            assert sorted(sweep(cluster)) == [f"elasticsearch's {left}", f"postgres's {left}"]
        assert sorted(names_of_trials(stack)) == [theirs, theirs, "tides_of_march"]
    finally:
        postgres.close()
        elasticsearch.close()
        httpx.delete(f"{stack.endpoints.sinks['elasticsearch'].address}/{theirs}")
        database.execute(f"DROP TABLE IF EXISTS {theirs}, tides_of_march")


@pytest.mark.parametrize("as_alias", [True, False])
def test_an_alias_or_index_of_somebody_else_is_not_taken(stack: LocalStack, clusters: Clusters, as_alias: bool) -> None:
    theirs = "external_theirs" if as_alias else "external_tides"
    address = f"{stack.endpoints.sinks['elasticsearch'].address}/{theirs}"
    httpx.put(address, json={"aliases": {"external_tides": {}}} if as_alias else {}).raise_for_status()
    external = ExternalStack(clusters.folder / clusters.write())
    sink = open_sink("elasticsearch", external.endpoints, CHECKOUT)
    try:
        with pytest.raises(StackError, match=r"external_tides is an .*; set elasticsearch.index in the stack file"):
            sink.create("tides_ab12cd_003")
        assert names_of_trials(stack) == []
        assert "external_tides" in httpx.get(f"{address}/_alias").text
    finally:
        sink.close()
        httpx.delete(address)


def refused(clusters: Clusters, text: str | None = None) -> str:
    """Why clusters are not used that a stack file with that text names."""
    with pytest.raises(StackError) as error:
        ExternalStack(clusters.folder / clusters.write(text)).up(lambda line: None)
    said = str(error.value)
    assert not any(secret in said for secret in (HTTP_PASSWORD, SQL_PASSWORD, WRONG))
    return said


@pytest.mark.parametrize(
    ("section", "line", "answer"),
    [
        ("connect", "urls:", r"connect-1 at https://127.0.0.1:\d+: HTTP 401 Unauthorized: .*unable to authenticate"),
        ("elasticsearch", "url: h", r"elasticsearch at https://127.0.0.1:\d+: HTTP 401 Unauthorized: .*unable to auth"),
        ("postgres", "dsn:", r'postgres at host=.*: .*password authentication failed for user "bench_external"'),
    ],
)
def test_a_wrong_password_is_told_with_the_endpoint_and_its_answer(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch, section: str, line: str, answer: str
) -> None:
    monkeypatch.setenv("WRONG", WRONG)
    before, found, after = clusters.text.partition(f"{section}:\n")
    text = before + found + re.sub(r"password: \{.*\}", "password: {env: WRONG}", after, count=1)
    said = refused(clusters, text)
    assert len(said.splitlines()) == 1
    number = clusters.line_of(line, text)
    assert re.search(rf"clusters.yaml:{number}: {answer}.*; check user and password", said), said


def test_a_wrong_password_of_pgbouncers_console_is_told(
    stack: LocalStack, clusters: Clusters, sinkbench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSOLE_PASSWORD", WRONG)
    text = clusters.text + CONSOLE.replace("PORT", str(stack.settings.port("pgbouncer_port")))
    said = refused(clusters, text)
    assert re.search(r"clusters.yaml:\d+: pgbouncer at .*authentication failed.*; check user and password", said), said
    monkeypatch.setenv(
        "CONSOLE_PASSWORD", str(conninfo_to_dict(stack.endpoints.sinks["pgbouncer"].address)["password"])
    )
    assert "every endpoint answers" in succeeded(sinkbench("up", "--stack", "clusters.yaml")).stdout


def test_a_certificate_that_the_ca_has_not_signed_is_told(clusters: Clusters) -> None:
    said = refused(clusters, clusters.text.replace("ca: ca.pem", "ca: other-ca.pem"))
    assert len(said.splitlines()) == 2
    for service, line in (("connect-1", "urls:"), ("elasticsearch", "url: h")):
        where = f"clusters.yaml:{clusters.line_of(line)}: {service} at"
        assert re.search(rf"{where} .*certificate verify failed.*; .* as the CA", said), said


def test_a_user_without_the_rights_is_told_which(clusters: Clusters, database: psycopg.Connection) -> None:
    database.execute(f"REVOKE CREATE ON SCHEMA public FROM {ROLE}")
    try:
        said = refused(clusters)
    finally:
        database.execute(f"GRANT CREATE ON SCHEMA public TO {ROLE}")
    assert re.search(r"postgres at .*: bench_external may not make schemas .*; GRANT CREATE", said), said


@pytest.mark.long
def test_a_wrong_password_of_the_connectors_is_told_by_what_postgresql_answers(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", WRONG)
    text = clusters.text.replace("POSTGRES_PASSWORD: {env: SQL_PASSWORD}", "POSTGRES_PASSWORD: {env: WRONG}")
    external = ExternalStack(clusters.folder / clusters.write(text))
    record, _ = one_trial(external, clusters.folder, "pipelines: [postgres/jdbc]\n", 1_000)
    assert record.failed_tasks > 0
    assert re.search("password authentication failed for user .bench_external.", record.failure or ""), record
    assert WRONG not in record.model_dump_json()


@pytest.fixture(scope="module")
def broker(
    stack: LocalStack, settings: Settings, ca: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A broker that wants TLS and a password, ready."""
    folder = tmp_path_factory.mktemp("broker")
    with sasl_broker(settings.dist / "kafka" / "libs", folder, ca, "bench", HTTP_PASSWORD) as bootstrap:
        yield bootstrap


SETTINGS = """
  settings:
    security.protocol: SASL_SSL
    sasl.mechanism: PLAIN
    sasl.username: bench
    sasl.password: {env: KAFKA_PASSWORD}
    ssl.ca.location: ca.pem
"""


def with_broker(clusters: Clusters, broker: str, settings: str = SETTINGS) -> str:
    return re.sub(r"bootstrap: .*\n", lambda found: f"bootstrap: {broker}{settings}", clusters.text, count=1)


def test_kafka_is_reached_by_tls_and_sasl(clusters: Clusters, broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", HTTP_PASSWORD)
    external = ExternalStack(clusters.folder / clusters.write(with_broker(clusters, broker)))
    external.up(lambda line: None)
    kafka = Kafka(broker, external.endpoints.kafka_settings)
    kafka.create_topic("of_sasl", 2)
    assert kafka.topics() == ["of_sasl"]
    kafka.delete_topic("of_sasl")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (SETTINGS, r"SASL authentication error: Authentication failed.*; check sasl.mechanism, sasl.username and"),
        (SETTINGS.replace("ca.pem", "other-ca.pem"), r"certificate verify failed.*; .*as the CA"),
        (SETTINGS.replace("SASL_SSL", "SASL_PLAINTEXT"), r"; .*security.protocol"),
        (SETTINGS.replace("sasl.username", "sasl.user"), r'No such configuration property: "sasl.user"; use librd'),
    ],
)
def test_a_broker_that_does_not_let_us_in_is_named(
    clusters: Clusters, broker: str, monkeypatch: pytest.MonkeyPatch, given: str, answer: str
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", WRONG)
    text = with_broker(clusters, broker, given)
    said = refused(clusters, text)
    assert len(said.splitlines()) == 1
    assert re.search(rf"clusters.yaml:{clusters.line_of('bootstrap', text)}: kafka at {broker}: .*{answer}", said), said


@pytest.mark.long
def test_records_that_another_race_takes_for_itself_are_not_called_lost(stack: LocalStack, tmp_path: Path) -> None:
    """The connectors' index is a name for one index at a time, whoever points it there."""
    theirs = "tides_ab12cd_004"
    other = open_sink("elasticsearch", stack.endpoints, CHECKOUT)
    asked = "pipelines: [elasticsearch/camel-bulk]\ndrain: {window_seconds: 3, stall_seconds: 5}\n"
    try:
        record, _ = one_trial(stack, tmp_path, asked, 2_000, observer=At(draining=lambda: other.create(theirs)))
    finally:
        other.drop(theirs)
        other.close()
    assert record.invalid[0] == (
        f"what the connectors call tides is {theirs} by now: another race uses this Elasticsearch; wait for its end"
    )
    assert record.audit is None
