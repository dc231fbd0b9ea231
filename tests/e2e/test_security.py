"""A secured stack, really: the same pipelines run on it, the wrong password is refused, and no secret is shown."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
import trustme
from psycopg.conninfo import make_conninfo

from sinkbench.doctor.diagnosis import Finding, diagnose
from sinkbench.doctor.facts import Facts
from sinkbench.doctor.look import look
from sinkbench.doctor.rules import RULES
from sinkbench.services.http import http_client
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.home import Home
from sinkbench.stack.local import LocalStack
from sinkbench.stack.security import Security, kept_security
from tests.e2e.onetrial import one_trial
from tests.support.commands import QUICKLY_COMPILED

OFFSET = 2500
RECORDS = 3_000
PIPELINES = ("elasticsearch/camel-index", "elasticsearch/camel-bulk", "postgres/jdbc", "postgres/jdbc-pgbouncer")
PLAN = f"pipelines: [{', '.join(PIPELINES)}]\ntrials: 1\nload: {{partitions: 6}}\ndrain: {{compiling_percent: 100}}\n"
LOOK_SECONDS = 0.02

pytestmark = pytest.mark.long


class Watch:
    """The command lines of all processes that lived meanwhile, also of those that lived for a moment."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    @contextlib.contextmanager
    def going(self) -> Iterator[None]:
        over = threading.Event()

        def look() -> None:
            while not over.wait(LOOK_SECONDS):
                for each in psutil.process_iter():
                    with contextlib.suppress(psutil.Error):
                        self.seen.add(" ".join(each.cmdline()))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


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


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of another authority."""
    path = tmp_path_factory.mktemp("foreign") / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    return path


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
    endpoints = secured.endpoints
    said = Kafka(endpoints.kafka, {**endpoints.kafka_settings, "sasl.password": "wrong"}).problem()
    assert "uthentication failed" in str(said)
    for url, access in (
        (f"{endpoints.connect['connect-1']}/connectors", endpoints.connect_access),
        (endpoints.sinks["elasticsearch"].address, endpoints.sinks["elasticsearch"].access),
    ):
        for other in (replace(access, password="wrong"), replace(access, user=None)):  # noqa: S106
            with http_client(other, 10) as http:
                assert http.get(url).status_code == httpx.codes.UNAUTHORIZED
    for name in ("postgres", "pgbouncer"):
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            psycopg.connect(make_conninfo(endpoints.sinks[name].address, password="wrong"))  # noqa: S106


def test_plain_text_is_refused_by_each_service(secured: LocalStack) -> None:
    endpoints = secured.endpoints
    assert Kafka(endpoints.kafka).problem(3) is not None
    for address in (endpoints.connect["connect-1"], endpoints.sinks["elasticsearch"].address):
        with pytest.raises(httpx.TransportError):
            httpx.get(address.replace("https://", "http://"), timeout=10)
    for name, refusal in (("postgres", "no encryption"), ("pgbouncer", "SSL required")):
        with pytest.raises(psycopg.OperationalError, match=refusal):
            psycopg.connect(make_conninfo(endpoints.sinks[name].address, sslmode="disable"))


def test_whoever_trusts_another_authority_talks_to_none_of_them(secured: LocalStack, foreign: Path) -> None:
    endpoints = secured.endpoints
    said = Kafka(endpoints.kafka, {**endpoints.kafka_settings, "ssl.ca.location": str(foreign)}).problem()
    assert "certificate verify failed" in str(said)
    for url, access in (
        (endpoints.connect["connect-1"], endpoints.connect_access),
        (endpoints.sinks["elasticsearch"].address, endpoints.sinks["elasticsearch"].access),
    ):
        with http_client(replace(access, ca=foreign), 10) as http, pytest.raises(httpx.ConnectError, match="verify"):
            http.get(url)
    for name in ("postgres", "pgbouncer"):
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            psycopg.connect(make_conninfo(endpoints.sinks[name].address, sslrootcert=str(foreign)))


def test_controllers_of_kafka_let_in_only_whom_the_authority_has_signed(
    secured: LocalStack, security: Security, tmp_path: Path
) -> None:
    def is_let_in(certificate: Path | None, key: Path | None = None) -> bool:
        context = ssl.create_default_context(cafile=security.ca)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        port = secured.settings.port("kafka_controller_port")
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
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


def test_the_doctor_sees_when_certificates_expire(secured: LocalStack) -> None:
    seen = look(secured, CHECKOUT)
    assert seen.certificates.keys() == {"connect-1", "kafka", "elasticsearch", "postgres", "pgbouncer"}
    assert "expiring-certificate" in diagnose(seen, RULES).looked_at
    assert not expiring(seen)
    # The same, a day before they do.
    assert len(expiring(replace(seen, now=min(seen.certificates.values()) - timedelta(days=1)))) == len(
        seen.certificates
    )


def expiring(seen: Facts) -> list[Finding]:
    return [each for each in diagnose(seen, RULES).findings if each.code == "expiring-certificate"]
