"""The same containers as somebody else's clusters: a stack file, and nothing known of them but addresses."""

from __future__ import annotations

from pathlib import Path

import psycopg

from sinkbench.stack.compose import ComposeStack
from tests.support.commands import Run
from tests.support.latest import summary_of

PLAN = """
pipelines: [postgres/jdbc-pgbouncer]
trials: 1
drain: {compiling_percent: 100, window_seconds: 4, pilot_seconds: 1, warm_up_seconds: 2}
"""


def stack_file(stack: ComposeStack, folder: Path) -> Path:
    found = stack.endpoints
    urls = ", ".join(found.connect.values())
    ports = {name: container.ports for name, container in
             ((name, stack.container(name)) for name in ("postgres", "pgbouncer"))}  # fmt: skip
    path = folder / "clusters.yaml"
    path.write_text(
        f"""
kafka: {{bootstrap: "{found.kafka}"}}
connect: {{urls: [{urls}]}}
elasticsearch: {{url: "{found.sinks["elasticsearch"].address}"}}
postgres:
  dsn: host=127.0.0.1 port={ports["postgres"][5432]} dbname=sinkbench user=sinkbench
  password: {{file: password}}
pgbouncer:
  dsn: host=127.0.0.1 port={ports["pgbouncer"][6432]} dbname=pgbouncer user=sinkbench
  password: {{file: password}}
"""
    )
    (folder / "password").write_text("sinkbench\n")
    return path


def test_clusters_that_are_there_already_are_raced_on_and_left_as_they_were(
    stack: ComposeStack, sinkbench: Run, checkout: Path, tmp_path: Path
) -> None:
    (checkout / "plans" / "theirs.yaml").write_text(PLAN)
    before = [(state.name, state.state) for state in stack.services()]
    with psycopg.connect(stack.endpoints.sinks["postgres"].address, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS tides_of_mine (payload jsonb)")
        try:
            done = sinkbench("race", "plans/theirs.yaml", "--stack", str(stack_file(stack, tmp_path)))
            assert done.returncode == 0, done.stdout + done.stderr
            left = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'tides\\_%'").fetchall()
            assert left == [("tides_of_mine",)]
        finally:
            connection.execute("DROP TABLE tides_of_mine")
    summary = summary_of(checkout)
    assert summary["environment"]["stack"] == "external"
    for cell in summary["cells"]:
        assert cell["passed"] is True, cell
        assert cell["cpu_seconds_per_million"]["kafka"] is None
        assert sum(cell["placement"].values()) == 3
    assert [(state.name, state.state) for state in stack.services()] == before
