"""What becomes of pipelines while a service is really killed, frozen or refuses."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sinkbench.errors import ServiceError, StackError
from sinkbench.plan.cells import expand
from sinkbench.results import TrialRecord
from sinkbench.runs.store import read_summary
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Destination, Refused, open_sink, open_writer, sink_kind
from sinkbench.stack.assembly import checks
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.observer import Observer
from sinkbench.trial.resources import Resources, create_target
from sinkbench.trial.workload import disk_to_fill, proxied_network
from tests.e2e.hands import with_target
from tests.e2e.onetrial import NAMES, one_trial
from tests.e2e.races import SOON_MISSED, in_a_drain, left_behind
from tests.support.commands import Run, refuses, succeeded
from tests.support.trials import plan_in
from tests.support.waiting import until

PLAN = """
mode: faults
pipelines: [postgres/jdbc]
trials: 1
sustain: {records_per_second: 1000, seconds: 10}
drain: {pilot_seconds: 1, warm_up_seconds: 2, compiling_percent: 100}
faults:
  - {what: freeze, target: sink, at_seconds: 3, seconds: 4}
  - {what: refuse, at_seconds: 3, seconds: 1, patience_seconds: 4}
"""
# What a plan for clusters of others would do by ssh.
BY_HAND = """
  - what: command
    label: by hand
    command: curl -fsS -X POST "CONNECT/connectors/$SINKBENCH_CONNECTOR/restart?includeTasks=true"
    undo: curl -fsS CONNECT/connectors > MENDED
    at_seconds: 3
    seconds: 1
"""


@pytest.mark.long
@pytest.mark.rare
def test_a_sink_that_hangs_one_that_refuses_and_a_restart_by_hand_lose_nothing_and_leave_nothing(
    sinkbench: Run, stack: LocalStack, tmp_path: Path
) -> None:
    by_hand = BY_HAND.replace("CONNECT/", f"{stack.endpoints.connect['connect-1']}/")
    (tmp_path / "mine.yaml").write_text(PLAN + by_hand.replace("MENDED", str(tmp_path / "mended")).lstrip("\n"))
    done = succeeded(sinkbench("race", "mine.yaml"))
    assert "this plan runs commands of its own for 'by hand'" in done.stdout
    assert "tides-" in (tmp_path / "mended").read_text()
    frozen, refused, restarted = read_summary(tmp_path / "results" / "latest").cells
    for cell in (frozen, refused, restarted):
        assert cell.passed, cell.verdict
        assert cell.audit.lost == 0
        assert cell.recovery.recovered
        assert cell.recovery.connections_left == 0
        assert cell.records_per_second is None
    # Nothing is stored meanwhile, and Connect knows nothing of it.
    assert frozen.recovery.target == "postgres"
    assert frozen.recovery.standstill_seconds > 3
    assert frozen.recovery.stuck_seconds > 2
    assert frozen.recovery.acts == []
    # The connector gives up, and Connect starts no FAILED task again.
    assert refused.recovery.failed_tasks > 0
    assert [act.command.partition("?")[2] for act in refused.recovery.acts] == ["includeTasks=true&onlyFailed=true"]
    assert re.search(r"^refuse sink +(each once|dupl\. [\d,]+)$", done.stdout, re.MULTILINE), done.stdout
    assert all(state.state == "running" for state in stack.services())
    assert left_behind(stack) == []


def own_of(stack: LocalStack, folder: Path, text: str, which: int = 0) -> Resources:
    """What a trial of a thousand records of one of the plan's cells has on a stack; its cluster is to be closed."""
    plan = plan_in(folder, text)
    return Resources(Cluster(stack, plan, CHECKOUT), expand(plan, stack.workers)[which], NAMES, 1_000, Observer())


def check_recovered(stack: LocalStack, record: TrialRecord, target: str) -> None:
    """Nothing is lost of a trial, nothing left of it, and all services run."""
    assert record.reasons == []
    assert record.recovery.recovered, record
    assert record.recovery.target.startswith(target)
    assert record.audit.lost == 0
    assert all(state.state == "running" for state in stack.services())
    assert left_behind(stack) == []
    assert not (stack.home / "small-disk").is_mount()


OF_NETWORK = """
mode: faults
probe_interval_ms: 150
pipelines: [postgres/jdbc]
trials: 1
sustain: {records_per_second: 1000, seconds: 7}
faults:
  - {what: delay, milliseconds: 10, at_seconds: 3, seconds: null}
  - {what: cut, at_seconds: 3, seconds: 1.5, patience_seconds: 1}
"""
# Runs the proxy until it is killed.
WITH_PROXY = """
import time
from sinkbench.settings import load_settings
from sinkbench.stack.local import LocalStack
with LocalStack(load_settings()).faults.proxies.run() as proxy:
    print(*proxy.stand_before("postgres", "127.0.0.1:1"), flush=True)
    time.sleep(60)
"""


