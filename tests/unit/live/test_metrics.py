"""A run's figures as Prometheus reads them; tests/e2e/test_prometheus.py asks a real one."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sinkbench.errors import SettingsError
from sinkbench.live.events import RunStep
from sinkbench.live.page import metrics_endpoint
from sinkbench.live.state import LiveRun
from tests.support.liverun import CELLS, drained, judged


def asked(live: LiveRun) -> str:
    with metrics_endpoint(live, "0") as endpoint:
        assert httpx.get(endpoint, headers={"Host": "evil.example"}).status_code == 400
        return httpx.get(f"{endpoint}metrics").raise_for_status().text


def found(live: LiveRun) -> dict[tuple[str, ...], float]:
    """Values by name and the labels' values, in order of the labels."""
    families = text_string_to_metric_families(asked(live))
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


@pytest.fixture
def live() -> LiveRun:
    return judged()


def test_another_address_answers_other_machines_and_no_address_is_refused(live: LiveRun) -> None:
    with metrics_endpoint(live, "0.0.0.0:0") as endpoint:
        port = endpoint.rpartition(":")[2]
        answer = httpx.get(f"http://127.0.0.1:{port}metrics", headers={"Host": "controller.sinkbench.svc"})
    assert answer.status_code == 200
    for wrong in ("", "here", "0.0.0.0:", "70000", "-1"):
        with pytest.raises(SettingsError, match=f"--metrics {wrong}: give a port"):
            metrics_endpoint(live, wrong)


def test_what_goes_on_has_the_pipeline_and_cell_and_a_cell_its_verdict_after_its_first_trial(live: LiveRun) -> None:
    here = CELLS[0].key, CELLS[0].pipeline
    values, last = found(live), live.snapshot()["readings"]
    assert f'sinkbench_lag_records{{cell="{here[0]}",pipeline="{here[1]}"}}' in asked(live)
    expected = {"trial_number": 2, "lag_records": last["lag"][-1], "stored_records_per_second": last["rate"][-1]}
    expected |= {"cell_passed": 0, "cell_trials_total": 1, "cell_lost_records_total": 12}
    assert {name: values[f"sinkbench_{name}", *here] for name in expected} == expected
    assert [values["sinkbench_connections", *here, side] for side in ("clients", "servers")] == [40, 9]
    assert [values["sinkbench_tasks", *here, state] for state in ("running", "failed")] == [12, 0]
    assert values["sinkbench_cpu_cores", *here, "connect"] == pytest.approx(0.6)
    assert ("sinkbench_cell_verdict_info", *here, "LOST 12") in values
    assert sum(name == "sinkbench_cell_passed" for name, *_ in values) == 1
    times = [
        values[f"sinkbench_fault_{end}_timestamp_seconds", here[0], "curl ***", here[1]] for end in ("start", "end")
    ]
    assert times == sorted(times)


def test_nothing_is_read_between_loads_and_a_step_of_several_cells_names_none(live: LiveRun) -> None:
    live.phase("auditing")
    assert not {"sinkbench_lag_records", "sinkbench_tasks", "sinkbench_cpu_cores"} & {name for name, *_ in found(live)}
    live.step(RunStep(0, 36, "pilot", "pilot", tuple(cell.key for cell in CELLS[:2])))
    drained(live, 2)
    values = found(live)
    assert ("sinkbench_lag_records", "", CELLS[0].pipeline) in values
    assert not any(name == "sinkbench_trial_start_timestamp_seconds" for name, *_ in values)


def test_every_metric_has_its_meaning_and_its_type(live: LiveRun) -> None:
    families = {family.name: family for family in text_string_to_metric_families(asked(live))}
    assert [name for name, family in families.items() if not family.documentation] == []
    counters = {name for name, family in families.items() if family.type == "counter"}
    assert counters == {"sinkbench_cell_trials", "sinkbench_cell_lost_records"}
