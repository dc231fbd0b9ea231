"""Whole runs on the real stack: good ones, and ones in which something breaks."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from sinkbench.bench import PREFIX
from sinkbench.connect import ConnectCluster
from sinkbench.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import SINKS, open_sink
from sinkbench.stack.local import LocalStack

QUICK = """
pipelines: [elasticsearch/camel-index, elasticsearch/camel-bulk, postgres/jdbc, postgres/jdbc-pgbouncer]
trials: 1
drain: {window_seconds: 4, pilot_seconds: 2, warm_up_seconds: 20}
"""
CONNECTIONS = """
pipelines: [postgres/jdbc, postgres/jdbc-pgbouncer]
multiples: [8]
trials: 1
drain: {window_seconds: 4, pilot_seconds: 2, warm_up_seconds: 8}
"""
ONE = """
pipelines: [postgres/jdbc]
trials: 2
drain: {window_seconds: 6, pilot_seconds: 2, warm_up_seconds: 6}
"""


def left_behind(stack: LocalStack) -> list[str]:
    """Everything of a trial's that is still there."""
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        found = connect.connectors()
    found += [topic for topic in Kafka(stack.endpoints.kafka).topics() if topic.startswith(PREFIX)]
    for name in SINKS:
        sink = open_sink(name, stack.endpoints, CHECKOUT)
        found += sink.leftovers(PREFIX)
        sink.close()
    return found


@pytest.fixture
def whole(stack: LocalStack) -> Iterator[LocalStack]:
    """The stack; whatever a test has killed runs again after it, and nothing of a trial is left."""
    yield stack
    stack.up(lambda line: None)
    assert left_behind(stack) == []


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results" / "latest" / "summary.json").read_text()))


