"""A sink that is none of ours: MariaDB, brought by a package of its own, through the JDBC connector that is there."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from tests.e2e.otherservices import MariaDbServer, mariadb
from tests.e2e.races import stack_file
from tests.support.commands import Run, succeeded
from tests.support.latest import summary_of
from tests.support.sinkpackage import install
from tests.support.trials import quick_plan

HERE = Path(__file__).parent / "mariadb_sink"
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


@pytest.fixture
def server(stack: LocalStack) -> Iterator[MariaDbServer]:
    with mariadb(stack.settings) as server:
        yield server


@pytest.fixture
def clusters(
    stack: LocalStack, server: MariaDbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The stack file of the local stack with that MariaDB, whose package is installed and whose connector is there."""
    install(tmp_path / "site", "sinkbench-mariadb", mariadb="sinkbench_mariadb:KIND")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}:{HERE}:{CHECKOUT}")
    monkeypatch.setenv("MARIADB_PASSWORD", server.password)
    # Where the lock and the book of runs are.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    password, port = {"env": "MARIADB_PASSWORD"}, server.port
    variables = {"HOST": "127.0.0.1", "PORT": str(port), "DB": "bench", "USER": "bench", "PASSWORD": password}
    section = {"host": "127.0.0.1", "port": port, "database": "bench", "user": "bench", "password": password}
    named = {f"MARIADB_{name}": value for name, value in variables.items()}
    file = stack_file(tmp_path, stack.endpoints, named, mariadb=section)
    pipelines = CHECKOUT / "connectors" / "mariadb"
    pipelines.mkdir()
    try:
        shutil.copy(HERE / "jdbc.json", pipelines)
        yield file
    finally:
        shutil.rmtree(pipelines)


@pytest.mark.long
def test_a_package_brings_a_sink_and_it_is_raced(
    server: MariaDbServer, clusters: Path, tmp_path: Path, sinkbench: Run
) -> None:
    (tmp_path / "mine.yaml").write_text(quick_plan("mariadb/jdbc", window=3))
    done = succeeded(sinkbench("race", "mine.yaml", "--stack", str(clusters), timeout=900))
    assert "CPU time of MariaDB" in done.stdout
    summary = summary_of(tmp_path)
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
    succeeded(subprocess.run(limit, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=120))
    assert left_behind(server) == []
    assert server.password not in done.stdout + done.stderr


def left_behind(server: MariaDbServer) -> list[str]:
    """The tables in its database."""
    import pymysql

    where = {"host": "127.0.0.1", "port": server.port, "user": "bench", "password": server.password}
    with closing(pymysql.connect(database="bench", **where)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        return [str(name) for (name,) in cursor.fetchall()]
