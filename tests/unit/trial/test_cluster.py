"""What a trial makes of a connector file, and whether it fits on the disk; no service is asked."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from loadgen.summary import Summary
from sinkbench.errors import Interrupted, ReasonCode, TrialFailed
from sinkbench.plan.cells import Cell
from sinkbench.plan.sections import PlanLoad
from sinkbench.services.connect import REBALANCE_SECONDS, ConnectCluster
from sinkbench.sinks import Capabilities, Created
from sinkbench.stack import Stack, Usage
from sinkbench.trial.audit import counted
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning
from sinkbench.trial.resources import create_target
from tests.support.endpoints import endpoints
from tests.support.fakecluster import resources
from tests.support.ports import free_ports
from tests.support.summaries import summary
from tests.support.trials import a_cell, connectors_in, plan_in

FILE = {"name": "mine", "config": {"connector.class": "A", "topics": "tides", "tasks.max": "3", "batch.size": "500"}}

CELL = a_cell(multiple=2)


def cluster_of(folder: Path, free_bytes: int | None = None) -> Cluster:
    plan = plan_in(
        folder, "pipelines: [postgres/jdbc]\n", connectors_in(folder, "postgres/jdbc", text=json.dumps(FILE))
    )
    stack = SimpleNamespace(endpoints=endpoints(), usage=lambda: Usage(free_bytes=free_bytes))
    return Cluster(cast(Stack, stack), plan, folder)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(cluster_of(tmp_path)) as made:
        yield made


def test_only_topic_tasks_and_a_plans_overrides_of_a_connector_file_are_changed(cluster: Cluster) -> None:
    changed = cluster.config(a_cell(multiple=2, overrides={"batch.size": "2000"}), Names.of("t1"))
    assert changed == {**FILE["config"], "topics": "tides_t1", "tasks.max": "6", "batch.size": "2000"}  # type: ignore[dict-item]


def test_a_trial_that_does_not_fit_on_the_disk_fails_with_both_figures(cluster: Cluster, tmp_path: Path) -> None:
    # A disk that cannot be seen is not full.
    cluster.check_disk(10**9)
    with closing(cluster_of(tmp_path, free_bytes=2_000_000_000)) as small:
        with pytest.raises(TrialFailed, match=r"3\.0 GB of free disk space, there are 2\.0 GB"):
            small.check_disk(1_000_000)
        small.check_disk(100_000)


def sink_of(rows: int) -> Any:
    """A sink that holds so many rows, ten of them of the run."""
    of_run = np.arange(10)
    return SimpleNamespace(
        settle=lambda target: None, sequences=lambda target, run: iter([of_run]), count=lambda target: rows
    )


def test_rows_that_were_there_before_are_not_foreign_and_fail_the_trial_when_gone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rows, foreign in ((1_010, 0), (1_013, 3)):
        monkeypatch.setattr(cluster, "sink", lambda name, rows=rows: sink_of(rows))
        found = counted(resources(cluster, a_cell(rows_before=1_000))).result()
        assert (found.stored, found.foreign) == (10 + foreign, foreign)
    monkeypatch.setattr(cluster, "sink", lambda name: sink_of(1_003))
    with pytest.raises(TrialFailed, match="7 of the 1,000 rows that were there before are gone") as failed:
        counted(resources(cluster, a_cell(rows_before=1_000)))
    assert failed.value.code == ReasonCode.COUNTS_DISAGREE


def set_to(value: str) -> Cell:
    return a_cell(settings={"postgres": {"synchronous_commit": value}})


@pytest.fixture
def done(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to a sink with services that can be set; the cluster's connectors and groups are gone at once."""
    done: list[Any] = []
    settings: Any = SimpleNamespace(
        apply=lambda given: done.append(f"set {given['postgres']['synchronous_commit']}"),
        revert=lambda: done.append("back"),
    )
    sink = SimpleNamespace(
        capabilities=Capabilities(service_settings=settings),
        create=lambda target, file: done.append("create") or Created(),
        drop=lambda target: done.append("drop"),
    )
    monkeypatch.setattr(cluster, "sink", lambda name: sink)
    monkeypatch.setattr(cluster, "stop_connector", lambda *names: done.append("stop"))
    monkeypatch.setattr(cluster.kafka, "delete_group", lambda group: None)
    monkeypatch.setattr(cluster.kafka, "delete_topic", lambda topic: None)
    return done


