"""Containers for real: the race of `docker compose up`, more workers, and what goes wrong."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sinkbench.errors import StackError
from sinkbench.services.connect import ConnectCluster
from sinkbench.stack.compose import ComposeStack
from tests.e2e.races import drains
from tests.support.commands import Run, refuses, started, succeeded
from tests.support.latest import summary_of, trials_of
from tests.support.trials import quick_plan
from tests.support.waiting import until

from .composed import OWNER, Raced, log_with

# So small batches take as long on cold workers, so that the trial lasts long enough for something to happen in it.
TROUBLED = quick_plan('{pipeline: postgres/jdbc, overrides: {consumer.override.max.poll.records: "20"}}', window=8)
# Without the proxy that the engine may give each container on its way to other machines.
CURL = ("curl", "-fsS", "--noproxy", "*", "-m", "10")
SERVICES = {"kafka", "elasticsearch", "postgres", "pgbouncer", "connect"}


def test_up_races_the_plan_once_and_prints_the_table(raced: Raced) -> None:
    assert "the race has ended with exit code 0" in raced.log
    for shown in ("sinkbench small", "stack compose", "elasticsearch/camel-bulk", "records/s"):
        assert shown in raced.log
    summary = raced.summary
    assert summary["complete"] is True
    # The controller's own container.
    assert summary["environment"]["container"] == {"kind": "docker", "cpus": "no limit", "memory_bytes": 2**30}
    assert summary["environment"]["disk"]["filesystem"] not in (None, "overlay")
    (cell,) = summary["cells"]
    assert cell["passed"] is True, cell
    assert cell["audit"]["produced"] == cell["audit"]["stored"] > 0
    assert cell["placement"] == {"connect-1": 1, "connect-2": 1, "connect-3": 1}
    used, memory = cell["cpu_seconds_per_million"], cell["peak_memory"]
    assert all(used[name] is not None for name in SERVICES), used
    assert all(memory[name]["resident_bytes"] > 0 for name in ("kafka", "connect", cell["sink"])), memory
    # The controller's container sees the threads of the others.
    assert set(cell["jvm_cpu_seconds_per_million"]) == {"kafka", "connect", "elasticsearch"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give the checkout to another account")
def test_the_results_belong_to_whoever_owns_the_checkout(raced: Raced, checkout: Path) -> None:
    written = [checkout / "results", *(checkout / "results").resolve().rglob("*")]
    assert len(written) > 5
    assert {path.lstat().st_uid for path in written} == {OWNER}


def test_no_process_of_a_container_runs_as_root(stack: ComposeStack, compose: Run) -> None:
    for container in compose("ps", "-q").stdout.split():
        top = ["docker", "top", container, "-eo", "pid,uid,args"]
        listed = subprocess.run(top, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
        own = [line for line in listed if "docker-init" not in line]
        assert own
        assert all(line.split()[1] != "0" for line in own), own


def test_more_workers_start_no_race_and_one_from_outside_gives_each_a_task_and_knows_what_the_engine_tells(
    stack: ComposeStack, compose: Run, sinkbench: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a plan, as at the first `up`.
    with monkeypatch.context() as patch:
        patch.setenv("SINKBENCH_PLAN", "")
        succeeded(compose("up", "--detach", "--wait", "--scale", "connect=4", "--scale", "loadgen=2"))
    assert "plan quick" not in log_with(checkout, "no race: the services were up already", 30)
    assert stack.workers == 4
    (checkout / "plans" / "pooled.yaml").write_text(quick_plan("postgres/jdbc-pgbouncer"))
    succeeded(sinkbench("race", "plans/pooled.yaml"))
    assert "loadgen-2" in sinkbench("status").stdout
    summary = summary_of(checkout)
    (pooled,) = summary["cells"]
    assert pooled["placement"] == {f"connect-{n}": 1 for n in range(1, 5)}
    assert pooled["connections"]["server_peak"] <= 20
    assert all(pooled["cpu_seconds_per_million"][name] is not None for name in SERVICES)
    assert set(pooled["jvm_cpu_seconds_per_million"]) == {"kafka", "connect", "elasticsearch"}
    environment = summary["environment"]
    assert environment["stack"] == "compose"
    assert environment["service_limits"]["kafka"] == {"cpus": "no limit", "memory_bytes": 2 * 2**30}
    assert environment["service_limits"]["connect"]["memory_bytes"] == 1536 * 2**20
    assert environment["disk"]["filesystem"]
    for name in ("kafka", "connect", "elasticsearch"):
        assert environment["jvm"][name]["version"], name
        assert environment["jvm"][name]["flags"]["Xmx"], name
    assert all(state.state == "running" for state in stack.services())


def while_it_drains(stack: ComposeStack, checkout: Path, act: Callable[[], None]) -> str:
    """Races TROUBLED, does something in its trial as soon as it drains, and returns the output."""
    (checkout / "plans" / "troubled.yaml").write_text(TROUBLED)
    with started(checkout, "race", "plans/troubled.yaml") as race:
        until(lambda: drains(stack, "-001") or race.poll() is not None, 240)
        if race.poll() is None:
            time.sleep(1)
            act()
        output, _ = race.communicate(timeout=300)
    return output


def in_container(stack: ComposeStack, name: str, script: str) -> None:
    command = ["docker", "exec", stack.container(name).id, "sh", "-c", script]
    subprocess.run(command, check=False, capture_output=True)


def test_a_container_that_is_killed_makes_its_trial_invalid_by_name_and_is_started_again(
    stack: ComposeStack, compose: Run, checkout: Path
) -> None:
    refused: list[str] = []

    def kill_and_race_inside() -> None:
        stack.faults.do("kill", "postgres")
        done = compose("exec", "--no-TTY", "controller", "sinkbench/run", "race")
        refused.extend([str(done.returncode), done.stderr])

    output = while_it_drains(stack, checkout, kill_and_race_inside)
    (killed,) = trials_of(checkout)
    assert killed["invalid"] == ["postgres died during the trial"], output
    # With the sink back the connector goes on from its last commit to the end of the topic: at least once.
    assert killed["not_audited"] == "", output
    assert killed["reconciliation"]["consumed"] == killed["audit"]["produced"] == killed["records"]
    assert killed["audit"]["lost"] == killed["audit"]["foreign"] == 0
    # Another race disturbs nothing, in the controller's container either.
    assert refused[0] == "2", refused
    assert "another race is running in this checkout (pid" in refused[1], refused
    assert all(state.state == "running" for state in stack.services())


def trouble_of(stack: ComposeStack, name: str) -> str:
    """What is wrong with the container of that name, once something is."""
    found = until(lambda: stack.usage().troubles)
    assert set(found) == {name}
    return found[name]


def test_a_container_that_hangs_and_one_that_ran_out_of_memory_are_told_with_the_reason(stack: ComposeStack) -> None:
    assert stack.usage().troubles == {}
    in_container(stack, "connect-3", "kill -STOP -1")
    assert trouble_of(stack, "connect-3").startswith("became unhealthy: ")
    in_container(stack, "connect-3", "kill -CONT -1")
    until(lambda: not stack.usage().troubles)
    in_container(stack, "pgbouncer", "head -c 2G /dev/zero | tail > /dev/null")
    assert trouble_of(stack, "pgbouncer") == (
        "was killed for memory, in part or whole: its limit is 256 MB (SINKBENCH_PGBOUNCER_MEMORY)"
    )


def test_a_worker_without_its_network_is_reached_by_nobody_until_it_has_it_back(stack: ComposeStack) -> None:
    stack.faults.do("isolate", "connect-2")
    assert set(stack.endpoints.connect) == {"connect-1", "connect-3"}
    ask = ["docker", "exec", stack.container("connect-2").id, *CURL, "http://elasticsearch:9200/_cluster/health"]
    assert subprocess.run(ask, check=False, capture_output=True).returncode != 0
    stack.faults.do("rejoin", "connect-2")
    assert set(stack.endpoints.connect) == {"connect-1", "connect-2", "connect-3"}
    assert subprocess.run(ask, check=False, capture_output=True).returncode == 0
    with ConnectCluster([stack.endpoints.connect["connect-2"]]) as connect:
        assert connect.connectors() == []
    # One that a killed controller has left so.
    stack.faults.do("isolate", "pgbouncer")
    stack.up(print)
    assert stack.endpoints.sinks["pgbouncer"].address.find("port=0") == -1


def test_a_proxy_of_the_host_stands_between_a_worker_and_a_sink(stack: ComposeStack) -> None:
    proxies = stack.faults.proxies
    try:
        proxies.check()
    except StackError as missing:
        pytest.skip(str(missing))
    proxies.prepare(print)
    way = proxies.targets["elasticsearch"]
    with proxies.run() as proxy:
        host, port = proxy.stand_before("elasticsearch", f"{way.host}:{way.port}")
        assert way.at(host, port) == {"ELASTICSEARCH_HOSTS": f"{host}:{port}"}
        ask = ["docker", "exec", stack.container("connect-1").id, *CURL, f"http://{host}:{port}/_cluster/health"]

        def answer() -> str:
            done = subprocess.run(ask, check=False, capture_output=True, text=True)
            return done.stdout or done.stderr

        assert "cluster_name" in answer()
        proxy.enable("elasticsearch", False)
        assert answer().startswith("curl: ")
        proxy.enable("elasticsearch", True)
        assert "cluster_name" in answer()


@pytest.mark.rare
def test_an_image_that_cannot_be_built_shows_the_step(
    compose: Run, sinkbench: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "sinkbench-test-broken")
    dockerfile = checkout / "postgres" / "Dockerfile"
    whole = dockerfile.read_text()
    dockerfile.write_text(whole.replace("install -d -o postgres", "install -d -o no-such-user"))
    try:
        done = sinkbench("up")
    finally:
        dockerfile.write_text(whole)
        compose("down", "--rmi", "all")
    assert done.returncode == 2
    assert "an image could not be built" in done.stderr
    assert "invalid user 'no-such-user'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_race_that_is_stopped_cleans_up_and_its_container_ends_with_130(
    stack: ComposeStack, compose: Run, checkout: Path, sinkbench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that was raced before is not raced again.
    small = (checkout / "plans" / "small.yaml").read_text()
    (checkout / "plans" / "stopped.yaml").write_text(small.replace("trials: 1", "trials: 9"))
    monkeypatch.setenv("SINKBENCH_PLAN", "plans/stopped.yaml")
    succeeded(compose("up", "--detach", "--no-deps", "controller"))
    log_with(checkout, "[1 of 9]", 150)
    refused = refuses(sinkbench("race", "plans/quick.yaml"))
    assert "another race is running in this checkout (container controller, plan stopped" in refused.stderr
    compose("stop", "controller")
    found = json.loads(compose("ps", "--all", "--format", "json", "controller").stdout.splitlines()[0])
    log = compose("logs", "--no-log-prefix", "controller").stdout
    assert found["ExitCode"] == 130, log
    assert "interrupted; the finished trials are in" in log
    with ConnectCluster(stack.endpoints.connect.values()) as connect:
        assert connect.connectors() == []
