"""A trial in which something is broken on purpose, on a cluster without services; and when a person acts."""

import json
import zlib
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import psutil
import pytest

from sinkbench.analysis.deadletters import PREFIX, DeadLetter
from sinkbench.analysis.samples import Sample
from sinkbench.errors import Interrupted, ReasonCode, StackError
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.results import TrialRecord
from sinkbench.sinks import Arrivals
from sinkbench.summary.cells import summarize
from sinkbench.trial.names import TRIAL
from sinkbench.trial.resources import Resources
from sinkbench.trial.stop import MOST_DEEDS, Deed, End, FaultWatch
from sinkbench.trial.trial import run_trial
from sinkbench.trial.values import Queue
from sinkbench.trial.workloads.fault import Fault
from sinkbench.trial.workloads.injection import poison
from sinkbench.trial.workloads.sustain import records_offered
from tests.support.fakecluster import FakeCluster, Quiet, codes, resources
from tests.support.trials import plan_of, sample

RATE = 900.0


def plan_with(fault: dict[str, object]) -> Plan:
    load, drain = {"records_per_second": RATE, "seconds": 20}, {"timeout_seconds": 200}
    # A second of the cluster's own clock takes four thousandths.
    return plan_of(mode="faults", sustain=load, drain=drain, faults=[{"seconds": 0.02, **fault}])


def own_of(cluster: Any, observer: Quiet | None = None) -> Resources:
    """What the trial of a constant load has on this cluster."""
    return resources(cluster, None, records_offered(cluster.plan, RATE), observer)


def run(own: Resources, rate: float | None = RATE) -> TrialRecord:
    cluster: Any = own.cluster
    return run_trial(own, Fault(rate, own.cell.fault), 1, cluster.revive)[0]


def take(cluster: Any, observer: Quiet | None = None) -> TrialRecord:
    """Takes the trial of a constant load, by the fake's clock."""
    return run(own_of(cluster, observer))


class Leaving(Quiet):
    """Interrupts the trial at a sample once this is so."""

    def __init__(self, when: Callable[[], object]) -> None:
        super().__init__()
        self.when = when

    def sample(self, sample: Sample) -> None:
        if self.when():
            raise Interrupted


def broken(cluster: FakeCluster, **fields: dict[str, Any]) -> FakeCluster:
    """The cluster, in which each thing that is done sets these of its attributes."""

    def follow(done: str) -> None:
        for name, value in fields.get(done.replace(" ", "_").replace("-", "_"), {}).items():
            setattr(cluster, name, value)

    cluster.breaks = follow
    return cluster


def test_nothing_that_is_broken_breaks_nothing() -> None:
    record = take(FakeCluster(plan_with({"what": "none"})))
    assert (record.reasons, record.fault) == ([], "none")
    found = record.recovery
    assert (found.recovered, found.acts, found.rate_seconds, found.standstill_seconds) == (True, [], 0.0, 0.0)
    assert found.began_seconds == pytest.approx(6, abs=1.5)
    assert record.audit.clean


def drained(cluster: Any, records: int = 20_000) -> TrialRecord:
    """The trial of a cluster whose records are a backlog."""
    sustain = cluster.plan.sustain.model_copy(update={"records_per_second": None, "backlog_records": records})
    cluster.plan = cluster.plan.model_copy(update={"sustain": sustain})
    own = resources(cluster, None, records)
    return run(own, own.cell.offered)


@pytest.mark.parametrize(("when", "begins"), [({}, 6.0), ({"at_share": 0.5}, 10.0), ({"at_seconds": 4}, 4.0)])
def test_a_backlog_is_there_before_the_connector_and_broken_while_it_is_drained(
    when: dict[str, object], begins: float
) -> None:
    cluster = FakeCluster(plan_with({"what": "kill", "target": "worker", **when}))
    cluster = broken(cluster, kill_w2={"stuck": True}, start_w2={"stuck": False})
    record = drained(cluster)
    assert cluster.calls.index("load") < cluster.calls.index("start")
    assert cluster.calls.count("load") == 1
    assert (record.reasons, record.backlog_records, record.offered_records_per_second) == ([], 20_000, None)
    assert record.audit.clean
    found = record.recovery
    assert (found.recovered, found.began_seconds) == (True, pytest.approx(begins, abs=1.5))
    assert (found.rate_seconds, found.before_records_per_second, found.late_records) == (None, None, None)


