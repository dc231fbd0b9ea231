"""kubernetes/plain on a real cluster: it races, is scaled, notices a lost pod and faults, and leaves nothing."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from sinkbench.cli.main import main
from sinkbench.errors import EXIT_UNUSABLE
from sinkbench.stack.kubernetes import Api
from tests.kubernetes.cluster import done, kubectl
from tests.support.commands import started
from tests.support.latest import trials_of
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("cluster")
NAMESPACE, OTHER = "sinkbench-test", "of-somebody-else"
LOADGEN = "app.kubernetes.io/component=loadgen"
STACK = ("--stack", f"kubernetes:{NAMESPACE}")
DRAINS = """
pipelines: [elasticsearch/reference-bulk, postgres/reference-copy]
trials: 1
drain: {pilot_seconds: 1, warm_up_seconds: 4, warm_up_budget_seconds: 0, window_seconds: 4}
"""
SUSTAINED = """
mode: sustain
pipelines: [postgres/reference-copy]
trials: 1
sustain: {records_per_second: 4000, seconds: 15}
drain: {pilot_seconds: 1, warm_up_seconds: 4}
"""
FAULTS = """
mode: faults
pipelines: [postgres/reference-copy]
trials: 1
sustain: {records_per_second: 500, seconds: 50}
drain: {pilot_seconds: 1, warm_up_seconds: 4}
faults:
  - {what: kill, target: worker, at_seconds: 5, seconds: 45}
  - {what: freeze, target: sink, at_seconds: 5, seconds: 4}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    if not os.environ.get("KUBECONFIG"):
        pytest.skip("KUBECONFIG names no cluster; scripts/kubernetes-bootstrap starts one")
    try:
        done("create", "namespace", OTHER)
        done("create", "configmap", "yours", "--namespace", OTHER)
        assert main(["kubernetes", "apply", "--namespace", NAMESPACE, "--wait", "600"]) == 0
        yield
        assert main(["kubernetes", "delete", "--namespace", NAMESPACE]) == 0
        assert NAMESPACE not in done("get", "namespaces,clusterroles,clusterrolebindings", "--output", "name")
        assert "configmap/yours" in done("get", "configmaps", "--namespace", OTHER, "--output", "name")
    finally:
        kubectl("delete", "namespace", OTHER, NAMESPACE, "--ignore-not-found")


def raced(folder: Path, text: str) -> list[dict[str, Any]]:
    plan = folder / "plan.yaml"
    plan.write_text(text)
    assert main(["race", str(plan), *STACK, "--results", str(folder / "results")]) != EXIT_UNUSABLE
    return trials_of(folder, pilots=True)


@contextmanager
def scaled(what: str, name: str, replicas: int, usually: int) -> Iterator[None]:
    """So many pods in place of the usual number, which run again afterwards."""
    scale = ("scale", what, name, "--namespace", NAMESPACE, "--replicas")
    done(*scale, str(replicas))
    try:
        yield
    finally:
        done(*scale, str(usually))
        rolled_out(what, name)


def rolled_out(what: str, name: str) -> None:
    done("rollout", "status", what, name, "--namespace", NAMESPACE, "--timeout", "300s")


def test_a_race_measures_rates_cpu_time_and_memory_and_loses_nothing(tmp_path: Path) -> None:
    trials = raced(tmp_path, DRAINS)
    assert len(trials) == 2
    for trial in trials:
        assert not trial["reasons"]
        assert trial["audit"]["lost"] == trial["audit"]["duplicates"] == 0
        assert trial["placement"] == {"connect-1": 1, "connect-2": 1, "connect-3": 1}
        used = trial["cpu_seconds_per_million"]
        assert min(used["kafka"], used["connect"], used[trial["sink"]]) > 0
        assert trial["peak_memory"][trial["sink"]]["resident_bytes"] > 10_000_000


def test_workers_are_scaled_by_replicas_and_tasks_by_rest(tmp_path: Path) -> None:
    with scaled("statefulset", "connect", 2, 3):
        until(lambda: main(["check", *STACK]) == 0, 120)
        assert {len(trial["placement"]) for trial in raced(tmp_path, DRAINS)} == {2}


