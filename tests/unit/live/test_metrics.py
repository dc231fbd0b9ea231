"""A run's figures as Prometheus reads them, and the dashboard that asks for them."""

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from sinkbench import secrets
from sinkbench.cli.main import app
from sinkbench.errors import SettingsError
from sinkbench.live.events import RunStep
from sinkbench.live.metrics import metrics_endpoint
from sinkbench.live.state import LiveRun
from sinkbench.settings import CHECKOUT
from sinkbench.summary.cells import summarize
from tests.support.liverun import CELLS, RUN, drained, record
from tests.support.trials import run_summary

HERE = {"pipeline": CELLS[0].pipeline, "cell": CELLS[0].key}


def asked(live: LiveRun) -> str:
    with metrics_endpoint(live, 0) as endpoint:
        assert httpx.get(endpoint.address, headers={"Host": "evil.example"}).status_code == 400
        text = httpx.get(f"{endpoint.address}metrics").raise_for_status().text
    with pytest.raises(httpx.ConnectError):
        httpx.get(endpoint.address)
    return text


def found(text: str) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Values by name and labels."""
    values: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for each in (each for family in text_string_to_metric_families(text) for each in family.samples):
        values.setdefault(each.name, {})[frozenset(each.labels.items())] = each.value
    return values


def of(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


@pytest.fixture
def live() -> LiveRun:
    """A run in its first cell's second trial, in which a fault has begun and ended."""
    live = LiveRun()
    live.begin(RUN, [cell.key for cell in CELLS], 3)
    live.judged(run_summary(*summarize(CELLS, [record(lost=12)])))
    live.ended(record(lost=12))
    live.step(RunStep(2, 36, f"{CELLS[0].key}, trial 2 of 3", "trial", (CELLS[0].key,), 750.0))
    drained(live, 20)
    live.fault("curl hunter2-hunter2", False)
    live.fault("curl hunter2-hunter2", True)
    return live


def test_what_is_going_on_bears_the_pipeline_and_the_cell(live: LiveRun) -> None:
    values, last = found(asked(live)), live.snapshot()["readings"]
    assert values["sinkbench_run_info"] == {of(run=RUN): 1}
    assert values["sinkbench_trial_number"] == {of(**HERE): 2}
    assert values["sinkbench_stored_records_per_second"] == {of(**HERE): last["rate"][-1]}
    assert values["sinkbench_lag_records"] == {of(**HERE): last["lag"][-1]}
    assert values["sinkbench_connections"] == {of(**HERE, side="clients"): 40, of(**HERE, side="servers"): 9}
    assert values["sinkbench_tasks"] == {of(**HERE, state="running"): 12, of(**HERE, state="failed"): 0}
    assert values["sinkbench_cpu_cores"][of(**HERE, service="connect")] == pytest.approx(0.6)
    times = [values[f"sinkbench_{name}_timestamp_seconds"] for name in ("trial_start", "fault_start", "fault_end")]
    assert sorted(at := [value for each in times for value in each.values()]) == at
    assert len(at) == 3


def test_a_cell_has_a_verdict_only_after_its_first_trial(live: LiveRun) -> None:
    values = found(asked(live))
    trials = values["sinkbench_cell_trials_total"]
    assert [trials[of(pipeline=cell.pipeline, cell=cell.key)] for cell in CELLS[:2]] == [1, 0]
    assert values["sinkbench_cell_lost_records_total"][of(**HERE)] == 12
    assert values["sinkbench_cell_passed"] == {of(**HERE): 0}
    assert values["sinkbench_cell_verdict_info"] == {of(**HERE, verdict="LOST 12"): 1}


def test_nothing_is_read_between_loads_and_a_step_of_several_cells_names_none(live: LiveRun) -> None:
    live.phase("auditing")
    assert not {"sinkbench_lag_records", "sinkbench_tasks", "sinkbench_cpu_cores"} & found(asked(live)).keys()
    live.step(RunStep(0, 36, "pilot", "pilot", tuple(cell.key for cell in CELLS[:2])))
    drained(live, 2)
    values = found(asked(live))
    assert set(values["sinkbench_lag_records"]) == {of(pipeline=CELLS[0].pipeline, cell="")}
    assert "sinkbench_trial_start_timestamp_seconds" not in values
    assert found(asked(LiveRun())).keys() == {"sinkbench_run_info", "sinkbench_trial_number"}


def test_secrets_are_hidden(live: LiveRun) -> None:
    assert "hunter2" in asked(live)
    secrets.conceal("hunter2-hunter2")
    assert "hunter2" not in asked(live)


def test_the_dashboard_asks_only_for_metrics_that_there_are(live: LiveRun) -> None:
    board = json.loads((CHECKOUT / "docs" / "grafana-sinkbench.json").read_text(encoding="utf-8"))
    asking = [*(target for panel in board["panels"] for target in panel["targets"]), *board["annotations"]["list"]]
    queries = [each["expr"] for each in asking] + [each["query"] for each in board["templating"]["list"][1:]]
    names = [set(re.findall(r"\bsinkbench_\w+", query)) for query in queries]
    assert all(names)
    assert set().union(*names) <= found(asked(live)).keys()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Debian's prometheus is not installed")
def test_promtool_has_nothing_to_say_against_the_names(live: LiveRun) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=asked(live).encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_port_that_is_taken_ends_the_race_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINKBENCH_HOME", str(tmp_path / "home"))
    plan, results = str(CHECKOUT / "plans" / "quick.yaml"), tmp_path / "results"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["race", plan, "--results", str(results), "--metrics", str(port)])
    assert isinstance(done.exception, SettingsError)
    assert str(done.exception).startswith(f"metrics: port {port} cannot be listened on (address already in use); ")
    assert (done.output, list(results.iterdir())) == ("", [])
