"""A secured stack, really: the same pipelines run on it, the wrong password is refused, and no secret is shown."""

import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import trustme

from sinkbench.limits import kafka
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.http import http_client
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.stack.home import Home
from sinkbench.stack.local import LocalStack
from sinkbench.stack.security import Security, kept_security
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.observer import Observer
from tests.e2e.failing import TOPIC, URL, changed, told
from tests.e2e.onetrial import taken
from tests.e2e.ownstacks import own_stack
from tests.e2e.races import remove_connectors
from tests.support.processwatch import Watch
from tests.support.refusals import strangers_are_refused
from tests.support.trials import config_of, plan_of
from tests.support.waiting import until

OFFSET = 2500
RECORDS = 3_000
# PgBouncer has PostgreSQL behind it.
PIPELINES = (
    *("elasticsearch/camel-bulk", "postgres/jdbc-pgbouncer"),
    *("elasticsearch/reference-bulk", "postgres/reference-copy"),
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def secured(watch: Watch) -> Iterator[LocalStack]:
    """The running stack, beside whatever else is up."""
    with own_stack("secured stack", OFFSET, SECURITY="on", WORKERS="1") as stack:
        shutil.rmtree(stack.settings.home / "log", ignore_errors=True)
        with watch.going():
            stack.up(lambda line: None)
        yield stack


@pytest.fixture(scope="module")
def security(secured: LocalStack) -> Security:
    return kept_security(Home(secured.settings).security)


@pytest.mark.parametrize(
    "pipeline",
    # The others run on secured containers, too.
    [pytest.param(name, marks=() if "reference" in name else pytest.mark.rare) for name in PIPELINES],
)
def test_the_pipelines_of_every_stack_run_and_show_no_secret(
    pipeline: str, secured: LocalStack, security: Security, watch: Watch, tmp_path: Path
) -> None:
    with watch.going():
        record = taken(secured, tmp_path, pipeline, records=RECORDS)
    assert record.audit is not None, record.reasons
    assert (record.audit.lost, record.audit.duplicates, record.audit.stored) == (0, 0, RECORDS)
    texts = {path.name: path.read_text(errors="replace") for path in (secured.home / "log").iterdir()}
    texts["the trial"] = repr(record)
    texts |= {line: line for line in watch.seen}
    for service, password in security.passwords.items():
        assert [name for name, text in texts.items() if password in text] == [], service


def test_kafkas_own_programs_produce_and_consume_and_show_no_secret(
    secured: LocalStack, security: Security, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "SECONDS", 0.2)
    plan = plan_of(kafka=[{"label": "it", "readers": 1}])
    with watch.going(), closing(Cluster(secured, plan, CHECKOUT)) as bench:
        (job,) = kafka.kafka_jobs(bench, "abcdef")
        limit = job.run(Observer())
    assert (limit.note, limit.path[-1].confirms) == (None, True)
    assert [line for line in watch.seen if security.passwords["kafka"] in line] == []


def test_strangers_are_refused_by_each_service_and_connections_are_encrypted(
    secured: LocalStack, tmp_path: Path
) -> None:
    strangers_are_refused(secured.endpoints, tmp_path)


@pytest.mark.parametrize("port", ["kafka_controller_port", "elasticsearch_transport_port"])
def test_nodes_let_in_only_nodes_with_a_certificate_of_the_authority(
    port: str, secured: LocalStack, security: Security, tmp_path: Path
) -> None:
    def is_let_in(certificate: Path | None, key: Path | None = None) -> bool:
        context = ssl.create_default_context(cafile=security.ca)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        with socket.create_connection(("127.0.0.1", secured.settings.port(port)), timeout=10) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="localhost") as connection:
                    connection.settimeout(2)
                    # With TLS 1.3 a client hears of its refusal when it reads.
                    return connection.recv(1) != b""
            except TimeoutError:
                return True
            except (ssl.SSLError, ConnectionError):
                return False

    stranger = trustme.CA().issue_cert("localhost")
    stranger.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "stranger.pem"))
    assert is_let_in(security.folder / "node.pem", security.folder / "node.key")
    assert not is_let_in(None)
    assert not is_let_in(tmp_path / "stranger.pem")


HOSTS, USER, MODE, CA = "elasticsearch.hosts", "elasticsearch.username", "${env:POSTGRES_SSLMODE}", "${env:POSTGRES_CA}"
BULK, JDBC, POOLED = map(config_of, ("elasticsearch/reference-bulk", "postgres/jdbc", "postgres/jdbc-pgbouncer"))
REASONS = {
    "password": ({**BULK, "elasticsearch.password": "wrong"}, f"({USER}, elasticsearch.password): correct the login"),
    "role": ({**BULK, USER: "nobody"}, f"({USER}): give this user the right to write"),
    "authority": ({**BULK, HOSTS: "https://${env:ELASTICSEARCH_HOSTS}", "elasticsearch.ca": "", "retry.for.ms": "0"},
                  f"({HOSTS}): name the authority that signed"),
    "plain": (changed(JDBC, MODE, "disable"), f"({URL}, connection.username): allow it in pg_hba.conf, or (no encr"),
    "pooled-plain": (changed(POOLED, MODE, "disable"), f"({URL}: ssl): set sslmode to what the server has"),
    "certificate": (changed(JDBC, CA, "/no/such.pem"), f"({URL}: ssl): set sslmode to what the server has"),
}  # fmt: skip


@pytest.fixture
def nobody(secured: LocalStack) -> Iterator[None]:
    """A user of Elasticsearch who has the password of the other, and no role."""
    there = secured.endpoints.sinks["elasticsearch"]
    users = Home(secured.settings).data / "elasticsearch" / "config" / "users"
    before = users.read_text()
    users.write_text(f"{before}nobody:{before.partition(':')[2]}")
    try:
        # Elasticsearch reads the file every 5 s.
        with http_client(replace(there.access, user="nobody"), 10) as http:
            until(lambda: http.get(f"{there.address}/_security/_authenticate").status_code == httpx.codes.OK, 30)
        yield
    finally:
        users.write_text(before)


def test_what_a_secured_service_refuses_is_said_with_the_keys_that_it_concerns(
    secured: LocalStack, nobody: None
) -> None:
    ends = secured.endpoints
    kafka = Kafka(ends.kafka, ends.kafka_settings)
    with ConnectCluster(ends.connect.values(), ends.connect_access) as connect:
        try:
            kafka.create_topic(TOPIC, 1)
            kafka.produce(TOPIC, [b'{"tide": 1}'])
            found = told(secured, connect, {name: config for name, (config, _) in REASONS.items()})
        finally:
            remove_connectors(connect, kafka, *connect.connectors())
            kafka.delete_topic(TOPIC)
    assert {name: found[name] for name, (_, said) in REASONS.items() if said not in found[name]} == {}
