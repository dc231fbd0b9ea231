"""Services that are not the stack's own, for one test: other versions, a standby, a broker with passwords, MariaDB."""

import contextlib
import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from psycopg.conninfo import make_conninfo

from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.sinks.elasticsearch.service import SERVICE as ELASTICSEARCH
from sinkbench.sinks.postgres.service import POSTGRES
from sinkbench.stack import Endpoint
from sinkbench.stack.local import LocalStack
from sinkbench.stack.tools import find_java, find_postgres, find_program, run
from tests.support.commands import succeeded
from tests.support.ports import free_ports

POM = CHECKOUT / "tests" / "e2e" / "versions" / "pom.xml"
READY_SECONDS, END_SECONDS = 90.0, 60.0
PASSWORD = "of-another-version"  # noqa: S105
BROKER = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=CLIENT://127.0.0.1:{client},INNER://127.0.0.1:{inner},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=CLIENT:SASL_SSL,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INNER
sasl.enabled.mechanisms=PLAIN
listener.name.client.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
auto.create.topics.enable=false
"""
# Debian's MariaDB, and where an account without root finds no /usr/sbin in its PATH.
MARIADB = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
ACCOUNT = """
CREATE DATABASE IF NOT EXISTS bench;
CREATE OR REPLACE USER bench@127.0.0.1 IDENTIFIED BY 'PASSWORD';
GRANT ALL ON bench.* TO bench@127.0.0.1;
GRANT PROCESS ON *.* TO bench@127.0.0.1;
"""


def as_account(settings: Settings) -> dict[str, Any]:
    """Options of a process: as root it runs under the account of the stack's services."""
    user = settings.user
    return {"user": user, "group": user, "extra_groups": []} if os.geteuid() == 0 else {}


@contextlib.contextmanager
def own_folder(settings: Settings, within: Path | None = None) -> Iterator[Path]:
    """A folder of that account's: none of pytest's own, which other accounts cannot enter."""
    folder = Path(tempfile.mkdtemp(prefix="sinkbench-", dir=within))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, settings.user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running(
    command: Sequence[object],
    folder: Path,
    problem: Callable[[], object],
    *,
    ends: signal.Signals = signal.SIGTERM,
    environment: Mapping[str, str] | None = None,
    **account: Any,
) -> Iterator[None]:
    """Runs a service in a folder until the block ends, from when it has no problem any more."""
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            **{"stdout": log, "stderr": log, "cwd": folder, "start_new_session": True},
            env={**os.environ, **(environment or {})},
            **account,
        )
        try:
            deadline = time.monotonic() + READY_SECONDS
            while (found := problem()) is not None:
                said = f"{found}\n{(folder / 'log').read_text()[-4000:]}"
                assert process.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.2)
            yield
        finally:
            # With all that it has started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, ends)
            process.wait(END_SECONDS)


def other_versions(settings: Settings) -> Path:
    """The folder of what `versions/pom.xml` lists; Maven fetches it if that has changed since the last time."""
    dist = settings.dist.with_name("other-versions")
    stamp = dist / "complete"
    if stamp.exists() and stamp.read_bytes() == POM.read_bytes():
        return dist
    shutil.rmtree(dist, ignore_errors=True)
    arch = {"x86_64": "amd64", "aarch64": "arm64v8"}[platform.machine()]
    command = [str(find_program("mvn", "maven")), "-q", "-B", "-f", str(POM), "package"]
    succeeded(run([*command, f"-Ddist={dist}", f"-Darch={arch}"], {**os.environ, "JAVA_HOME": str(find_java())}))
    for packed in dist.glob("postgres-*/*.txz"):
        subprocess.run(["bsdtar", "-xf", packed.name], cwd=packed.parent, check=True)
        packed.unlink()
    # The services run under another account.
    subprocess.run(["chmod", "-R", "a+rX", str(dist)], check=True)
    shutil.copy(POM, stamp)
    return dist


@contextlib.contextmanager
def elasticsearch(settings: Settings) -> Iterator[Endpoint]:
    """The other Elasticsearch, ready."""
    (home,) = other_versions(settings).glob("elasticsearch-*")
    port, transport = free_ports(2)
    environment = {
        "ELASTICSEARCH_HOME": str(home),
        "ELASTICSEARCH_LISTEN": "127.0.0.1",
        "ELASTICSEARCH_PORT": str(port),
        "ELASTICSEARCH_TRANSPORT_PORT": str(transport),
        "ELASTICSEARCH_HEAP": "512m",
        "JAVA_OPTIONS": settings.java_options,
        # The oldest that it runs on, if it is here.
        "JAVA_HOME": str(next(Path("/usr/lib/jvm").glob("java-17-openjdk-*"), find_java())),
    }
    endpoint = Endpoint(f"http://127.0.0.1:{port}", options={"index": "tides"})
    with _by_script("elasticsearch", environment, settings, lambda: ELASTICSEARCH.ready(endpoint, True, 2.0)):
        yield endpoint


