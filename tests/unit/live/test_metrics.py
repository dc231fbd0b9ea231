"""A run's figures as Prometheus reads them, and the dashboard that asks for them."""

import json
import re
import shutil
import subprocess

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sinkbench import secrets
from sinkbench.live.events import RunStep
from sinkbench.live.metrics import metrics_endpoint
from sinkbench.live.state import LiveRun
from sinkbench.settings import CHECKOUT
from sinkbench.summary.cells import summarize
from tests.support.liverun import CELLS, RUN, drained, record
from tests.support.trials import run_summary

HERE = {"pipeline": CELLS[0].pipeline, "cell": CELLS[0].key}
Values = dict[str, dict[frozenset[tuple[str, str]], float]]


def asked(live: LiveRun) -> str:
    with metrics_endpoint(live, 0) as endpoint:
        assert httpx.get(endpoint.address, headers={"Host": "evil.example"}).status_code == 400
        return httpx.get(f"{endpoint.address}metrics").raise_for_status().text


def found(live: LiveRun) -> Values:
    """Values by name and labels."""
    values: Values = {}
    for each in (each for family in text_string_to_metric_families(asked(live)) for each in family.samples):
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
    secrets.conceal("hunter2-hunter2")
    live.fault("curl hunter2-hunter2", False)
    live.fault("curl hunter2-hunter2", True)
    return live


def test_what_goes_on_has_the_pipeline_and_cell_and_a_cell_its_verdict_after_its_first_trial(live: LiveRun) -> None:
    values, last = found(live), live.snapshot()["readings"]
    assert values["sinkbench_run_info"] == {of(run=RUN): 1}
    assert values["sinkbench_trial_number"] == {of(**HERE): 2}
    assert values["sinkbench_stored_records_per_second"] == {of(**HERE): last["rate"][-1]}
    assert values["sinkbench_lag_records"] == {of(**HERE): last["lag"][-1]}
    assert values["sinkbench_connections"] == {of(**HERE, side="clients"): 40, of(**HERE, side="servers"): 9}
    assert values["sinkbench_tasks"] == {of(**HERE, state="running"): 12, of(**HERE, state="failed"): 0}
    assert values["sinkbench_cpu_cores"][of(**HERE, service="connect")] == pytest.approx(0.6)
    assert sorted(values["sinkbench_cell_trials_total"].values()) == [*[0] * (len(CELLS) - 1), 1]
    assert values["sinkbench_cell_passed"] == {of(**HERE): 0}
    assert values["sinkbench_cell_verdict_info"] == {of(**HERE, verdict="LOST 12"): 1}
    ((fault, began),) = values["sinkbench_fault_start_timestamp_seconds"].items()
    assert fault == of(**HERE, fault="curl ***")
    assert began <= values["sinkbench_fault_end_timestamp_seconds"][fault]


def test_nothing_is_read_between_loads_and_a_step_of_several_cells_names_none(live: LiveRun) -> None:
    live.phase("auditing")
    assert not {"sinkbench_lag_records", "sinkbench_tasks", "sinkbench_cpu_cores"} & found(live).keys()
    live.step(RunStep(0, 36, "pilot", "pilot", tuple(cell.key for cell in CELLS[:2])))
    drained(live, 2)
    values = found(live)
    assert set(values["sinkbench_lag_records"]) == {of(pipeline=CELLS[0].pipeline, cell="")}
    assert "sinkbench_trial_start_timestamp_seconds" not in values


def test_the_dashboard_asks_only_for_metrics_that_there_are(live: LiveRun) -> None:
    board = json.loads((CHECKOUT / "docs" / "grafana-sinkbench.json").read_text(encoding="utf-8"))
    asking = [*(target for panel in board["panels"] for target in panel["targets"]), *board["annotations"]["list"]]
    queries = [each["expr"] for each in asking] + [each["query"] for each in board["templating"]["list"][1:]]
    names = [set(re.findall(r"\bsinkbench_\w+", query)) for query in queries]
    assert all(names)
    assert set().union(*names) <= found(live).keys()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Debian's prometheus is not installed")
def test_promtool_has_nothing_to_say_against_the_names(live: LiveRun) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=asked(live).encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
