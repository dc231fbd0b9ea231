"""Containers for real: the race of `docker compose up`, more workers, and what goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sinkbench.connect import ConnectCluster
from sinkbench.stack.compose import ComposeStack

from .composed import OWNER, PROJECT, Run, summary_of

# Without progress a trial ends, and a check that hangs in a stopped container may take longer than that to fail.
ONE = """
pipelines: [postgres/jdbc]
trials: 2
drain: {window_seconds: 8, pilot_seconds: 2, warm_up_seconds: 6, stall_seconds: 150}
"""
SERVICES = {"kafka", "elasticsearch", "postgres", "pgbouncer", "connect"}


def trials_of(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "results" / "latest" / "trials.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_up_races_the_plan_once_and_prints_the_table(raced: str, checkout: Path) -> None:
    assert "the race has ended with exit code 0" in raced
    for shown in ("plan small", "stack compose", "postgres/jdbc-pgbouncer", "elasticsearch/camel-bulk", "records/s"):
        assert shown in raced
    summary = summary_of(checkout)
    assert summary["complete"] is True
    # The controller's own container.
    assert summary["environment"]["container"] == {"kind": "docker", "cpus": "no limit", "memory_bytes": 2**30}
    assert summary["environment"]["disk"]["filesystem"] not in (None, "overlay")
    for cell in summary["cells"]:
        assert cell["verdict"] == "ok", cell
        assert cell["audit"]["produced"] == cell["audit"]["stored"] > 0
        assert cell["placement"] == {"connect-1": 1, "connect-2": 1, "connect-3": 1}
        used = cell["cpu_seconds_per_million"]
        assert set(used) >= SERVICES
        assert all(value is not None for value in used.values()), used


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give the checkout to somebody else")
def test_the_results_belong_to_whoever_owns_the_checkout(raced: str, checkout: Path) -> None:
    written = [checkout / "results", *(checkout / "results").resolve().rglob("*")]
    assert len(written) > 5
    assert {path.lstat().st_uid for path in written} == {OWNER}


def test_no_process_of_a_container_runs_as_root(stack: ComposeStack, checkout: Path) -> None:
    top = subprocess.run(["docker", "compose", "ps", "-q"], cwd=checkout, capture_output=True, text=True, check=True)
    for container in top.stdout.split():
        listed = subprocess.run(
            ["docker", "top", container, "-eo", "pid,uid,args"], capture_output=True, text=True, check=True
        ).stdout.splitlines()[1:]
        own = [line for line in listed if "docker-init" not in line]
        assert own
        assert all(line.split()[1] != "0" for line in own), own


def test_all_plans_run_from_outside_with_what_the_engine_tells_of_cpu(
    stack: ComposeStack, sinkbench: Run, checkout: Path
) -> None:
    done = sinkbench("race", "plans/small.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    pooled, bulk = summary_of(checkout)["cells"]
    assert bulk["records_per_write"] > 20
    assert pooled["connections"]["server_peak"] <= 20
    assert all(pooled["cpu_seconds_per_million"][name] is not None for name in SERVICES)
    environment = summary_of(checkout)["environment"]
    assert environment["stack"] == "compose"
    assert environment["service_limits"]["kafka"] == {"cpus": "no limit", "memory_bytes": 2 * 2**30}
    assert environment["service_limits"]["connect"]["memory_bytes"] == 1536 * 2**20
    assert environment["disk"]["filesystem"]
    for name in ("kafka", "connect", "elasticsearch"):
        assert environment["jvm"][name]["version"], name
        assert environment["jvm"][name]["flags"]["Xmx"], name
    assert all(state.state == "running" for state in stack.states())


def test_six_workers_get_a_task_each(stack: ComposeStack, compose: Run, sinkbench: Run, checkout: Path) -> None:
    done = compose("up", "--detach", "--wait", "--scale", "connect=6", "--scale", "loadgen=2")
    assert done.returncode == 0, done.stderr
    assert stack.workers == 6
    done = sinkbench("race", "plans/small.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    for cell in summary_of(checkout)["cells"]:
        assert cell["placement"] == {f"connect-{n}": 1 for n in range(1, 7)}
    assert "loadgen-2" in sinkbench("status").stdout


def test_a_connector_is_scaled_by_rest(stack: ComposeStack, sinkbench: Run, checkout: Path) -> None:
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        body = json.loads((checkout / "connectors" / "postgres" / "jdbc.json").read_text())
        connect.create("by-hand", body["config"])
        try:
            done = sinkbench("scale", "by-hand", "2")
            assert done.returncode == 0, done.stdout + done.stderr
            assert "6 of 6 tasks run (connect-1 2, connect-2 2, connect-3 2)" in done.stdout
        finally:
            connect.delete("by-hand")
            connect.wait_until_gone("by-hand")


def during_the_first_trial(stack: ComposeStack, checkout: Path, act: Callable[[], None]) -> tuple[int, str]:
    """Races ONE, does something as soon as its first trial drains, and returns exit code and output."""
    (checkout / "plans" / "one.yaml").write_text(ONE)
    race = subprocess.Popen(
        [sys.executable, "-m", "sinkbench", "race", "plans/one.yaml"],
        cwd=checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output: list[str] = []
    reader = threading.Thread(target=lambda: output.append(race.communicate()[0]))
    reader.start()
    try:
        deadline = time.monotonic() + 120
        with ConnectCluster(stack.endpoints.connect.values()) as connect:
            while time.monotonic() < deadline and race.poll() is None:
                found = [connect.status(name) for name in connect.connectors() if name.endswith("_002")]
                if found and found[0] is not None and found[0].running == 3:
                    break
                time.sleep(0.1)
        time.sleep(1)
        act()
        reader.join(timeout=300)
    finally:
        if race.poll() is None:
            race.terminate()
        reader.join(timeout=60)
    return race.returncode, "".join(output)


def test_a_killed_worker_makes_its_trial_invalid_and_the_run_goes_on(stack: ComposeStack, checkout: Path) -> None:
    _, output = during_the_first_trial(stack, checkout, lambda: stack.kill("connect-2"))
    first, second = trials_of(checkout)
    assert first["invalid"] == ["connect-2 died during the trial"], output
    assert second["invalid"] == [], output
    assert all(state.state == "running" for state in stack.states())


def in_container(stack: ComposeStack, name: str, script: str) -> Callable[[], None]:
    command = ["docker", "exec", stack.container(name).id, "sh", "-c", script]
    return lambda: subprocess.run(command, check=False, capture_output=True) and None


def test_a_container_that_runs_out_of_memory_is_named_with_its_limit(stack: ComposeStack, checkout: Path) -> None:
    hog = in_container(stack, "pgbouncer", "head -c 2G /dev/zero | tail > /dev/null")
    _, output = during_the_first_trial(stack, checkout, hog)
    first, second = trials_of(checkout)
    assert first["invalid"] == [
        "pgbouncer was killed for memory, in part or whole: its limit is 256 MB (SINKBENCH_PGBOUNCER_MEMORY)"
    ], output
    assert second["invalid"] == [], output


def test_a_container_that_turns_unhealthy_is_named_and_started_anew(stack: ComposeStack, checkout: Path) -> None:
    _, output = during_the_first_trial(stack, checkout, in_container(stack, "connect-3", "kill -STOP -1"))
    first, second = trials_of(checkout)
    assert "connect-3 became unhealthy" in first["invalid"][0], output
    assert second["invalid"] == [], output


def test_one_service_is_stopped_and_started_again(stack: ComposeStack) -> None:
    stack.stop("pgbouncer")
    assert {s.name: s.state for s in stack.states()}["pgbouncer"] == "stopped"
    stack.start("pgbouncer")
    assert {s.name: s.state for s in stack.states()}["pgbouncer"] == "running"


def test_a_log_is_shown_and_an_unknown_service_is_refused(stack: ComposeStack, sinkbench: Run) -> None:
    done = sinkbench("logs", "pgbouncer")
    assert "PgBouncer" in done.stdout + done.stderr
    done = sinkbench("logs", "pgbounce")
    assert done.returncode == 2
    assert "pgbouncer" in done.stderr


def test_a_second_race_is_refused_also_in_the_controllers_container(
    stack: ComposeStack, compose: Run, checkout: Path
) -> None:
    owner = checkout.stat().st_uid
    # As sinkbench/run does: the checkout's owner, with the use of the engine's socket.
    become = f"setpriv --reuid {owner} --regid {owner} --groups $(stat -c %g /var/run/docker.sock)"
    refused: list[str] = []

    def race_inside() -> None:
        done = compose("exec", "--no-TTY", "controller", "sh", "-c", f"{become} sinkbench race")
        refused.extend([str(done.returncode), done.stderr])

    _, output = during_the_first_trial(stack, checkout, race_inside)
    assert refused[0] == "2", refused
    assert "another race is running in this checkout (pid" in refused[1], refused
    assert [trial["invalid"] for trial in trials_of(checkout)] == [[], []], output


def test_an_image_that_cannot_be_built_shows_the_step(
    stack: ComposeStack, compose: Run, sinkbench: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "sinkbench-test-broken")
    dockerfile = checkout / "postgres" / "Dockerfile"
    whole = dockerfile.read_text()
    dockerfile.write_text(whole.replace("install -d -o postgres", "install -d -o nobody-here"))
    try:
        done = sinkbench("up")
    finally:
        dockerfile.write_text(whole)
        compose("down", "--rmi", "all")
    assert done.returncode == 2
    assert "an image could not be built" in done.stderr
    assert "invalid user 'nobody-here'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_race_that_is_stopped_cleans_up_and_its_container_ends_with_130(
    stack: ComposeStack, compose: Run, checkout: Path
) -> None:
    done = compose("up", "--detach", "--force-recreate", "--no-deps", "controller")
    assert done.returncode == 0, done.stderr
    log, deadline = "", time.monotonic() + 90
    while "[1/" not in log:
        assert time.monotonic() < deadline, log
        time.sleep(0.5)
        log = compose("logs", "--no-log-prefix", "controller").stdout
    compose("stop", "controller")
    found = json.loads(compose("ps", "--all", "--format", "json", "controller").stdout.splitlines()[0])
    log = compose("logs", "--no-log-prefix", "controller").stdout
    assert found["ExitCode"] == 130, log
    assert "interrupted; the finished trials are in" in log
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        assert connect.connectors() == []


def test_down_leaves_no_container_and_no_network_but_the_data(raced: str, sinkbench: Run) -> None:
    assert sinkbench("down").returncode == 0
    for kind, left in (("ps -a", False), ("network ls", False), ("volume ls", True)):
        found = subprocess.run(
            ["docker", *kind.split(), "-q", "--filter", f"label=com.docker.compose.project={PROJECT}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert bool(found.strip()) is left, kind
