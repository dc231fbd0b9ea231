"""A replica of PostgreSQL really takes the place of its primary under a load and gives it back, or never catches up."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from sinkbench.errors import ReasonCode, StackError
from sinkbench.results import TrialRecord
from sinkbench.settings import Settings
from sinkbench.stack.local import LocalStack
from tests.e2e.onetrial import one_trial
from tests.e2e.ownstacks import own_stack
from tests.e2e.races import left_behind
from tests.support.observers import At
from tests.support.waiting import until

OFFSET = 2500
TOPOLOGY = """
kafka: {heap: 512m}
connect: {nodes: 1, heap: 512m}
elasticsearch: {heap: 512m}
postgres: {nodes: 2, synchronous: true}
"""
URL = "jdbc:postgresql://${env:POSTGRES_HOSTS}/${env:POSTGRES_DB}?targetServerType=primary&stringtype=unspecified"
ALL_HOSTS = f'{{pipeline: postgres/jdbc, label: all hosts, overrides: {{connection.url: "{URL}"}}}}'
PROMOTED = """
mode: faults
pipelines: [PIPELINE]
sustain: {records_per_second: 500, seconds: 12}
faults:
  - {what: promote, at_seconds: 4, seconds: 2, patience_seconds: 2}
"""
RECORDS = 6_000
ROLES = "SELECT application_name, state, sync_state FROM pg_stat_replication"
IN_STEP = [("postgres-2", "streaming", "sync")]
# A commit waits until the replica shows it.
APPLIED = "{pipeline: postgres/jdbc, label: applied, settings: {postgres: {synchronous_commit: remote_apply}}}"
WAITING = f"{URL}&options=-c%20synchronous_commit=remote_apply"
APPLIED_BY_URL = f'{{pipeline: postgres/jdbc, label: by url, overrides: {{connection.url: "{WAITING}"}}}}'
DRAINED = """
pipelines: [PIPELINE]
trials: 1
drain: {compiling_percent: 100, stall_seconds: 5}
"""
UNAPPLIED = "SELECT pg_is_wal_replay_paused(), pg_last_wal_receive_lsn() - pg_last_wal_replay_lsn()"

pytestmark = [pytest.mark.long, pytest.mark.rare]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack with a replica that is in sync."""
    topology = tmp_path_factory.mktemp("topology") / "pair.yaml"
    topology.write_text(TOPOLOGY)
    with own_stack("stack with a replica", OFFSET, TOPOLOGY=str(topology)) as stack:
        stack.up(lambda line: None)
        yield stack


@pytest.fixture(autouse=True)
def usual_roles(pair: LocalStack) -> Iterator[None]:
    """Every test finds the replica in step, and leaves it so."""
    until(lambda: primary_of(pair) == (first_port(pair.settings), IN_STEP))
    yield
    until(lambda: primary_of(pair) == (first_port(pair.settings), IN_STEP))


def primary_of(stack: LocalStack) -> tuple[int, list[tuple[str, str, str]]]:
    """The port of the server that takes writes, and what follows it."""
    with psycopg.connect(stack.endpoints.sinks["postgres"].address) as connection:
        return connection.info.port, connection.execute(ROLES).fetchall()


def first_port(settings: Settings) -> int:
    return settings.port("postgres_port")


def check_recovered(record: TrialRecord) -> None:
    assert record.reasons == []
    assert (record.audit.lost, record.audit.stored >= RECORDS) == (0, True)
    assert record.recovery.recovered
    assert record.recovery.target == "primary of postgres"


def ask_replica(stack: LocalStack, question: str) -> list[tuple[bool, int]]:
    with psycopg.connect(stack.endpoints.sinks["postgres"].nodes["postgres-2"].address, autocommit=True) as connection:
        return connection.execute(question.encode()).fetchall()


def methods(record: TrialRecord) -> set[str]:
    """What was asked of Connect by hand, by the methods of HTTP."""
    return {act.command.partition(" ")[0] for act in record.recovery.acts}


@contextmanager
def without_slot(stack: LocalStack) -> Iterator[None]:
    """The replica is down, and the primary does not know it any more."""
    stack.faults.do("stop", "postgres-2")
    with psycopg.connect(stack.endpoints.sinks["postgres"].address, autocommit=True) as primary:
        until(lambda: primary.execute("SELECT FROM pg_replication_slots WHERE active").fetchall() == [])
        primary.execute("SELECT pg_drop_replication_slot('postgres_2')")
        try:
            yield
        finally:
            primary.execute("SELECT pg_create_physical_replication_slot('postgres_2', true)")
            stack.faults.do("stop", "postgres-2")
            stack.faults.do("start", "postgres-2")


