"""The controller killed at random moments, again and again: every finished trial is kept, what was left is removed, and
nothing that somebody else has made.

KILLS says how often (CI: 2); KILL_SECONDS is the latest moment of a command's life at which it is killed.
"""

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.stack.local import LocalStack
from sinkbench.trial.names import is_ours
from tests.e2e.races import left_behind
from tests.support.commands import Run, started, succeeded
from tests.support.latest import summary_of, trials_of
from tests.support.trials import quick_plan

KILLS = int(os.environ.get("KILLS", "2"))
KILL_SECONDS = float(os.environ.get("KILL_SECONDS", "12"))
# Begins as the names of trials do.
SOMEBODYS = "tides_somebodys"
CONFIG = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "topics": SOMEBODYS,
    "connection.url": "jdbc:postgresql://127.0.0.1:1/nowhere",
}
# Its tasks would make those of trials uneven.
CONNECTOR = {"name": SOMEBODYS, "config": CONFIG, "initial_state": "STOPPED"}


@pytest.fixture
def somebodys(stack: LocalStack, kafka: Kafka, connect: ConnectCluster, database: psycopg.Connection) -> Iterator[None]:
    """A topic, a connector, an index and a table of somebody else's, which are still there afterwards."""
    elasticsearch = stack.endpoints.sinks["elasticsearch"].address
    kafka.create_topic(SOMEBODYS, 1)
    httpx.put(f"{elasticsearch}/{SOMEBODYS}").raise_for_status()
    httpx.post(f"{stack.endpoints.connect['connect-1']}/connectors", json=CONNECTOR).raise_for_status()
    database.execute(f"CREATE TABLE {SOMEBODYS} ()")
    yield
    assert SOMEBODYS in kafka.topics()
    assert SOMEBODYS in connect.connectors()
    assert httpx.get(f"{elasticsearch}/{SOMEBODYS}").status_code == 200
    database.execute(f"DROP TABLE {SOMEBODYS}")
    connect.delete(SOMEBODYS)
    connect.wait_until_gone(SOMEBODYS)
    httpx.delete(f"{elasticsearch}/{SOMEBODYS}").raise_for_status()
    kafka.delete_topic(SOMEBODYS)


def next_command(folder: Path) -> tuple[str, ...]:
    """Takes the run up that was killed, if there is a trial of it."""
    begun = (folder / "results" / "latest" / "trials.jsonl").exists()
    return ("resume", "results/latest") if begun else ("race", "mine.yaml")


def kept_lines(folder: Path) -> dict[Path, list[bytes]]:
    """The whole lines of every run's trials."""
    files = (folder / "results").glob("2*/trials.jsonl")
    return {file: file.read_bytes().split(b"\n")[:-1] for file in files}


@pytest.mark.long
@pytest.mark.rare
def test_a_controller_that_is_killed_again_and_again_keeps_its_trials_and_leaves_nothing(
    stack: LocalStack, somebodys: None, sinkbench: Run, tmp_path: Path
) -> None:
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(1_000_000)))
    moments = random.Random(seed)
    print(f"KILL_SEED={seed}")
    (tmp_path / "mine.yaml").write_text(quick_plan("postgres/jdbc", "elasticsearch/camel-bulk", window=2.5))
    there, killed = left_behind(stack), 0
    while killed < KILLS:
        before = kept_lines(tmp_path)
        command = next_command(tmp_path)
        with started(tmp_path, *command) as race:
            end = moments.uniform(0.3, KILL_SECONDS)
            with contextlib.suppress(subprocess.TimeoutExpired):
                race.wait(end)
            children = psutil.Process(race.pid).children(recursive=True) if race.poll() is None else []
            race.send_signal(signal.SIGKILL)
            output, _ = race.communicate(timeout=60)
        if race.returncode == -signal.SIGKILL:
            killed += 1
        else:
            # It was done before its moment came.
            assert race.returncode == 0, output
            for link in (tmp_path / "results").glob("latest"):
                link.unlink()
        left = len(left_behind(stack)) - len(there)
        print(f"{' '.join(command)} ended with {race.returncode} after {end:.1f} s, {left} left")
        # What it had started ends with it.
        _, alive = psutil.wait_procs(children, timeout=20)
        assert [each.cmdline() for each in alive] == []
        after = kept_lines(tmp_path)
        assert {file: lines[: len(before[file])] for file, lines in after.items() if file in before} == before
        listed = sinkbench("runs")
        assert listed.returncode == (0 if (tmp_path / "results").exists() else 2), listed.stderr
        assert "Traceback" not in output + listed.stderr

    succeeded(sinkbench(*next_command(tmp_path)))
    assert left_behind(stack) == there
    assert [name for name in Kafka(stack.endpoints.kafka).groups() if is_ours(name.removeprefix("connect-"))] == []
    summary = summary_of(tmp_path)
    assert summary["complete"] is True
    for cell in summary["cells"]:
        assert cell["audit"]["produced"] == cell["audit"]["stored"] > 0, cell
    assert len({trial["trial"] for trial in trials_of(tmp_path)}) == len(trials_of(tmp_path))
    assert sinkbench("report", "results/latest").returncode == 0
