"""A sink that is none of ours: MariaDB, brought by a package of its own, through the JDBC connector that is there."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from tests.support.commands import Run
from tests.support.sinkpackage import install

HERE = Path(__file__).parent / "mariadb_sink"
# Debian's, and where an account without root finds no /usr/sbin in its PATH.
SERVER = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
READY_SECONDS = 60.0
PLAN = """
pipelines: [mariadb/jdbc]
trials: 1
drain: {compiling_percent: 100, window_seconds: 3, pilot_seconds: 1, warm_up_seconds: 2}
"""
# The package is there for processes that begin with the tests' environment only.
LIMIT = """
import sys
from pathlib import Path

from sinkbench.limits.sinklimit import sink_limit_again
from sinkbench.limits.tune import Point
from sinkbench.plan.plan import load_plan
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Destination
from sinkbench.stack.external import ExternalStack
from sinkbench.trial.cluster import Cluster

stack = ExternalStack(Path(sys.argv[1]))
bench = Cluster(stack, load_plan(Path(sys.argv[2]), CHECKOUT / "connectors"), CHECKOUT)
to = Destination("mariadb", "INSERT", "tides_test_limits", stack.endpoints.sinks["mariadb"])
found = sink_limit_again(bench, to, Point(500, 2), lambda text: None, seconds=0.5)
bench.close()
assert found.problem is None, found
assert found.records_per_second, found
"""
STACK = """
kafka: {bootstrap: BOOTSTRAP}
connect:
  urls: URLS
  metrics: METRICS
  variables:
    MARIADB_HOST: 127.0.0.1
    MARIADB_PORT: NUMBER
    MARIADB_DB: bench
    MARIADB_USER: bench
    MARIADB_PASSWORD: {env: MARIADB_PASSWORD}
mariadb:
  host: 127.0.0.1
  port: NUMBER
  database: bench
  user: bench
  password: {env: MARIADB_PASSWORD}
"""
ACCOUNT = """
CREATE DATABASE IF NOT EXISTS bench;
CREATE OR REPLACE USER bench@127.0.0.1 IDENTIFIED BY 'PASSWORD';
GRANT ALL ON bench.* TO bench@127.0.0.1;
GRANT PROCESS ON *.* TO bench@127.0.0.1;
"""


@dataclass(frozen=True)
class Server:
    """A MariaDB that runs."""

    port: int
    password: str


@pytest.fixture
def server(stack: LocalStack) -> Iterator[Server]:
    """MariaDB with data of its own at a free port of 127.0.0.1. As root under the account of the stack's services."""
    if SERVER is None:
        pytest.skip("this machine has no MariaDB; scripts/setup --dev installs it as root")
    as_account: dict[str, Any] = {"user": stack.settings.user} if os.geteuid() == 0 else {}
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    password = secrets.token_hex(8)
    # Not pytest's own folder, which no other account can enter.
    folder = Path(tempfile.mkdtemp(prefix="sinkbench-mariadb-"))
    (folder / "account.sql").write_text(ACCOUNT.replace("PASSWORD", password))
    if as_account:
        for path in (folder, folder / "account.sql"):
            shutil.chown(path, stack.settings.user)
    data = ["--no-defaults", f"--datadir={folder / 'data'}"]
    install_db = ["mariadb-install-db", *data, "--auth-root-authentication-method=normal", "--skip-test-db"]
    try:
        done = subprocess.run(install_db, capture_output=True, text=True, check=False, cwd=folder, **as_account)
        assert done.returncode == 0, done.stdout + done.stderr
        command = [SERVER, *data, f"--port={port}", f"--socket={folder / 'socket'}", "--bind-address=127.0.0.1"]
        command += [f"--pid-file={folder / 'pid'}", "--skip-name-resolve", f"--init-file={folder / 'account.sql'}"]
        with (folder / "log").open("w+") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **as_account)
            try:
                await_server(process, port, folder / "log")
                yield Server(port, password)
            finally:
                process.terminate()
                process.wait(READY_SECONDS)
    finally:
        shutil.rmtree(folder)


def await_server(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def clusters(stack: LocalStack, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The stack file of the local stack with that MariaDB, whose package is installed and whose connector is there."""
    install(tmp_path / "site", "sinkbench-mariadb", mariadb="sinkbench_mariadb:KIND")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}:{HERE}:{CHECKOUT}")
    monkeypatch.setenv("MARIADB_PASSWORD", server.password)
    # Where the lock and the book of runs are.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    endpoints = stack.endpoints
    text = STACK.replace("BOOTSTRAP", endpoints.kafka).replace("NUMBER", str(server.port))
    text = text.replace("URLS", json.dumps(list(endpoints.connect.values())))
    (tmp_path / "clusters.yaml").write_text(
        text.replace("METRICS", json.dumps(list(endpoints.connect_metrics.values())))
    )
    pipelines = CHECKOUT / "connectors" / "mariadb"
    pipelines.mkdir()
    try:
        shutil.copy(HERE / "jdbc.json", pipelines)
        yield tmp_path / "clusters.yaml"
    finally:
        shutil.rmtree(pipelines)


@pytest.mark.long
def test_a_package_brings_a_sink_and_it_is_raced(
    server: Server, clusters: Path, tmp_path: Path, sinkbench: Run
) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    done = sinkbench("race", "mine.yaml", "--stack", str(clusters), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CPU time of MariaDB" in done.stdout
    summary = json.loads((tmp_path / "results" / "latest" / "summary.json").read_text())
    (cell,) = summary["cells"]
    assert cell["passed"] is True, cell
    assert cell["audit"]["produced"] == cell["audit"]["stored"] > 0
    assert cell["audit"]["lost"] == cell["audit"]["duplicates"] == 0
    assert cell["connections"]["clients_peak"] > 0
    environment = summary["environment"]
    assert "MariaDB" in environment["versions"]["mariadb"]
    assert environment["versions"]["PyMySQL"]
    assert environment["durability"]["mariadb"]["innodb_flush_log_at_trx_commit"] == "1"
    # By its own plain client, in a process of its own.
    limit = [sys.executable, "-c", LIMIT, str(clusters), str(tmp_path / "mine.yaml")]
    found = subprocess.run(limit, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 0, found.stderr
    assert left_behind(server) == []
    assert server.password not in done.stdout + done.stderr


def left_behind(server: Server) -> list[str]:
    """The tables in its database."""
    import pymysql

    where = {"host": "127.0.0.1", "port": server.port, "user": "bench", "password": server.password}
    connection = pymysql.connect(database="bench", **where)  # type: ignore[arg-type]
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            return [str(name) for (name,) in cursor.fetchall()]
    finally:
        connection.close()
