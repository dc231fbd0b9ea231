"""A secured stack, really: the same pipelines run on it, the wrong password is refused, and no secret is shown."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest
import trustme
from psycopg.conninfo import make_conninfo

from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka, group_of
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.certificates import Signed, issue
from sinkbench.stack.home import Home
from sinkbench.stack.local import LocalStack
from sinkbench.stack.securing import LOCAL_NAMES
from sinkbench.stack.security import ACCOUNT, Security, kept_security
from tests.e2e.expiry import expiring_certificates
from tests.e2e.onetrial import one_trial
from tests.support.commands import QUICKLY_COMPILED
from tests.support.expired import an_expired_certificate
from tests.support.processwatch import Watch
from tests.support.refusals import (
    do_not_convince_once_expired,
    do_not_convince_who_trusts_another_authority,
    refuse_plain_text,
    refuse_wrong_passwords,
)
from tests.support.tlsserver import NO_CHECK_TIME

OFFSET = 2500
RECORDS = 3_000
TOPIC = "of_somebody"
PIPELINES = ("elasticsearch/camel-index", "elasticsearch/camel-bulk", "postgres/jdbc", "postgres/jdbc-pgbouncer")
# A task that sends batches has not failed when its batch has.
OF_SINGLE_WRITES = ("elasticsearch/camel-index", "postgres/jdbc", "postgres/jdbc-pgbouncer")
PLAN = f"pipelines: [{', '.join(PIPELINES)}]\ntrials: 1\nload: {{partitions: 6}}\ndrain: {{compiling_percent: 100}}\n"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def secured(watch: Watch) -> Iterator[LocalStack]:
    """The running stack, beside whatever else is up."""
    usual = load_settings()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            **{"STACK": "local", "SECURITY": "on", "WORKERS": "1", "HOME": str(usual.home / "secured stack")},
            **{"DIST": str(usual.dist), "PORT_OFFSET": str(usual.port_offset + OFFSET)},
            **{"JAVA_OPTIONS": QUICKLY_COMPILED},
        }.items():
            patch.setenv(f"SINKBENCH_{name}", value)
        settings = load_settings()
        stack = LocalStack(settings)
        stack.down()
        shutil.rmtree(Home(settings).data, ignore_errors=True)
        shutil.rmtree(settings.home / "log", ignore_errors=True)
        with watch.going():
            done = subprocess.run(
                [sys.executable, "-m", "sinkbench", "up"], check=False, capture_output=True, text=True
            )
        assert done.returncode == 0, done.stdout + done.stderr
        yield stack
        stack.down()
        shutil.rmtree(Home(settings).data)


@pytest.fixture(scope="module")
def security(secured: LocalStack) -> Security:
    found = kept_security(Home(secured.settings).security)
    assert found is not None
    return found


@pytest.mark.parametrize("cell", range(len(PIPELINES)), ids=PIPELINES)
def test_the_pipelines_of_every_stack_run_and_show_no_secret(
    cell: int, secured: LocalStack, security: Security, watch: Watch, tmp_path: Path
) -> None:
    with watch.going():
        record, _ = one_trial(secured, tmp_path, PLAN, RECORDS, cell=cell)
    assert record.audit is not None, record.reasons
    assert (record.audit.lost, record.audit.duplicates, record.audit.stored) == (0, 0, RECORDS)
    texts = {path.name: path.read_text(errors="replace") for path in (secured.home / "log").iterdir()}
    texts["the trial"] = repr(record)
    texts |= {line: line for line in watch.seen}
    for service, password in security.passwords.items():
        assert [name for name, text in texts.items() if password in text] == [], service


def test_connections_to_postgres_are_encrypted(secured: LocalStack) -> None:
    with psycopg.connect(secured.endpoints.sinks["postgres"].address) as connection:
        rows = connection.execute("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl").fetchall()
    assert [version for (version,) in rows] == ["TLSv1.3"]


def test_a_wrong_password_is_refused_by_each_service(secured: LocalStack) -> None:
    refuse_wrong_passwords(secured.endpoints)


def test_plain_text_is_refused_by_each_service(secured: LocalStack) -> None:
    refuse_plain_text(secured.endpoints)


def test_whoever_trusts_another_authority_talks_to_none_of_them(secured: LocalStack, tmp_path: Path) -> None:
    do_not_convince_who_trusts_another_authority(secured.endpoints, tmp_path)


def test_services_that_show_an_expired_certificate_are_not_waited_for(
    secured: LocalStack, security: Security, tmp_path: Path
) -> None:
    with an_expired_certificate(security.folder) as path:
        refused = sinkbench(tmp_path, "up")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert f"{path}: the certificate of the running services has expired at" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert sinkbench(tmp_path, "up").returncode == 0
    assert {state.state for state in secured.services()} == {"running"}


@pytest.mark.parametrize("port", ["kafka_controller_port", "elasticsearch_transport_port"])
def test_nodes_let_in_only_nodes_whom_the_authority_has_signed_and_not_those_that_have_expired(
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
    authority = Signed(security.ca.read_bytes(), (security.folder / "ca.key").read_bytes())
    expired = issue(authority, LOCAL_NAMES, datetime.now(UTC) - timedelta(days=2), timedelta(days=1))
    (tmp_path / "expired.pem").write_bytes(expired.certificate + expired.key)
    assert is_let_in(security.folder / "node.pem", security.folder / "node.key")
    assert not is_let_in(None)
    assert not is_let_in(tmp_path / "stranger.pem")
    assert not is_let_in(tmp_path / "expired.pem")


def sinkbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sinkbench", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@contextmanager
def the_connector(stack: LocalStack, name: str, config: dict[str, str]) -> Iterator[ConnectCluster]:
    """A connector of somebody else, which is gone afterwards."""
    kafka = Kafka(stack.endpoints.kafka, stack.endpoints.kafka_settings)
    with ConnectCluster(stack.endpoints.connect.values(), stack.endpoints.connect_access) as connect:
        connect.create(name, config)
        try:
            yield connect
        finally:
            connect.delete(name)
            connect.wait_until_gone(name)
            kafka.wait_until_empty(group_of(name))
            kafka.delete_group(group_of(name))


@contextmanager
def records_of_somebody(stack: LocalStack) -> Iterator[None]:
    """Some records in a topic that is none of a trial's."""
    kafka = Kafka(stack.endpoints.kafka, stack.endpoints.kafka_settings)
    kafka.create_topic(TOPIC, 1)
    kafka.produce(TOPIC, [b"{}"] * 10)
    yield
    kafka.delete_topic(TOPIC)