@contextlib.contextmanager
def postgres(settings: Settings, version: int) -> Iterator[Endpoint]:
    """PostgreSQL of that version, ready."""
    (port,) = free_ports(1)
    environment = {
        "POSTGRES_BIN": str(other_versions(settings) / f"postgres-{version}" / "bin"),
        "POSTGRES_LISTEN": "127.0.0.1",
        "POSTGRES_PORT": str(port),
        "POSTGRES_DB": "bench",
        "POSTGRES_USER": "bench",
        "POSTGRES_PASSWORD": PASSWORD,
    }
    where = make_conninfo(host="127.0.0.1", port=port, dbname="bench", user="bench")
    endpoint = Endpoint(make_conninfo(where, password=PASSWORD), where)
    with _by_script("postgres", environment, settings, lambda: POSTGRES.ready(endpoint, True, 2.0)):
        yield endpoint


@contextlib.contextmanager
def _by_script(
    service: str, environment: Mapping[str, str], settings: Settings, problem: Callable[[], str | None]
) -> Iterator[None]:
    """Runs the stack's own script of a service with a data folder of its own."""
    # At SIGTERM PostgreSQL would wait for its clients; Java hears no SIGINT where tests run in a shell's background.
    ends = signal.SIGINT if service == "postgres" else signal.SIGTERM
    with own_folder(settings, settings.home) as folder:
        data = {f"{service.upper()}_DATA": str(folder / "data"), "HOME": str(folder)}
        command, environment = [CHECKOUT / service / "run"], {**environment, **data}
        with running(command, folder, problem, ends=ends, environment=environment, **as_account(settings)):
            yield


@contextlib.contextmanager
def standby(stack: LocalStack) -> Iterator[int]:
    """A PostgreSQL that follows the stack's own, and takes no writes; its port."""
    programs, (port,) = find_postgres(), free_ports(1)
    ours = stack.endpoints.sinks["postgres"].address
    account = as_account(stack.settings)

    def problem() -> str | None:
        try:
            psycopg.connect(make_conninfo(ours, port=port), connect_timeout=2).close()
        except psycopg.OperationalError as error:
            return str(error)
        return None

    with own_folder(stack.settings) as folder:
        data = folder / "data"
        copy = [programs / "pg_basebackup", "-d", make_conninfo(ours, dbname=""), "-D", data, "-R", "--checkpoint=fast"]
        subprocess.run([str(part) for part in copy], check=True, capture_output=True, cwd="/", **account)
        options = [f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories="]
        command = [programs / "postgres", "-D", data, *(part for each in options for part in ("-c", each))]
        with running(command, folder, problem, ends=signal.SIGINT, **account):
            yield port


def sasl(ca_file: Path, user: str, password: str) -> dict[str, str]:
    """Settings of a client of `sasl_broker`."""
    return {
        **{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.ca.location": str(ca_file)},
        **{"sasl.username": user, "sasl.password": password},
    }


@contextlib.contextmanager
def sasl_broker(libs: Path, folder: Path, ca: trustme.CA, user: str, password: str) -> Iterator[str]:
    """A second broker, of the stack's own jars, that wants TLS and a password; its bootstrap address."""
    client, inner, controller = free_ports(3)
    properties, keystore = folder / "server.properties", folder / "keystore.pem"
    ca.cert_pem.write_to_path(folder / "ca.pem")
    issued = ca.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    # Kafka reads private keys in this format only.
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    keystore.write_bytes(key.private_bytes(*form) + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    properties.write_text(
        BROKER.format(
            **{"client": client, "inner": inner, "controller": controller, "user": user, "password": password},
            **{"keystore": keystore, "data": folder / "data"},
        )
    )
    java = [find_java() / "bin" / "java", "-Xmx256m", "-cp", f"{libs}/*"]
    formats = [*java, "kafka.tools.StorageTool", "format", "--config", properties, "--cluster-id", "test-of-sasl"]
    subprocess.run([str(part) for part in formats], check=True, capture_output=True)
    kafka = Kafka(f"127.0.0.1:{client}", sasl(folder / "ca.pem", user, password))
    with running([*java, "kafka.Kafka", properties], folder, lambda: kafka.problem(2), ends=signal.SIGKILL):
        yield kafka.bootstrap


@dataclass(frozen=True)
class MariaDbServer:
    """A MariaDB that runs at 127.0.0.1."""

    port: int
    password: str


@contextlib.contextmanager
def mariadb(settings: Settings) -> Iterator[MariaDbServer]:
    """MariaDB with data of its own; the test is skipped where there is none."""
    if MARIADB is None:
        pytest.skip("this machine has no MariaDB; scripts/setup --dev installs it as root")
    (port,), password, account = free_ports(1), secrets.token_hex(8), as_account(settings)

    def problem() -> str | None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError as error:
            return str(error)
        return None

    with own_folder(settings) as folder:
        begins = folder / "account.sql"
        begins.write_text(ACCOUNT.replace("PASSWORD", password))
        begins.chmod(0o644)
        data = ["--no-defaults", f"--datadir={folder / 'data'}"]
        install = ["mariadb-install-db", *data, "--auth-root-authentication-method=normal", "--skip-test-db"]
        succeeded(subprocess.run(install, capture_output=True, text=True, check=False, cwd=folder, **account))
        command = [MARIADB, *data, f"--port={port}", f"--socket={folder / 'socket'}", "--bind-address=127.0.0.1"]
        command += [f"--pid-file={folder / 'pid'}", "--skip-name-resolve", f"--init-file={begins}"]
        with running(command, folder, problem, **account):
            yield MariaDbServer(port, password)