def proxies() -> list[str]:
    """What listens for toxiproxy's clients now, on the whole machine."""
    return [each.name() for each in psutil.process_iter() if each.name().startswith("toxiproxy")]


@pytest.fixture
def proxied(stack: LocalStack) -> Iterator[LocalStack]:
    """The stack, with a proxy that was built; none runs in the end."""
    try:
        stack.faults.proxies.check()
    except StackError as missing:
        pytest.skip(str(missing))
    # Go needs up to a minute, once for a checkout.
    stack.faults.proxies.prepare(print)
    yield stack
    assert proxies() == []


def test_faults_of_services_are_refused_on_clusters_of_others(sinkbench: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(PLAN)
    clusters = {"kafka": {"bootstrap": "127.0.0.1:1"}, "connect": {"urls": ["http://127.0.0.1:1"], "workers": 3}}
    (tmp_path / "clusters.yaml").write_text(json.dumps({**clusters, "postgres": {"dsn": "host=127.0.0.1 port=1"}}))
    done = refuses(sinkbench("race", "mine.yaml", "--stack", "clusters.yaml"))
    assert "mine.yaml:8: 'freeze sink' cannot be done to" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_delay_is_in_every_round_trip_to_the_sink(proxied: LocalStack, tmp_path: Path) -> None:
    own = own_of(proxied, tmp_path, OF_NETWORK)
    with closing(own.cluster), proxied_network(own) as network:
        where = re.search(r"//([^:/]+):(\d+)/", own.config["connection.url"])
        parts = conninfo_to_dict(proxied.endpoints.sinks["postgres"].address)
        assert parts["port"] != where[2]
        with psycopg.connect(make_conninfo("", **{**parts, "host": where[1], "port": where[2]})) as connection:

            def round_trip() -> float:
                began = time.monotonic()
                connection.execute("SELECT 1")
                return time.monotonic() - began

            direct = [round_trip() for _ in range(9)]
            with network.broken(own.cell.fault):
                late = [round_trip() for _ in range(9)]
            after = [round_trip() for _ in range(9)]
    assert min(late) >= 0.02
    assert min(direct + after) < min(late)


@pytest.mark.long
def test_connections_that_are_cut_lose_nothing(proxied: LocalStack, tmp_path: Path) -> None:
    record, _ = one_trial(proxied, tmp_path, OF_NETWORK, cell=1)
    check_recovered(proxied, record, "network to postgres")
    assert record.recovery.standstill_seconds
    assert record.recovery.connections_left == 0


def test_a_proxy_ends_with_a_controller_that_is_killed(proxied: LocalStack) -> None:
    with subprocess.Popen([sys.executable, "-c", WITH_PROXY], stdout=subprocess.PIPE) as controller:
        assert controller.stdout.readline().startswith(b"127.0.0.1 ")
        (proxy,) = psutil.Process(controller.pid).children()
        controller.send_signal(signal.SIGKILL)
    assert psutil.wait_procs([proxy], timeout=10)[1] == []


FULL = """
mode: faults
probe_interval_ms: 150
pipelines: [postgres/jdbc, elasticsearch/camel-bulk]
trials: 1
sustain: {records_per_second: 1000, seconds: 8}
faults:
  - {what: fill, at_seconds: 3, seconds: 1.5, patience_seconds: 1}
"""
RECORD = json.dumps({"bench": {"run": "5eeded_001", "seq": 0}, "filler": "x" * 2_000}).encode()


@pytest.fixture
def mounting(stack: LocalStack) -> LocalStack:
    """The stack of somebody who may mount a disk."""
    try:
        stack.faults.small_disks("postgres").check()
    except StackError as missing:
        pytest.skip(str(missing))
    return stack


@pytest.mark.parametrize(("which", "said"), [(0, "No space left on device"), (1, "flood-stage watermark")])
def test_a_full_disk_takes_no_record_until_there_is_room(
    mounting: LocalStack, tmp_path: Path, which: int, said: str
) -> None:
    own, target = own_of(mounting, tmp_path, FULL, which), NAMES.target
    sink = own.cell.sink
    to = Destination(sink, next(iter(sink_kind(sink).writers)), target, mounting.endpoints.sinks[sink])
    with closing(own.cluster):
        try:
            create_target(own)
            # A controller that is killed leaves its disk full, and whoever comes next drops its table.
            killed = disk_to_fill(own)
            killed.__enter__().fill()
            own.remove()
            create_target(own)
            with disk_to_fill(own) as disk, closing(open_writer(to)) as writer:
                batch = writer.batch([RECORD] * 50)
                writer.write(batch)
                disk.fill()
                with pytest.raises((Refused, ServiceError), match=said):
                    writer.write(batch)
                disk.free()
                writer.write(batch)
            own.sink.settle(target)
            assert own.sink.count(target) == 100
        finally:
            own.remove()
    assert left_behind(mounting) == []
    assert not (mounting.home / "small-disk").is_mount()


def test_a_postgres_that_dies_while_its_disk_is_full_starts_again_and_has_its_table(
    mounting: LocalStack, tmp_path: Path
) -> None:
    own, target = own_of(mounting, tmp_path, FULL), NAMES.target
    to = Destination("postgres", "COPY", target, mounting.endpoints.sinks["postgres"])
    with closing(own.cluster):
        create_target(own)
        try:
            left = ExitStack()
            disk = left.enter_context(disk_to_fill(own))
            with closing(open_writer(to)) as writer:
                writer.write(writer.batch([RECORD] * 50))
            disk.fill()
            mounting.faults.do("kill", "postgres")
            with pytest.raises(ServiceError):
                left.close()
            mounting.up(lambda line: None)
            own.cluster.refresh()
            assert own.sink.count(target) == 50
            # It is used again, and gone in the end.
            with disk_to_fill(own):
                pass
            assert own.sink.count(target) == 50
        finally:
            mounting.up(lambda line: None)
            own.cluster.refresh()
            own.remove()
    assert left_behind(mounting) == []
    assert not (mounting.home / "small-disk").is_mount()


def test_postgres_refuses_for_each_reason_and_takes_records_again(stack: LocalStack) -> None:
    address, name = stack.endpoints.sinks["postgres"].address, NAMES.target
    insert = f"INSERT INTO {name} (payload) VALUES ('{{}}')"  # noqa: S608 - of a name of ours

    def write() -> None:
        with psycopg.connect(address, autocommit=True) as client:
            client.execute(insert)

    with with_target(open_sink("postgres", stack.endpoints, CHECKOUT), name) as sink:
        errors = {"read only": psycopg.errors.ReadOnlySqlTransaction, "no right": psycopg.errors.InsufficientPrivilege}
        for why, error in errors.items():
            with psycopg.connect(address, autocommit=True) as open_before:
                sink.capabilities.refusing.refuse(name, why)
                with pytest.raises(error):
                    write()
                with pytest.raises(error):
                    open_before.execute(insert)
                sink.capabilities.refusing.accept(name)
                write()
        with psycopg.connect(address, autocommit=True) as open_before:
            sink.capabilities.refusing.refuse(name, "no connection")
            sink.capabilities.refusing.refuse(name, "no connection")
            with pytest.raises(psycopg.OperationalError, match="too many clients already"):
                write()
            with pytest.raises(psycopg.errors.AdminShutdown):
                open_before.execute(insert)
            sink.capabilities.refusing.accept(name)
        # The server may take a moment until it has seen all of them go.
        until(lambda: write() or True, 10, passing=(psycopg.OperationalError,))
        assert sink.count(name) == 3


@pytest.mark.long
def test_a_table_whose_disk_was_full_has_every_record_in_the_end(mounting: LocalStack, tmp_path: Path) -> None:
    record, _ = one_trial(mounting, tmp_path, FULL)
    check_recovered(mounting, record, "disk of postgres")
    assert record.recovery.failed_tasks


def test_what_a_killed_controller_has_left_frozen_goes_on_with_the_next_up(stack: LocalStack) -> None:
    check = checks(stack.endpoints)["postgres"]
    stack.faults.do("freeze", "postgres")
    assert check() is not None
    stack.up(lambda line: None)
    assert check() is None


@pytest.mark.long
@pytest.mark.rare
def test_a_worker_that_is_killed_takes_its_tasks_back(stack: LocalStack, tmp_path: Path) -> None:
    plan, _, _ = PLAN.replace("postgres/jdbc", SOON_MISSED).partition("faults:\n")
    kill = "faults:\n  - {what: kill, target: worker, at_seconds: 3, seconds: 2}\n"
    record, _ = one_trial(stack, tmp_path, plan + kill)
    check_recovered(stack, record, "connect-")
    assert record.recovery.rate_seconds != 0


@pytest.mark.long
@pytest.mark.rare
def test_what_a_group_has_committed_is_known_again_after_its_broker_was_killed(stack: LocalStack) -> None:
    asked, topic, group = Kafka(stack.endpoints.kafka, timeout_seconds=2), "committed_by_hand", "connect-by-hand"
    asked.create_topic(topic, 2)
    committing = Consumer({"bootstrap.servers": stack.endpoints.kafka, "group.id": group})
    committing.commit(offsets=[TopicPartition(topic, number, 7) for number in range(2)], asynchronous=False)
    committing.close()
    try:
        assert asked.committed(group, topic) == 14
        stack.faults.do("kill", "kafka")
        for _ in range(2):
            with pytest.raises(ServiceError):
                asked.committed(group, topic)
        stack.faults.do("start", "kafka")
        assert until(lambda: asked.committed(group, topic), 20, passing=(ServiceError,)) == 14
    finally:
        stack.up(lambda line: None)
        asked.delete_group(group)
        asked.delete_topic(topic)
    # Workers are a while without their group, too.
    ready = checks(stack.endpoints)
    until(lambda: all(ready[name]() is None for name in stack.endpoints.connect))


ASKS_FOR_GROUPS = """
import contextlib, sys, threading, time
from sinkbench.errors import ServiceError
from sinkbench.services import kafka as module

module.TIMEOUT_SECONDS = 1.0

def ask():
    kafka = module.Kafka(sys.argv[1], {"socket.timeout.ms": "1000"}, 1.0)
    for ask in (kafka.is_empty, kafka.members) * 10:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            with contextlib.suppress(ServiceError):
                ask("nobodys")

for _ in range(6):
    threading.Thread(target=ask).start()
"""


@pytest.mark.long
@pytest.mark.rare
def test_a_broker_that_hangs_does_not_end_the_process_that_asks_for_groups(stack: LocalStack) -> None:
    with subprocess.Popen([sys.executable, "-c", ASKS_FOR_GROUPS, stack.endpoints.kafka]) as asking:
        while asking.poll() is None:
            for deed in ("freeze", "thaw"):
                stack.faults.do(deed, "kafka")
                time.sleep(1.3)
    assert asking.returncode == 0


@pytest.mark.long
@pytest.mark.rare
def test_a_worker_that_is_killed_in_a_drain_loses_nothing_and_what_replaces_itself_is_there_once(
    stack: LocalStack, tmp_path: Path
) -> None:
    pipeline = "pipeline: postgres/jdbc-idempotent, target: postgres/targets/positions.sql"
    record, samples = one_trial(stack, tmp_path, in_a_drain(pipeline, "kill", 1))
    check_recovered(stack, record, "connect-")
    assert record.backlog_records == record.records
    # All of them were there before anything was stored.
    assert {each.in_topic for each in samples} - {None} == {record.records}
    found, audit = record.recovery, record.audit
    # Of the sample that it began with, to the thousandth of a second that is kept.
    at_fault = max(each.stored or 0 for each in samples if each.seconds <= found.began_seconds + 0.001)
    assert 0.2 * record.records <= at_fault < record.records
    assert (found.rate_seconds, found.lag_seconds, found.late_records) == (None, None, None)
    assert (audit.stored, audit.duplicates) == (record.records, 0)


POISONED = """
mode: faults
probe_interval_ms: 150
pipelines: [{pipeline: PIPELINE, target: postgres/targets/positions.sql}]
sustain: {records_per_second: 1000, seconds: 6}
faults:
  - {what: poison, records: RECORDS, share: 0.01, at_seconds: 3, seconds: 2, patience_seconds: 1}
"""


@pytest.mark.long
@pytest.mark.parametrize("records", ["not json", pytest.param("nul", marks=pytest.mark.rare)])
def test_what_postgresql_refuses_is_a_dead_letter_where_each_record_is_checked_before(
    stack: LocalStack, tmp_path: Path, records: str
) -> None:
    plan = POISONED.replace("PIPELINE", "postgres/jdbc-checked").replace("RECORDS", records)
    record, _ = one_trial(stack, tmp_path, plan)
    found, audit = record.recovery, record.audit
    assert audit is not None, record.reasons
    assert (found.poisoned, found.poison_stored, found.poison_dead) == (60, 0, 60)
    assert (audit.lost, audit.duplicates, audit.foreign, audit.dead_letters) == (0, 0, 0, 0)
    assert (found.recovered, found.acts, found.failed_tasks) == (True, [], 0)


@pytest.mark.long
def test_a_record_that_postgresql_refuses_stops_a_pipeline_that_checks_none(stack: LocalStack, tmp_path: Path) -> None:
    plan = POISONED.replace("PIPELINE", "postgres/jdbc-idempotent").replace("RECORDS", "nul")
    record, _ = one_trial(stack, tmp_path, plan)
    assert not record.recovery.recovered
    assert record.recovery.poison_dead == 0
    assert record.audit.lost > 0