@contextmanager
def logged(stack: LocalStack, service: str) -> Iterator[Callable[[], str]]:
    """What tells what a service has written into its log since then."""
    log = stack.home / "log" / f"{service}.log"
    before = log.stat().st_size
    yield lambda: log.read_bytes()[before:].decode()


def until(said: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not said():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.rare
def test_nobody_talks_to_a_service_whose_certificate_has_expired(secured: LocalStack, security: Security) -> None:
    with expiring_certificates(secured, security) as expiring:
        with client_whom_the_pooler_has_let_in(secured):
            expiring.long_ago("elasticsearch", "postgres")
        expiring.long_ago("pgbouncer")
        with records_of_somebody(secured):
            for pipeline in OF_SINGLE_WRITES:
                its_tasks_fail(secured, pipeline)
        expiring.long_ago("connect-1")
        wait_for_the_worker(secured, security)
        expiring.while_it_runs("kafka")
        do_not_convince_once_expired(secured.endpoints)
        with logged(secured, "connect-1") as told:
            expiring.start_again("connect-1")
            until(lambda: not expiring.runs("connect-1"))
            assert "CertificateExpiredException" in told()


def wait_for_the_worker(stack: LocalStack, security: Security) -> None:
    """Until it answers whoever does not look when its certificate expires: until then it needs Kafka."""
    context = ssl.create_default_context(cafile=security.ca)
    context.verify_flags |= NO_CHECK_TIME
    access = stack.endpoints.connect_access
    user = httpx.BasicAuth(str(access.user), str(access.password))
    with httpx.Client(verify=context, auth=user, trust_env=False) as http:

        def is_ready() -> bool:
            with suppress(httpx.TimeoutException):
                return http.get(f"{stack.endpoints.connect['connect-1']}/connectors").is_success
            return False

        until(is_ready)


@contextmanager
def client_whom_the_pooler_has_let_in(stack: LocalStack) -> Iterator[None]:
    """Its next query, afterwards, gets no answer: PgBouncer does not take the database for what it says it is."""
    address = make_conninfo(stack.endpoints.sinks["pgbouncer"].address, dbname=ACCOUNT)
    with closing(psycopg.connect(address, autocommit=True)) as client, logged(stack, "pgbouncer") as told:
        assert client.execute("SELECT 1").fetchone() == (1,)
        yield
        client.pgconn.send_query(b"SELECT 1")
        until(lambda: "certificate verify failed" in told())
        client.pgconn.consume_input()
        assert client.pgconn.is_busy()


def its_tasks_fail(stack: LocalStack, pipeline: str) -> None:
    config = json.loads((CHECKOUT / "connectors" / f"{pipeline}.json").read_text())["config"]
    name = pipeline.replace("/", "-")
    with (
        logged(stack, "connect-1") as told,
        the_connector(stack, name, {**config, "topics": TOPIC, "tasks.max": "1"}) as connect,
    ):
        until(lambda: (status := connect.status(name)) is not None and bool(status.failed))
        # Hibernate keeps the reason to the log.
        assert "(certificate_expired)" in told(), pipeline