def test_a_worker_that_is_killed_is_started_again_and_the_standstill_is_told() -> None:
    cluster = FakeCluster(plan_with({"what": "kill", "target": "worker"}))
    record = take(broken(cluster, kill_w2={"stuck": True}, start_w2={"stuck": False}))
    assert [call for call in cluster.calls if "w2" in call or call == "refresh"] == ["kill w2", "start w2", "refresh"]
    assert record.reasons == []
    found = record.recovery
    assert (found.target, found.recovered, found.acts) == ("w2", True, [])
    assert found.standstill_seconds >= 1.5
    assert found.ended_seconds > (found.began_seconds or 0)


NAME, CONNECTOR = "tides_abcdef_001", "tides-abcdef-001"


@pytest.mark.parametrize(
    ("fault", "target", "done"),
    [
        ({"what": "isolate", "target": "worker"}, "w2", ["isolate w2", "rejoin w2", "refresh"]),
        (
            {"what": "stop", "target": "workers"},
            "w0, w1, w2",
            ["stop w0", "start w0", "stop w1", "start w1", "stop w2", "start w2"],
        ),
        ({"what": "promote"}, "primary of postgres", ["promote postgres-2", "demote postgres", "restore roles"]),
        ({"what": "refuse", "why": "no connection"}, "postgres", [f"refuse (no connection) {NAME}", f"accept {NAME}"]),
        ({"what": "pause"}, "connector", [f"pause {CONNECTOR}", f"resume {CONNECTOR}"]),
        ({"what": "join"}, "connector", [f"delete connect-{CONNECTOR}-second"]),
        ({"what": "cut"}, "network to postgres", ["proxy begins", "disable postgres", "enable postgres", "proxy ends"]),
        (
            {"what": "delay", "milliseconds": 0.5},
            "network to postgres",
            ["add latency_upstream to postgres", "remove latency_upstream from postgres"],
        ),
        (
            {"what": "throttle", "seconds": None},
            "network to postgres",
            [f"{do} postgres" for do in ("add bandwidth_upstream to", "remove bandwidth_downstream from")],
        ),
    ],
)
def test_a_fault_is_done_and_undone_in_turn_and_leaves_nothing(
    fault: dict[str, object], target: str, done: list[str]
) -> None:
    cluster = FakeCluster(plan_with(fault))
    record = take(cluster)
    assert record.reasons == []
    assert (record.recovery.target, record.recovery.recovered, record.recovery.acts) == (target, True, [])
    told = [call for call in cluster.calls if call in done]
    assert [call for place, call in enumerate(told) if call not in told[:place]] == done
    assert [name for name in cluster.there if "second" in name] == []


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_connector_that_is_renamed_is_removed_by_its_new_name_however_the_trial_ends(interrupted: bool) -> None:
    cluster = FakeCluster(plan_with({"what": "rename"}))
    own = own_of(cluster, Leaving(lambda: interrupted and f"connector {CONNECTOR}-renamed" in cluster.there))
    with pytest.raises(Interrupted) if interrupted else nullcontext():
        assert run(own).recovery.recovered
    assert f"delete connect-{CONNECTOR}" in cluster.calls
    own.remove()
    assert [name for name in cluster.there if name.startswith("connector")] == []
    assert TRIAL.fullmatch(own.names.connector)
    assert own.names.target == NAME


@pytest.mark.parametrize(
    ("fault", "file", "acts"),
    [
        # A connector that knows one host is led to the new primary, once; one that finds it is only restarted.
        ({"what": "promote"}, "${env:POSTGRES_PORT}", [f"PUT /connectors/{CONNECTOR}/config"]),
        ({"what": "promote"}, "${env:POSTGRES_HOSTS}", [f"POST /connectors/{CONNECTOR}/restart"]),
        ({"what": "refuse"}, "", [f"POST /connectors/{CONNECTOR}/restart"]),
    ],
)
def test_tasks_that_stay_failed_are_helped_as_a_person_would_after_the_plans_patience(
    fault: dict[str, object], file: str, acts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeCluster, "file_of", lambda cluster, cell: {"connection.url": file})
    cluster = FakeCluster(plan_with({**fault, "patience_seconds": 8}))
    fails = {"stuck": True, "failed": 3}
    record = take(broken(cluster, promote_postgres_2=fails, refuse_tides_abcdef_001=fails))
    assert record.reasons == []
    found = record.recovery
    assert [act.command.split("?")[0].split(",")[0] for act in found.acts] == acts
    assert (found.recovered, found.failed_tasks) == (True, 3)
    assert found.acts[0].seconds >= 8
    assert ("redirect to {'POSTGRES_PORT': '15433'}" in cluster.calls) == acts[0].startswith("PUT")


