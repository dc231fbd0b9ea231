"""A secured stack, really: the same pipelines run on it, the wrong password is refused, and no secret is shown."""

import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import trustme

from sinkbench.stack.home import Home
from sinkbench.stack.local import LocalStack
from sinkbench.stack.security import Security, kept_security
from tests.e2e.onetrial import one_trial
from tests.e2e.ownstacks import own_stack
from tests.support.processwatch import Watch
from tests.support.refusals import (
    do_not_convince_who_trusts_another_authority,
    refuse_plain_text,
    refuse_wrong_passwords,
)

OFFSET = 2500
RECORDS = 3_000
# PgBouncer has PostgreSQL behind it.
PIPELINES = (
    *("elasticsearch/camel-bulk", "postgres/jdbc-pgbouncer"),
    *("elasticsearch/reference-bulk", "postgres/reference-copy"),
)
PLAN = f"pipelines: [{', '.join(PIPELINES)}]\ntrials: 1\nload: {{partitions: 6}}\ndrain: {{compiling_percent: 100}}\n"

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
    "cell",
    # The others run on secured containers, too.
    [
        pytest.param(at, id=name, marks=() if "reference" in name else pytest.mark.rare)
        for at, name in enumerate(PIPELINES)
    ],
)
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


def test_strangers_are_refused_by_each_service(secured: LocalStack, tmp_path: Path) -> None:
    refuse_wrong_passwords(secured.endpoints)
    refuse_plain_text(secured.endpoints)
    do_not_convince_who_trusts_another_authority(secured.endpoints, tmp_path)


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