def test_services_are_set_before_the_target_is_made_and_back_when_the_connector_is_gone(
    cluster: Cluster, done: list[str]
) -> None:
    create_target(resources(cluster, set_to("off")))
    resources(cluster, set_to("off")).remove()
    assert done == ["set off", "create", "stop", "back", "drop"]
    create_target(resources(cluster, CELL))
    resources(cluster, CELL).remove()
    assert done[5:] == ["create", "stop", "drop"]


def test_nothing_of_a_trial_that_could_not_be_cleaned_up_reaches_the_next_one(
    cluster: Cluster, done: list[str]
) -> None:
    create_target(resources(cluster, set_to("off")))
    create_target(resources(cluster, CELL))
    create_target(resources(cluster, CELL))
    assert done == ["set off", "create", "back", "create", "create"]


def test_a_topic_is_loaded_with_the_cells_acks(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []

    def load(topic: str, run: str, records: int, load: PlanLoad, *rest: object) -> list[Summary]:
        loads.append(load.acks)
        return [summary({"run": run, "topic": topic, "first_seq": 0, "count": 1})]

    monkeypatch.setattr(cluster, "_loadgens", SimpleNamespace(load=load, close=lambda: None))
    monkeypatch.setattr(cluster.kafka, "end_offsets", lambda topic: {0: 1})
    for acks in ("1", None):
        cluster.load(Names.of("t1"), 1, lambda done: None, {"acks": acks} if acks else None)
    assert loads == ["1", "all"]


def test_an_interrupt_also_shortens_the_waits_of_clusters_that_may_be_closed_by_now() -> None:
    (port,) = free_ports(1)
    closed = ConnectCluster([f"http://127.0.0.1:{port}"])
    closed.close()
    stack, connect = SimpleNamespace(endpoints=SimpleNamespace(shared=False)), SimpleNamespace(all_answer=lambda: False)
    cluster, other = (cast(Any, SimpleNamespace(stack=stack, connect=each)) for each in (connect, closed))
    Cluster.hurry(cluster, [other])
    assert connect.patience_seconds == closed.patience_seconds < REBALANCE_SECONDS


@pytest.mark.parametrize(("answer", "waits"), [(False, 0.2), (True, 60.0)])
def test_after_an_interrupt_nobody_waits_until_a_dead_worker_is_missed(
    monkeypatch: pytest.MonkeyPatch, answer: bool, waits: float
) -> None:
    monkeypatch.setattr("sinkbench.trial.cluster.INTERRUPTED_SECONDS", 0.2)
    gone: dict[str, Any] = dict.fromkeys(("delete", "wait_until_gone"), lambda name: None)
    connect = SimpleNamespace(patience_seconds=60.0, all_answer=lambda: answer, **gone)
    waited: list[float] = []
    stack = SimpleNamespace(endpoints=SimpleNamespace(shared=False))
    kafka = SimpleNamespace(wait_until_empty=lambda group, seconds: waited.append(seconds))
    cluster: Any = SimpleNamespace(stack=stack, connect=connect, kafka=kafka)
    cluster.hurry = lambda: Cluster.hurry(cluster)
    Cluster.stop_connector(cluster, "mine", "connect-mine")
    with pytest.raises(Interrupted), cleaning(lambda: Cluster.stop_connector(cluster, "mine", "connect-mine")):
        raise Interrupted
    assert waited == [60.0, waits]
