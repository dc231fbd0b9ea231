"""Whole runs on the real stack: good ones, and ones in which something breaks."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from sinkbench.plan.plan import PlanDrain
from sinkbench.plan.sizing import is_too_short
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.kafka import Kafka
from sinkbench.stack.local import LocalStack
from tests.e2e import races
from tests.e2e.onetrial import one_trial
from tests.support.commands import Run
from tests.support.latest import summary_of, trials_of
from tests.support.observers import When
from tests.support.trials import config_of, quick_plan

CONNECTIONS = """
pipelines: [postgres/jdbc, postgres/jdbc-pgbouncer]
multiples: [8]
drain: {stall_seconds: 60}
"""


@pytest.fixture
def whole(stack: LocalStack) -> Iterator[LocalStack]:
    """The stack; whatever a test has killed runs again after it, and nothing of a trial is left."""
    yield stack
    stack.up(lambda line: None)
    assert races.left_behind(stack) == []


def test_a_race_stores_every_record_exactly_once_in_all_four_pipelines(whole: LocalStack, quick: races.Quick) -> None:
    folder = quick.folder
    summary = summary_of(folder)
    assert summary["complete"] is True
    assert tuple(cell["pipeline"] for cell in summary["cells"]) == races.ALL_FOUR
    for cell in summary["cells"]:
        assert cell["passed"] is True, cell
        assert cell["audit"]["produced"] == cell["audit"]["stored"] > 0
        assert cell["placement"] == {"connect-1": 1, "connect-2": 1, "connect-3": 1}
        assert cell["pipeline"] in quick.output
        assert set(cell["cpu_seconds_per_million"]) >= {"connect", "kafka", cell["sink"]}
        held = {name: each["resident_bytes"] for name, each in cell["peak_memory"].items()}
        # The idle sink is on no record's path.
        sinks = {"elasticsearch": {"elasticsearch"}, "postgres": {"postgres", "pgbouncer"}}
        assert set(held) == {"connect", "kafka", *sinks[cell["sink"]]}
        assert 0 < cell["peak_memory"]["connect"]["heap_bytes"] < held["connect"]
        assert held["connect"] < cell["total_peak_memory_bytes"]["median"] <= sum(held.values())
        # A record of 512 bytes is at least as long on its way, and takes more than its key on a disk.
        assert cell["fetched_bytes_per_record"] > 512
        # None of fewer than 100,000 records.
        assert cell["disk_bytes_per_record"] is None or cell["disk_bytes_per_record"]["median"] > 50
        # Every connection is the connector's, and closed with it.
        assert cell["connections"]["clients_peak"] > 0
        assert cell["connections"]["others"] == 0
    promised = summary["environment"]["durability"]
    assert set(promised) == {"kafka", "elasticsearch", "postgres"}
    assert None not in [value for each in promised.values() for value in each.values()]
    index, bulk, direct, pooled = summary["cells"]
    held = bulk["peak_memory"]["elasticsearch"]
    assert 0 < held["heap_bytes"] < held["resident_bytes"]
    assert "memory and disk" in quick.shown.lower()
    assert index["records_per_write"] == pytest.approx(1, rel=0.02)
    assert bulk["records_per_write"] > 20
    assert pooled["connections"]["server_peak"] <= 20
    # The same connector opens the same connections; those that PgBouncer kept from a trial before are not its own.
    assert direct["connections"]["clients_peak"] <= pooled["connections"]["clients_peak"]
    trials = trials_of(folder)
    assert len(trials) == 4
    # A machine may well have other users; these services have none.
    assert "also_there" not in summary["environment"]
    assert [trial["others"] for trial in trials] == [[]] * 4
    # A rate need not be steady in so short a trial, so that the cell may have none to quote.
    rates = {trial["pipeline"]: trial["records_per_second"] for trial in trials}
    assert rates["elasticsearch/camel-bulk"] > rates["elasticsearch/camel-index"] > 0
    for trial in trials:
        assert len((folder / "results" / "latest" / trial["samples"]).read_text().splitlines()) > 4


def test_the_live_page_shows_the_cells_the_charts_and_the_end_of_a_race(quick: races.Quick) -> None:
    states, cores, last = set(), set(), {}
    most = {"rate": 0.0, "lag": 0.0, "clients": 0.0, "servers": 0.0}
    for kind, data in quick.news:
        if kind != "state":
            continue
        last |= data["parts"]
        states |= {cell["state"] for cell in last["cells"]}
        readings = last["readings"]
        cores |= {name for name, values in readings["cpu"].items() if any(values)}
        for name in most:
            most[name] = max([most[name], *(value for value in readings[name] if value is not None)])
    assert (quick.news[-1][0], last["run"]["ending"]) == ("end", "complete")
    assert states == {"waiting", "pilot", "running", "done"}
    assert [(cell["state"], cell["taken"], cell["of"]) for cell in last["cells"]] == [("done", 1, 1)] * 4
    assert all(value > 0 for value in most.values()), most
    assert {"connect", "postgres", "pgbouncer", "elasticsearch", "kafka", "controller"} <= cores
    verdicts = [line["text"] for line in last["lines"] if line["verdict"]]
    # A trial that was too short is taken again.
    assert len(verdicts) >= 4
    assert all(verdict in quick.output for verdict in verdicts)


@pytest.mark.rare
@pytest.mark.long
def test_a_jvm_that_has_just_begun_is_not_warm(whole: LocalStack, tmp_path: Path) -> None:
    whole.faults.do("stop", "connect-1")
    whole.faults.do("start", "connect-1")
    # So little of compiling is asked for that no such JVM has it.
    plan = "pipelines: [postgres/jdbc]\ndrain: {compiling_percent: 0.0001, stall_seconds: 60}\n"
    record, _ = one_trial(whole, tmp_path, plan, 400_000)
    assert record.reasons == []
    assert record.warm is False
    assert 0 < record.compiling_share < 1
    assert set(record.jvm_cpu_seconds_per_million) == {"kafka", "connect", "elasticsearch"}
    assert 0 < record.monitoring_overhead_cores < 1
    assert record.audit.clean


@pytest.mark.rare
@pytest.mark.long
def test_direct_connections_run_out_at_24_tasks_and_pooled_ones_do_not(whole: LocalStack, tmp_path: Path) -> None:
    direct, _ = one_trial(whole, tmp_path, CONNECTIONS, 50_000)
    assert direct.failed_tasks > 0
    # Hibernate may have kept it from each of the tasks that failed: it is in the worker's log then.
    assert "too many clients already (connection.pool.max_size, tasks.max): lower it" in (direct.failure or "")
    pooled, _ = one_trial(whole, tmp_path, CONNECTIONS, 300_000, cell=1)
    # How fast it is over is up to the machine.
    assert not pooled.reasons or is_too_short(pooled, PlanDrain().window_seconds)
    assert pooled.audit.clean
    assert pooled.tasks == 24
    assert pooled.connections.clients_peak >= 24
    assert pooled.connections.server_peak <= 20


@pytest.mark.rare
@pytest.mark.long
def test_a_worker_killed_in_a_trial_makes_it_invalid_and_is_started_again(whole: LocalStack, tmp_path: Path) -> None:
    with races.a_race(tmp_path, quick_plan(races.SOON_MISSED, window=6)) as race:
        races.wait_for_draining(whole, "-001")
        time.sleep(1)
        whole.faults.do("kill", "connect-2")
        output, _ = race.communicate(timeout=400)
    (cell,) = summary_of(tmp_path)["cells"]
    (died,) = trials_of(tmp_path)
    assert died["invalid"] == ["connect-2 died during the trial"], output
    # With the worker back the connector goes on from its last commit to the end of the topic: at least once.
    assert died["not_audited"] == "", output
    assert died["reconciliation"]["consumed"] == died["audit"]["produced"] == died["records"]
    assert died["audit"]["lost"] == died["audit"]["foreign"] == 0
    assert (died["audit"]["duplicates"] > 0) == (died["duplicated_ranges"] != "")
    assert died["records_per_second"] is None
    assert cell["not_audited"] == 0
    assert cell["audit"]["produced"] == died["records"]
    assert race.returncode == 1, output
    assert all(state.state == "running" for state in whole.services())


def test_a_connector_that_somebody_has_posted_is_named_and_the_race_refused(
    whole: LocalStack, connect: ConnectCluster, kafka: Kafka, tmp_path: Path, sinkbench: Run
) -> None:
    connect.create("by-hand", config_of("postgres/jdbc"))
    try:
        connect.wait_for_tasks("by-hand", 3)
        (tmp_path / "mine.yaml").write_text(races.ONE)
        done = sinkbench("race", "mine.yaml")
    finally:
        races.remove_connectors(connect, kafka, "by-hand")
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "connector by-hand (3 tasks) runs on this stack" in done.stderr
    assert "/connectors/by-hand" in done.stderr
    assert list((tmp_path / "results").iterdir()) == []


@pytest.mark.rare
@pytest.mark.long
def test_connections_of_others_are_not_the_trials(whole: LocalStack, tmp_path: Path) -> None:
    address = whole.endpoints.sinks["postgres"].address
    with ExitStack() as opened:
        for _ in range(20):
            opened.enter_context(psycopg.connect(address))
        trial, samples = one_trial(whole, tmp_path, races.ONE, 150_000)
        # Three tasks have three connections at least, and a pool for each has no twenty more.
        assert trial.connections.clients_peak == max(sample.backends or 0 for sample in samples) - 20 >= 3
        assert trial.connections.others == 0

        def join() -> None:
            for _ in range(2):
                opened.enter_context(psycopg.connect(address))

        observer = When(lambda sample: sample.tasks_running or sample.stored, join)
        joined, _ = one_trial(whole, tmp_path, races.ONE, 150_000, observer=observer)
    assert (joined.connections.clients_peak, joined.connections.others) == (None, 2)
    assert joined.others == trial.others == []


def test_a_second_race_is_refused_on_any_stack_and_ctrl_c_keeps_the_finished_trials_and_leaves_nothing(
    whole: LocalStack, tmp_path: Path, sinkbench: Run
) -> None:
    races.stack_file(tmp_path, whole.endpoints)
    with races.a_race(tmp_path, races.ONE) as race:
        races.wait_for_draining(whole, "-pilot-1")
        refused = [sinkbench("race", "mine.yaml", *stack) for stack in ([], ["--stack", "clusters.yaml"])]
        races.wait_for_draining(whole, "-002")
        race.send_signal(signal.SIGINT)
        output, _ = race.communicate(timeout=120)
    for done in refused:
        assert done.returncode == 2
        assert re.search(rf"pid {race.pid}, plan mine, run \S+-mine, since \d{{4}}-", done.stderr), done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert race.returncode == 130, output
    assert "Traceback" not in output
    run = f"results/{(tmp_path / 'results' / 'latest').resolve().name}"
    assert f"interrupted; the finished trials are in {run}; " in output
    assert f"sinkbench resume {run}" in output
    summary = summary_of(tmp_path)
    assert summary["complete"] is False
    assert summary["cells"][0]["trials"] == 1