@pytest.mark.parametrize(("what", "found"), [("pause", [ReasonCode.RAN_DRY]), ("none", [])])
def test_a_fault_for_which_nothing_was_left_to_store_shows_nothing(what: str, found: list[ReasonCode]) -> None:
    record = drained(FakeCluster(plan_with({"what": what, "at_seconds": 15}), rate=9_000), 5_000)
    assert codes(record) == found


@pytest.mark.parametrize("told", [True, False])
def test_records_that_came_late_are_counted_and_none_whose_times_are_not_known(told: bool) -> None:
    cluster = FakeCluster(plan_with({"what": "none"}))
    due_us = np.arange(1_000.0) * 1e6
    late_us = np.where(np.arange(1_000) < 30, 6e6, 1e5)
    late_us[7] = 45.25e6
    cluster.arrived = Arrivals(due_us, due_us + late_us, 1.0) if told else None
    record = take(cluster)
    found = record.recovery.late_records, record.recovery.latest_seconds
    assert found == ((30, 45.25) if told else (None, None))
    assert record.notes == ([] if told else ["it is not known when records came: OSError: the arrivals are gone"])


def test_roles_are_changed_back_also_where_nothing_could_be_promoted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(plan_with({"what": "promote"}))
    promotion = cluster.stack.faults.promotion("postgres")
    promotion.promote = Mock(side_effect=StackError("postgres-2 was not promoted"))
    monkeypatch.setattr(cluster.stack.faults, "promotion", lambda sink: promotion)
    record = take(cluster)
    assert (codes(record), record.recovery) == ([ReasonCode.SERVICE_ERROR], None)
    assert "postgres-2 was not promoted" in record.reasons[0].text
    # No client goes on with the connections of before.
    assert cluster.calls[cluster.calls.index("restore roles") + 1] == "refresh"
    assert "demote postgres" not in cluster.calls


def test_a_pipeline_that_never_recovers_is_audited_all_the_same() -> None:
    class Gone(FakeCluster):
        def restart_failed(self, name: str) -> None:
            self.calls.append("in vain")

    cluster = Gone(plan_with({"what": "refuse", "patience_seconds": 1}), lost=7_000)
    record = take(broken(cluster, refuse_tides_abcdef_001={"stuck": True, "failed": 3}))
    assert (record.reasons, record.recovery.recovered) == ([], False)
    assert cluster.calls.count("in vain") == MOST_DEEDS == len(record.recovery.acts)
    assert record.audit.lost == 7_000
    (cell,) = summarize(expand(cluster.plan, 3), [record])
    assert next(fault.code for fault in cell.faults) == ReasonCode.NOT_RECOVERED
    assert not cell.passed


def test_what_is_written_twice_is_a_figure_and_what_is_lost_a_fault() -> None:
    cluster = FakeCluster(plan_with({"what": "restart", "times": 2}), twice=5)
    record = take(cluster)
    assert cluster.calls.count(f"restart {CONNECTOR}") == 2
    (cell,) = summarize(expand(cluster.plan, 3), [record])
    assert (cell.verdict, cell.audit.duplicates, cell.records_per_second) == ("ok", 5, None)
    (lost,) = summarize(expand(cluster.plan, 3), [take(FakeCluster(cluster.plan, lost=3))])
    assert [fault.code for fault in lost.faults] == [ReasonCode.LOST]


@pytest.mark.parametrize(
    ("fault", "when", "undone"),
    [
        ({"what": "freeze", "target": "sink", "seconds": 60}, "freeze postgres", "thaw postgres"),
        (
            {"what": "delay", "seconds": None},
            *("add latency_upstream to postgres", "remove latency_downstream from postgres"),
        ),
    ],
)
def test_what_was_broken_is_undone_when_the_trial_is_interrupted(
    fault: dict[str, object], when: str, undone: str
) -> None:
    cluster = FakeCluster(plan_with(fault))
    with pytest.raises(Interrupted):
        take(cluster, Leaving(lambda: when in cluster.calls))
    assert undone in cluster.calls
    assert cluster.configs[-1].get("POSTGRES_PORT") == ("4711" if fault["what"] == "delay" else None)