def test_a_replica_takes_over_without_a_loss_and_all_is_as_before_afterwards(pair: LocalStack, tmp_path: Path) -> None:
    record, _ = one_trial(pair, tmp_path, PROMOTED.replace("PIPELINE", ALL_HOSTS))
    check_recovered(record)
    # The driver finds the new primary itself: a task that has FAILED is started again, and no more.
    assert methods(record) <= {"POST"}
    assert not [note for note in record.notes if note.startswith("in the end")]
    assert primary_of(pair) == (first_port(pair.settings), IN_STEP)

    # As if the controller had been killed: what was the primary is dead, and `up` changes all back.
    pair.faults.promotion("postgres").promote()
    with psycopg.connect(pair.endpoints.sinks["postgres"].address) as connection:
        assert connection.info.port == first_port(pair.settings) + 1
    assert {state.name for state in pair.services() if state.state != "running"} == {"postgres"}
    # It is nobody's primary any more: it comes back as a replica, by whomever it is started.
    with suppress(StackError):
        pair.faults.do("start", "postgres")
    with psycopg.connect(pair.endpoints.sinks["postgres"].nodes["postgres"].address) as connection:
        assert connection.execute("SELECT pg_is_in_recovery()").fetchall() == [(True,)]
    pair.up(lambda line: None)
    assert primary_of(pair) == (first_port(pair.settings), IN_STEP)


@pytest.mark.parametrize(
    ("pipeline", "told"),
    [
        # Its only address is that of the old primary, and no restart leads it elsewhere.
        ("{pipeline: postgres/jdbc, label: one host}", True),
        ("{pipeline: postgres/jdbc-pgbouncer, label: pgbouncer}", False),
    ],
)
def test_one_address_does_not_follow_a_promoted_replica_and_pgbouncer_does(
    pair: LocalStack, tmp_path: Path, pipeline: str, told: bool
) -> None:
    record, _ = one_trial(pair, tmp_path, PROMOTED.replace("PIPELINE", pipeline))
    check_recovered(record)
    # To give a connector another address is the only act that is a PUT.
    assert ("PUT" in methods(record)) is told


def test_a_replica_that_has_applied_nothing_of_the_load_takes_over_without_a_loss(
    pair: LocalStack, tmp_path: Path
) -> None:
    seen: list[tuple[bool, int]] = []
    # Promotion ends the pause.
    observer = At(
        offering=lambda: ask_replica(pair, "SELECT pg_wal_replay_pause()"),
        promote=lambda: seen.extend(ask_replica(pair, UNAPPLIED)),
    )
    record, _ = one_trial(pair, tmp_path, PROMOTED.replace("PIPELINE", ALL_HOSTS), observer=observer)
    ((paused, unapplied_bytes),) = seen
    assert paused
    assert unapplied_bytes > 0
    check_recovered(record)


@pytest.mark.parametrize("pipeline", [APPLIED, APPLIED_BY_URL], ids=["settings", "url"])
def test_a_replica_that_never_applies_what_commits_wait_for_makes_the_trial_invalid_and_hangs_nothing(
    pair: LocalStack, tmp_path: Path, pipeline: str
) -> None:
    try:
        ask_replica(pair, "SELECT pg_wal_replay_pause()")
        record, _ = one_trial(pair, tmp_path, DRAINED.replace("PIPELINE", pipeline), RECORDS)
    finally:
        ask_replica(pair, "SELECT pg_wal_replay_resume()")
    (reason,) = record.reasons
    assert reason.code == ReasonCode.STANDBY_NOT_IN_SYNC
    assert reason.figures == {"in_sync": 0, "waited_for": 1, "standbys": 1}
    assert "pg_wal_replay_resume()" in reason.text
    assert (record.audit, record.not_audited) == (None, "the connector was not started")
    assert left_behind(pair) == []
    # What commits wait for is there again.
    record, _ = one_trial(pair, tmp_path, DRAINED.replace("PIPELINE", pipeline), RECORDS)
    assert {each.code for each in record.reasons} <= {ReasonCode.TOO_SHORT}
    assert (record.audit.stored, record.audit.lost) == (RECORDS, 0)


def test_a_replica_that_never_streams_is_not_ready_and_a_trial_without_it_is_invalid(
    pair: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with without_slot(pair):
        with monkeypatch.context() as patch:
            patch.setattr("sinkbench.stack.local.READY_SECONDS", 5.0)
            with pytest.raises(StackError, match=r"^postgres-2 was not ready in 5 s: it does not stream"):
                pair.faults.do("start", "postgres-2")
        record, _ = one_trial(pair, tmp_path, DRAINED.replace("PIPELINE", "postgres/jdbc"), RECORDS)
    (reason,) = record.reasons
    assert reason.code == ReasonCode.STANDBY_NOT_IN_SYNC
    assert reason.figures == {"in_sync": 0, "waited_for": 1, "standbys": 0}
    assert (record.audit, record.not_audited) == (None, "the connector was not started")