def test_eight_load_generators_offer_one_rate_and_every_record_is_there_once(tmp_path: Path) -> None:
    with scaled("deployment", "loadgen", 8, 1):
        rolled_out("deployment", "loadgen")
        (trial,) = raced(tmp_path, SUSTAINED)
        assert trial["offered_records_per_second"] == pytest.approx(4000, rel=0.01)
        assert (trial["audit"]["produced"], trial["audit"]["lost"], trial["audit"]["duplicates"]) == (60_000, 0, 0)


def test_a_trial_that_loses_a_pod_is_invalid_and_names_it_and_the_next_one_is_valid(tmp_path: Path) -> None:
    text = DRAINS.replace("elasticsearch/reference-bulk, ", "").replace("trials: 1", "trials: 2")
    (tmp_path / "plan.yaml").write_text(text.replace("window_seconds: 4", "window_seconds: 15"))
    worker = done("get", "pod", "connect-0", "--namespace", NAMESPACE, "--output", "jsonpath={.status.podIP}")

    def drains() -> bool:
        names = httpx.get(f"http://{worker}:8083/connectors").json()
        return any("canary" not in name and "pilot" not in name for name in names)

    with started(tmp_path, "race", "plan.yaml", *STACK) as racing:
        until(drains, 240, passing=(httpx.HTTPError,))
        done("delete", "pod", "connect-1", "--namespace", NAMESPACE, "--force")
        racing.communicate(timeout=400)
    first, second = trials_of(tmp_path, pilots=True)
    assert "pod connect-1" in json.dumps(first["reasons"])
    assert not second["reasons"]
    rolled_out("statefulset", "connect")


def test_a_killed_worker_and_a_frozen_sink_lose_nothing(tmp_path: Path) -> None:
    trials = raced(tmp_path, FAULTS)
    assert len(trials) == 2
    assert all(trial["audit"]["lost"] == 0 for trial in trials)
    # Kubernetes does not leave it dead for 45 s.
    assert trials[0]["recovery"]["ended_seconds"] < 45


def test_a_pod_that_was_evicted_is_none_of_the_pods() -> None:
    """It stays, as Failed; so does one that nobody starts again."""
    labels = {"app.kubernetes.io/part-of": "sinkbench", "app.kubernetes.io/component": "loadgen"}
    pod = json.loads(done("get", "pods", "--namespace", NAMESPACE, "--output", "json", "--selector", LOADGEN))["items"][
        0
    ]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {**pod["spec"], "restartPolicy": "Never"}}
    pod |= {"metadata": {"name": "evicted", "labels": labels}}
    pod["spec"]["containers"][0] |= {"command": ["false"]}
    try:
        done("apply", "--namespace", NAMESPACE, "--filename", "-", given=pod)
        done("wait", "pod/evicted", "--namespace", NAMESPACE, "--for=jsonpath={.status.phase}=Failed", "--timeout=60s")
        assert "evicted" not in {each["metadata"]["name"] for each in Api(NAMESPACE).list("pods")}
    finally:
        kubectl("delete", "pod", "evicted", "--namespace", NAMESPACE, "--ignore-not-found")


def test_an_image_that_cannot_be_pulled_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not after all the seconds that `apply` waits for pods."""
    labels, absent = {"app.kubernetes.io/part-of": "sinkbench"}, "sinkbench.invalid/none:1"
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "none", "image": absent}]}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "none", "labels": labels}, "spec": spec}
    (tmp_path / "none.yaml").write_text(json.dumps(made))
    (tmp_path / "kustomization.yaml").write_text("resources: [none.yaml]")
    where = ("--namespace", "sinkbench-late")
    try:
        assert main(["kubernetes", "apply", "--overlay", str(tmp_path), *where, "--wait", "300"]) == EXIT_UNUSABLE
        assert re.search(f"image {absent}: (ErrImagePull|ImagePullBackOff): .*set `images`", capsys.readouterr().err)
    finally:
        assert main(["kubernetes", "delete", *where]) == 0