def test_a_table_that_does_not_fit_the_memory_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=10_000_000))
    (reason,) = take(FakeCluster(plan_with({"what": "fill"}))).reasons
    assert reason.code == ReasonCode.DISK_TOO_SMALL
    assert "18,000 records of 512 bytes do not fit a small disk" in reason.text


def test_what_is_left_after_trouble_does_not_go_through_a_proxy_that_is_gone() -> None:
    cluster = FakeCluster(plan_with({"what": "delay"}))

    def refuse(done: str) -> None:
        if done.startswith("remove"):
            raise StackError("the proxy answers no more")

    cluster.breaks = refuse
    record = take(cluster)
    assert codes(record) == [ReasonCode.SERVICE_ERROR]
    assert cluster.calls[cluster.calls.index("reconnect") :] == ["reconnect", "stop", "start", "stop", "audit"]
    assert "POSTGRES_PORT" not in cluster.configs[-1]
    assert record.audit.lost == 0


def test_a_disk_is_filled_again_and_again_and_free_before_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sinkbench.trial.workloads.injection.HOLD_SECONDS", 0.01)
    cluster = FakeCluster(plan_with({"what": "fill", "seconds": 0.5}))
    record = take(broken(cluster, fill_disk={"stuck": True}, free_disk={"stuck": False}))
    assert (record.reasons, record.recovery.target) == ([], "disk of postgres")
    told = [call for call in cluster.calls if "disk" in call or call == "audit"]
    begins, ends = (f"disk of tides_abcdef_001 {what}" for what in ("begins", "ends"))
    assert len(told) >= 6
    assert told == [begins, *["fill disk"] * (len(told) - 5), "free disk", "audit", "end disk", ends]


def test_bad_records_that_the_connector_has_put_aside_are_told_from_good_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def letter(offset: int, value: bytes) -> DeadLetter:
        where = (("topic", b"t"), ("partition", b"0"), ("offset", str(offset).encode()))
        return DeadLetter(None, value, tuple((PREFIX + name, text) for name, text in where))

    good = json.dumps({"bench": {"run": "abcdef_001", "seq": 3}}).encode()
    # One of them twice: its task began again.
    letters = [letter(1, good), letter(2, poison("not json", 0)), letter(3, poison("not json", 1))]

    monkeypatch.setattr("sinkbench.trial.trial.queue_of", lambda own: Queue("dead"))
    monkeypatch.setattr("sinkbench.trial.audit.letters_of", lambda own, queue: [*letters, letters[-1]])
    record = take(FakeCluster(plan_with({"what": "poison", "share": 0.001, "seconds": 0.3})))
    assert (record.recovery.poisoned, record.recovery.poison_dead) == (18, 2)


def by_command(command: str, undo: str) -> FakeCluster:
    return FakeCluster(plan_with({"what": "command", "label": "mine", "command": command, "undo": undo}))


def test_a_command_of_the_users_runs_with_the_trials_names_and_is_undone(tmp_path: Path) -> None:
    told = '"$SINKBENCH_TOPIC $SINKBENCH_CONNECTOR $SINKBENCH_TARGET"'
    record = take(by_command(f"echo {told} > {tmp_path}/broken", f"mv {tmp_path}/broken {tmp_path}/mended"))
    assert record.reasons == []
    assert (record.fault, record.recovery and record.recovery.target) == ("mine", "mine")
    assert (tmp_path / "mended").read_text() == f"{NAME} {CONNECTOR} {NAME}\n"


def test_a_command_that_fails_is_undone_and_tells_its_last_line(tmp_path: Path) -> None:
    (reason,) = take(by_command("echo first; echo broken >&2; exit 3", f"touch {tmp_path}/undone")).reasons
    assert reason.text.endswith("ended with exit code 3: broken")
    assert (tmp_path / "undone").exists()


def test_what_is_not_undone_is_told_also_when_the_trial_is_interrupted(tmp_path: Path) -> None:
    cluster = by_command(f"touch {tmp_path}/broken", "echo stuck; exit 4")
    observer = Leaving((tmp_path / "broken").exists)
    with pytest.raises(Interrupted):
        take(cluster, observer)
    assert observer.phases[-1] == "mine: 'undo' 'echo stuck; exit 4' ended with exit code 4: stuck"