def test_a_race_stores_every_record_exactly_once_in_all_four_pipelines(
    whole: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(QUICK)
    done = sinkbench("race", "mine.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = summary_of(tmp_path)
    assert summary["complete"] is True
    assert [cell["pipeline"] for cell in summary["cells"]] == [
        "elasticsearch/camel-index",
        "elasticsearch/camel-bulk",
        "postgres/jdbc",
        "postgres/jdbc-pgbouncer",
    ]
    for cell in summary["cells"]:
        assert cell["verdict"] == "ok", cell
        assert cell["audit"]["produced"] == cell["audit"]["stored"] > 0
        assert cell["placement"] == {"connect-1": 1, "connect-2": 1, "connect-3": 1}
        assert cell["records_per_second"]["median"] > 0
        assert cell["pipeline"] in done.stdout
        assert set(cell["cpu_seconds_per_million"]) >= {"connect", "kafka", cell["sink"]}
    promised = summary["environment"]["durability"]
    assert set(promised) == {"kafka", "elasticsearch", "postgres"}
    assert None not in [value for each in promised.values() for value in each.values()]
    index, bulk, direct, pooled = summary["cells"]
    assert index["records_per_write"] == pytest.approx(1, rel=0.02)
    assert bulk["records_per_write"] > 20
    assert bulk["records_per_second"]["median"] > index["records_per_second"]["median"]
    assert pooled["connections"]["server_peak"] <= 20
    # The same connector opens the same connections; those that PgBouncer kept from a trial before are not its own.
    assert direct["connections"]["clients_peak"] <= pooled["connections"]["clients_peak"]
    trials = (tmp_path / "results" / "latest" / "trials.jsonl").read_text().splitlines()
    assert len(trials) == 4
    for line in trials:
        samples = (tmp_path / "results" / "latest" / json.loads(line)["samples"]).read_text().splitlines()
        assert len(samples) > 4


def test_direct_connections_run_out_at_24_tasks_and_pooled_ones_do_not(
    whole: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(CONNECTIONS)
    done = sinkbench("race", "mine.yaml")
    assert done.returncode == 1, done.stdout + done.stderr
    direct, pooled = summary_of(tmp_path)["cells"]
    assert direct["failed_tasks"] > 0
    assert "too many clients already" in direct["verdict"]
    assert "too many clients already" in done.stdout
    assert pooled["verdict"] == "ok", pooled
    assert pooled["tasks"] == 24
    assert pooled["connections"]["clients_peak"] >= 24
    assert pooled["connections"]["server_peak"] <= 20


@contextlib.contextmanager
def a_race(folder: Path, plan: str) -> Iterator[subprocess.Popen[str]]:
    """A race that goes on in the background; whatever the test does with it, it has ended afterwards."""
    (folder / "mine.yaml").write_text(plan)
    race = subprocess.Popen(
        [sys.executable, "-m", "sinkbench", "race", "mine.yaml"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ,
        # So that it can be killed with all that it has started.
        start_new_session=True,
    )
    with race:
        try:
            yield race
        finally:
            if race.poll() is None:
                race.terminate()


def wait_for_draining(stack: LocalStack, trial: str) -> None:
    """Waits until the connector of the race's trial of that number runs."""
    deadline = time.monotonic() + 120
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        while time.monotonic() < deadline:
            for name in connect.connectors():
                found = connect.status(name) if name.endswith(trial) else None
                if found is not None and found.running == 3:
                    return
            time.sleep(0.1)
    raise AssertionError("no connector ran in 120 s")


@pytest.mark.parametrize("service", ["connect-2", "postgres"])
def test_a_service_killed_during_a_trial_makes_it_invalid_and_the_run_goes_on(
    whole: LocalStack, tmp_path: Path, service: str
) -> None:
    with a_race(tmp_path, ONE) as race:
        wait_for_draining(whole, "_002")
        time.sleep(1)
        whole.kill(service)
        output, _ = race.communicate(timeout=300)
    (cell,) = summary_of(tmp_path)["cells"]
    trials = [json.loads(line) for line in (tmp_path / "results" / "latest" / "trials.jsonl").read_text().splitlines()]
    assert len(trials) == 2, output
    assert trials[0]["invalid"] == [f"{service} died during the trial"], output
    assert trials[1]["invalid"] == [], output
    assert "1 of 2 trials invalid" in cell["notes"][0]
    assert all(state.state == "running" for state in whole.states())


def test_ctrl_c_keeps_the_finished_trials_and_leaves_nothing_behind(whole: LocalStack, tmp_path: Path) -> None:
    with a_race(tmp_path, ONE) as race:
        wait_for_draining(whole, "_003")
        race.send_signal(signal.SIGINT)
        output, _ = race.communicate(timeout=120)
    assert race.returncode == 130, output
    assert "Traceback" not in output
    run = f"results/{(tmp_path / 'results' / 'latest').resolve().name}"
    assert f"interrupted; the finished trials are in {run}; " in output
    assert f"sinkbench resume {run}" in output
    summary = summary_of(tmp_path)
    assert summary["complete"] is False
    assert summary["cells"][0]["trials"] == 1


def test_a_second_race_is_refused_on_any_stack_and_told_who_races(
    whole: LocalStack, tmp_path: Path, sinkbench: Run
) -> None:
    endpoints = whole.endpoints
    clusters = {"kafka": {"bootstrap": endpoints.kafka}, "connect": {"urls": list(endpoints.connect.values())}}
    # JSON is YAML.
    (tmp_path / "clusters.yaml").write_text(json.dumps(clusters))
    with a_race(tmp_path, ONE) as race:
        wait_for_draining(whole, "_1")
        refused = [sinkbench("race", "mine.yaml", *stack) for stack in ([], ["--stack", "clusters.yaml"])]
        race.send_signal(signal.SIGTERM)
        race.communicate(timeout=120)
    for done in refused:
        assert done.returncode == 2
        assert re.search(rf"pid {race.pid}, plan mine, run \S+-mine, since \d{{4}}-", done.stderr), done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_what_a_killed_race_left_behind_is_removed_by_the_next(
    whole: LocalStack, tmp_path: Path, sinkbench: Run
) -> None:
    with a_race(tmp_path, ONE) as race:
        wait_for_draining(whole, "_1")
        race.kill()
        race.communicate(timeout=60)
    assert left_behind(whole) != []
    (tmp_path / "small.yaml").write_text(
        ONE.replace("trials: 2", "trials: 1").replace("window_seconds: 6", "window_seconds: 3")
    )
    done = sinkbench("race", "small.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "removed what an earlier run left behind" in done.stdout


def test_a_results_folder_that_cannot_be_written_is_refused_before_anything_starts(
    stack: LocalStack, sinkbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "results").write_text("in the way")
    (tmp_path / "mine.yaml").write_text(ONE)
    done = sinkbench("race", "mine.yaml")
    assert done.returncode == 2
    assert "results" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        ("pipelines: [postgres/jdbc]\ntrails: 3\n", "mine.yaml:2: .*trails.*trials"),
        ("pipelines: [postgres/jdcb]\n", "mine.yaml:1: .*postgres/jdcb.*postgres/jdbc"),
        ("pipelines: [postgres/jdbc]\nmultiples: [16]\n", "mine.yaml:2: .*48 tasks.*24 partitions"),
        ("pipelines: [postgres/jdbc]\ntrials: -1\n", "mine.yaml:2: .*-1"),
    ],
)
def test_a_mistake_in_a_plan_is_named_with_its_line(
    stack: LocalStack, sinkbench: Run, tmp_path: Path, plan: str, complaint: str
) -> None:
    (tmp_path / "mine.yaml").write_text(plan)
    done = sinkbench("race", "mine.yaml")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert re.search(complaint, done.stderr), done.stderr