def test_a_command_that_does_not_end_is_killed_with_all_that_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sinkbench.trial.workloads.injection.COMMAND_SECONDS", 0.3)
    (reason,) = take(by_command(f"sleep 70 & echo $! > {tmp_path}/pid; wait", "true")).reasons
    assert "did not end in 0.3 s, and was killed" in reason.text
    with suppress(psutil.NoSuchProcess):
        assert psutil.Process(int((tmp_path / "pid").read_text())).status() == psutil.STATUS_ZOMBIE


def watch(patience: float = 10, ended: float | None = 5) -> FaultWatch:
    return FaultWatch(100, 3, patience, 300, ended)


def read(at: float, stored: int = 100, left: int | None = 0, failed: int = 0, **more: Any) -> Sample:
    return sample(at, stored, uncommitted=left, tasks_failed=failed, tasks_running=3 - failed, in_topic=100, **more)


@pytest.mark.parametrize(
    ("bad", "left", "stored", "over"), [(0, 0, 100, True), (5, 5, 100, True), (5, 6, 100, False), (5, 5, 99, False)]
)
def test_it_is_over_when_all_but_bad_records_is_read_and_nothing_more_is_stored(
    bad: int, left: int, stored: int, over: bool
) -> None:
    found = watch()
    found.bad = bad
    assert [found.see(read(at, stored, left)) for at in (6.0, 8.0, 10.0)] == [None] * 3
    assert (found.see(read(11.5, stored, left)) == End()) is over
    assert found.recovered is over


def test_the_end_of_the_fault_records_not_committed_and_failed_tasks_are_waited_for() -> None:
    found = watch(ended=None)
    assert found.see(read(100)) is None
    assert found.deed(read(100, failed=3, left=50)) is None
    found = watch(patience=1_000)
    assert found.see(read(40, left=3)) is None
    assert found.see(read(50, failed=1)) is None
    assert not found.recovered


def test_failed_tasks_are_restarted_after_a_wait_each_time_and_given_up_in_the_end() -> None:
    deeds, over, found = followed(failed=3)
    assert [at for at, _ in deeds] == [16, 26, 36]
    assert {deed for _, deed in deeds} == {Deed.RESTART_FAILED}
    # Tasks that all failed for good are given up sooner than one that may still move.
    assert (over, followed(failed=2)[1], found.recovered) == (47, 92, False)


def followed(failed: int) -> tuple[list[tuple[int, Deed]], int, FaultWatch]:
    """What is done, and when it is given up, where so many tasks stay failed and nothing is stored."""
    found, deeds = watch(), []
    for at in range(6, 130):
        now = read(float(at), 50, 50, failed=failed)
        if found.see(now) is not None:
            break
        if (deed := found.deed(now)) is not None:
            deeds.append((at, deed))
    return deeds, at, found


def test_a_pipeline_that_stands_still_though_it_runs_is_restarted_later() -> None:
    deeds, _, found = followed(failed=0)
    assert deeds[0] == (62, Deed.RESTART)
    assert not found.recovered


def test_what_dies_after_the_fault_ends_the_trial_with_a_reason() -> None:
    found = watch()
    found.see(read(4.0, 50, 50, cpu_seconds={"kafka": 1.0, "unseen": None}))
    gone = {"kafka": None, "postgres": 1.0, "unseen": None}
    ends = [found.see(read(float(at), 50, 50, cpu_seconds=gone)) for at in range(6, 14)]
    end = next(each for each in ends if each is not None)
    assert (end.reason.code, end.dead) == (ReasonCode.SERVICE_DIED, ("kafka",))


def test_bad_records_are_bad_in_the_way_that_is_asked_for() -> None:
    with pytest.raises(ValueError, match="Unterminated string"):
        json.loads(poison("not json", 1))
    assert "\0" in json.loads(poison("nul", 1))["metadata"]["name"]
    assert json.loads(poison("wrong type", 7))["bench"] == {"run": "poison", "number": 7}
    assert json.loads(poison("wrong type", 7))["metadata"]["lat"] == "north"
    large = json.loads(poison("too large", 7))
    assert len(large["metadata"]["id"]) > 32_766
    assert len(zlib.compress(large["metadata"]["id"].encode())) > 2_704
    assert poison("too large", 7) == poison("too large", 7) != poison("too large", 8)
