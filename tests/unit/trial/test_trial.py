"""One trial from the empty sink to its record, on a cluster without services."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from loadgen.summary import ClockOffset
from sinkbench.analysis.audit import VersionAudit
from sinkbench.analysis.content import Content
from sinkbench.analysis.deadletters import PREFIX, DeadLetter
from sinkbench.analysis.samples import OTHER_CONNECTIONS
from sinkbench.errors import ConnectError, ReasonCode, ServiceError, StackError, TargetError, TrialFailed
from sinkbench.plan.cells import expand
from sinkbench.results import Bloat, TrialRecord
from sinkbench.sinks import SinkBloat, SinkReading
from sinkbench.summary.cells import summarize
from sinkbench.trial.readers import Readers
from sinkbench.trial.trial import run_trial
from sinkbench.trial.values import Others
from sinkbench.trial.workloads.drain import Drain, LiveRescale, take_pilot
from sinkbench.trial.workloads.sustain import Sustain, records_offered
from tests.support.fakecluster import FakeCluster, FakeSink, codes, drained, resources
from tests.support.trials import plan_of

PLAN = plan_of()
LOADED = plan_of(mode="capacity", sustain={"seconds": 20})
CELL = expand(PLAN, 3)[0]
RECORDS = 20_000
CODES = ReasonCode


def offered(cluster: FakeCluster, recover: Callable[[], object] | None = None) -> TrialRecord:
    """Takes the trial of a constant load of 500 records a second."""
    return run_trial(resources(cluster, records=records_offered(LOADED, 500)), Sustain(500), 1, recover)[0]


def test_a_drain_goes_from_an_empty_sink_to_the_audit() -> None:
    cluster = FakeCluster(PLAN, notes_of_target=("added to it",))
    record = drained(cluster)
    assert cluster.calls == ["check", "load", "start", "stop", "audit"]
    assert (record.reasons, record.notes) == ([], ["added to it"])
    assert (record.pool, record.settings, record.acks, record.stalled_seconds) == (None, {}, "all", 0)
    assert (record.records_per_second, record.audit.clean) == (pytest.approx(1_000, rel=0.01), True)
    assert (record.placement, record.window_seconds) == ({"w0": 1, "w1": 1, "w2": 1}, pytest.approx(20, abs=0.6))
    assert (record.cell, record.block, record.trial) == (CELL.key, 1, "abcdef_001")
    assert (record.connector, record.disk_bytes_per_record) == ("a.SinkConnector", None)
    assert record.peak_memory.keys() == {"kafka", "postgres"}
    assert record.total_peak_memory_bytes == pytest.approx(1.1e9, rel=0.01)


@pytest.mark.parametrize(("mute", "name"), [("", ""), ("pgbouncer", "PgBouncer"), ("kafka", "Kafka")])
def test_a_trial_that_stood_still_has_no_rate_and_names_who_did_not_answer(mute: str, name: str) -> None:
    why = "no new record was seen in the sink"
    notes = [f"{why} for 5.2 s, from second 7.8 on"]
    if mute:
        why = f"{name} answered no probe meanwhile"
        notes = [f"{notes[0]}: {why}", f"{name} answered no probe for 5.0 s, from second 8.0 on"]
    record = drained(FakeCluster(PLAN, frozen=(8.0, 13.0), mute=mute))
    (reason,) = record.reasons
    assert (reason.code, reason.text) == (CODES.STALLED, f"it stood still for 25 % of the measured time: {why}")
    assert (record.notes, record.stalled_seconds, record.audit.clean) == (notes, 5.2, True)
    assert (record.bottleneck.component, record.bottleneck.cause) == (mute or "sink", "a stall")
    assert record.bottleneck.evidence.startswith(notes[0])
    (cell,) = summarize([CELL], [record])
    assert (cell.records_per_second, cell.verdict) == (None, f"invalid: {reason.text}")


def test_a_short_standstill_is_a_note() -> None:
    record = drained(FakeCluster(PLAN, frozen=(30.0, 33.5)), records=60_000)
    assert (record.reasons, record.stalled_seconds) == ([], 3.8)
    assert record.bottleneck is not None


def test_a_file_that_no_table_can_be_made_of_ends_more_than_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeSink, "create", Mock(side_effect=TargetError("schema.sql: no table")))
    with pytest.raises(TargetError):
        drained(FakeCluster(PLAN))
    with pytest.raises(TargetError):
        take_pilot(resources(FakeCluster(PLAN)))


def test_a_lost_record_makes_counts_disagree() -> None:
    record = drained(FakeCluster(PLAN, lost=3))
    assert set(codes(record)) == {CODES.COUNTS_DISAGREE}
    assert (record.lost_ranges, record.not_audited) == ("0-2", "")


def test_records_that_are_stored_twice_are_a_note() -> None:
    record = drained(FakeCluster(PLAN, twice=5))
    assert (record.reasons, record.audit.duplicates, record.duplicated_ranges, len(record.notes)) == ([], 5, "0-4", 1)


def test_a_service_that_dies_ends_the_trial_and_nothing_is_asked_of_it_any_more() -> None:
    cluster = FakeCluster(PLAN, dies=5.0)
    record = drained(cluster)
    assert codes(record) == [CODES.SERVICE_DIED]
    assert cluster.calls == ["check", "load", "start"]
    assert (record.audit, record.not_audited) == (None, "the connector did not come to the end of the topic")


def test_a_trial_in_which_a_service_died_goes_on_to_its_end_when_it_is_back_and_is_audited() -> None:
    failing = FakeCluster(PLAN, dies=5.0, failed=2)
    assert drained(failing, failing.revive).audit is not None
    assert failing.calls[-3:] == ["restart", "stop", "audit"]
    cluster = FakeCluster(PLAN, dies=5.0, lost=7)
    record = drained(cluster, cluster.revive)
    assert codes(record) == [CODES.SERVICE_DIED]
    assert cluster.calls == ["check", "load", "start", "reconnect", "stop", "audit"]
    assert (record.audit.lost, record.lost_ranges, record.not_audited) == (7, "0-6", "")
    assert record.reconciliation.consumed == RECORDS
    # Nothing of the rest is in its figures.
    assert (record.records_per_second, record.window_seconds) == (None, None)


def test_an_audit_that_could_not_be_made_is_made_once_more_without_the_connector() -> None:
    class Once(FakeCluster):
        def audit(self) -> None:
            super().audit()
            if self.calls.count("audit") == 1:
                raise ServiceError("the sink timed out")

    cluster = Once(PLAN)
    record = drained(cluster, cluster.revive)
    assert codes(record) == [CODES.SERVICE_ERROR]
    assert record.audit is not None
    assert cluster.calls == ["check", "load", "start", "stop", "audit", "reconnect", "audit"]


def test_a_rest_that_never_ends_is_given_up_and_the_record_says_that_it_was_not_audited() -> None:
    cluster = FakeCluster(PLAN, dies=5.0, rate_after=0.0)
    record = drained(cluster, cluster.revive)
    assert record.audit is None
    assert record.not_audited == "it could not be finished: 15,000 records are left to commit, and there is no progress"
    record = drained(FakeCluster(PLAN, dies=5.0), Mock(side_effect=StackError("kafka: did not start")))
    assert codes(record) == [CODES.SERVICE_DIED]
    assert record.not_audited == "it could not be finished: kafka: did not start"


@pytest.mark.parametrize("refuses", [None, TrialFailed("Kafka took no more")])
def test_a_constant_load_is_audited_after_trouble_only_if_it_was_offered_to_its_end(refuses: Exception | None) -> None:
    cluster = FakeCluster(LOADED, dies=5.0, refuses=refuses)
    record = offered(cluster, cluster.revive)
    assert (record.audit is None) == (refuses is not None)
    if refuses is None:
        assert codes(record) == [CODES.SERVICE_DIED]
    else:
        assert record.not_audited == "the connector did not come to the end of the topic"


def test_failed_tasks_come_with_their_cause() -> None:
    record = drained(FakeCluster(PLAN, failed=1))
    assert codes(record) == [CODES.TASKS_FAILED]
    assert record.reasons[0].figures == {"failed": 1, "tasks": 3}
    assert (record.failed_tasks, record.failure) == (1, "it broke")


def test_what_a_log_says_or_a_sink_answers_to_the_connector_comes_before_what_its_tasks_say() -> None:
    record = drained(FakeCluster(PLAN, failed=1, refused="password authentication failed"))
    assert record.reasons[0].text.startswith("1 of 3 tasks FAILED: password authentication failed: correct the login")
    log = "2026-11-26 10:00:00.000 WARN  [tides-abcdef-001|task-0] Connection to h:1 refused. (a)\n"
    record = drained(FakeCluster(PLAN, failed=1, log=log, refused="not asked"))
    assert record.reasons[0].text.startswith("1 of 3 tasks FAILED: Connection to h:1 refused.: start that service")
    assert drained(FakeCluster(PLAN, refused="not asked")).failure is None


def test_who_has_died_before_its_silence_was_noticed_is_the_reason() -> None:
    # A JVM whose heap is used up does not answer for long before it ends.
    record = drained(FakeCluster(PLAN, silent=True, dead=["connect-2"], exit_code=3))
    assert codes(record) == [CODES.OUT_OF_MEMORY]
    assert record.invalid[0].startswith("connect-2 died, out of memory")
    killed = drained(FakeCluster(PLAN, silent=True, dead=["connect-2"], exit_code=137))
    assert killed.invalid == ["connect-2 died during the trial"]


def test_what_its_own_connector_puts_aside_is_not_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"tasks.max": "3", "errors.deadletterqueue.topic.name": "aside"}
    monkeypatch.setattr(FakeCluster, "config", lambda cluster, *which: config)
    looks = [Others({}, {"aside": 10}), Others({"mine": 3}, {"aside": 9_000, "orders": 8_000})]
    record = drained(FakeCluster(PLAN, meets=looks))
    assert record.reasons == []
    there = ["another connector, mine, ran 3 tasks on these workers", "8,000 records went into the topic orders"]
    assert record.others == there


@pytest.mark.parametrize("unattributed", [0, 2])
def test_connections_of_others_meanwhile_hide_the_peak(unattributed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = SinkReading(0, 7 + unattributed, signs={OTHER_CONNECTIONS: 7})
    monkeypatch.setattr("sinkbench.trial.trial.CLOSING_SECONDS", 0.0)
    monkeypatch.setattr(FakeSink, "read", lambda sink, target: reading)
    monkeypatch.setattr(FakeSink, "exclude_existing", lambda sink: cluster.calls.append("set apart"))
    cluster = FakeCluster(PLAN)
    record = drained(cluster)
    assert (record.reasons, record.connections.others) == ([], unattributed)
    assert record.connections.clients_peak == (None if unattributed else 12)
    assert cluster.calls[2] == "set apart"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"silent": True}, CODES.PROBES_SILENT),
        ({"rate": 1e6}, CODES.TOO_SHORT),
        ({"diverted": "the alias was moved"}, CODES.DIVERTED),
        ({"refuses": TrialFailed("a load generator died")}, CODES.LOAD_FAILED),
        ({"refuses": OSError("gone")}, CODES.SERVICE_ERROR),
    ],
)
def test_what_ends_a_step_early_is_a_reason(fields: dict[str, Any], code: ReasonCode) -> None:
    cluster = FakeCluster(PLAN, **fields)
    assert codes(drained(cluster)) == [code]
    # What connectors write elsewhere is not audited.
    assert ("audit" in cluster.calls) is (code == CODES.TOO_SHORT)


def test_a_connector_that_is_refused_is_a_reason_and_an_interrupt_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(PLAN)
    monkeypatch.setattr(cluster, "start_connector", Mock(side_effect=ConnectError("no such class")))
    assert codes(drained(cluster)) == [CODES.CONNECT_REFUSED]
    with pytest.raises(KeyboardInterrupt):
        drained(FakeCluster(PLAN, refuses=KeyboardInterrupt()))


def test_a_pilot_finds_a_rate_or_says_why_not_and_is_not_audited() -> None:
    cluster = FakeCluster(PLAN)
    found = take_pilot(resources(cluster, records=10**6))
    assert found.records_per_second == pytest.approx(1_000, rel=0.01)
    assert "audit" not in cluster.calls
    found = take_pilot(resources(FakeCluster(PLAN, rate=0.0, failed=3)))
    assert (found.records_per_second, found.problem) == (None, "it broke")


def test_a_constant_load_is_offered_once_the_tasks_run_and_its_latency_may_be_missing() -> None:
    cluster = FakeCluster(LOADED)
    record = offered(cluster)
    assert record.records == 10_000
    assert cluster.calls == ["check", "start", "load", "stop", "audit"]
    assert (record.offered_records_per_second, record.sent_share, record.pilot) == (500, 1.0, False)
    assert (record.latency_ms, record.notes) == (None, ["no latency: OSError: the arrivals are gone"])


def test_a_further_group_that_has_not_read_all_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Readers, "end", lambda readers: [10_000, 9_998])
    record = offered(FakeCluster(LOADED))
    assert record.read_by_readers == [10_000, 9_998]
    assert "a further group had read 9,998 of 10,000 records when all were stored" in record.notes


def test_a_load_generator_whose_clock_is_off_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(LOADED)
    clocks = [
        ClockOffset(loadgen="loadgen-1", ahead_ms=0, within_ms=0.001),
        ClockOffset(loadgen="loadgen-2", ahead_ms=-1002.14, within_ms=0.42),
    ]
    load = cluster.load
    monkeypatch.setattr(cluster, "load", lambda *what, **how: replace(load(*what, **how), clocks=clocks))
    record = offered(cluster)
    assert record.loadgen_clocks == clocks
    assert record.notes[0] == "the clock of loadgen-2 was -1,002.1 ms off (within 0.4 ms); corrected"


def rescaled(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> tuple[FakeCluster, TrialRecord]:
    plan = plan_of(mode="rescale", multiples=[1, 2], trials=5)
    cell = next(cell for cell in expand(plan, 3) if cell.key == "postgres/jdbc@3x1to2")
    monkeypatch.setattr(cluster, "now", lambda: 8.0 + ("set 6" in cluster.calls) * 2.0)
    return cluster, run_trial(resources(cluster, cell), LiveRescale(), 1)[0]


def test_a_running_connector_gets_the_new_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, record = rescaled(FakeCluster(PLAN), monkeypatch)
    assert cluster.calls == ["check", "load", "start", "set 6", "stop", "audit"]
    assert (record.reasons, record.rescale.tasks_before, record.rescale.rebalance_seconds) == ([], 3, 2.0)
    assert (record.records_per_second, record.tasks) == (pytest.approx(1_000, rel=0.05), 6)


def test_a_topic_that_runs_dry_before_the_new_tasks_run_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, record = rescaled(FakeCluster(PLAN, rate=1e6), monkeypatch)
    assert codes(record)[0] == CODES.RAN_DRY
    assert record.reasons[0].text.startswith("the topic ran dry before they ran: 6 tasks after 3")
    # What such a drain has lost counts all the same.
    assert "audit" in cluster.calls


COMPARED = "records that were compared"
NOT_COMPARED = "what is stored was not compared with what was sent"


@pytest.mark.parametrize(
    ("holds", "clean", "note"),
    [
        (Content(64, 60, "data gone"), False, f"60 of 64 {COMPARED} are not stored as they were sent: data gone"),
        (
            Content(900, 2, "", 900, "17, 40"),
            False,
            f"2 of 900 {COMPARED} (bench.seq 17, 40) are not stored as they were sent:"
            " their checksums are not those of their values",
        ),
        # Without a number, which would be another one in each trial.
        (Content(64, unchecked="rows bear none"), True, "no record was compared with its checksum: rows bear none"),
        (None, True, f"{NOT_COMPARED}: the sink does not tell what it holds"),
        (Content(), True, f"{NOT_COMPARED}: the sink keeps no document of the records that were looked for"),
    ],
)
def test_whether_records_are_stored_as_they_were_sent_is_counted_and_noted(
    holds: Content | None, clean: bool, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sinkbench.trial.audit.stored_content", lambda own: holds)
    record = drained(FakeCluster(PLAN))
    assert record.audit.clean is clean
    assert note in record.notes
    assert record.reasons == []
    told = Content() if holds is None else holds
    found = record.audit.compared, record.audit.checked, record.audit.altered, record.altered_ranges
    assert found == (told.compared, told.checked, told.altered, told.altered_ranges)


def versions(*wrong: tuple[str, int]) -> VersionAudit:
    """The audit of a load of changes that leaves three keys, and deletes a fourth; `wrong` are rows in their place."""
    keys, last = ["a", "b", "c", "d"], np.array([7, 8, 9, RECORDS - 1])
    found = VersionAudit(RECORDS, keys, last, np.array([True, True, True, False]))
    rows = list(wrong) or [("a", 7), ("b", 8), ("c", 9)]
    found.add([key for key, _ in rows], np.array([seq for _, seq in rows]))
    return found


def keyed(monkeypatch: pytest.MonkeyPatch, found: VersionAudit, **more: Any) -> TrialRecord:
    """A drain of changes whose audit by key finds this."""
    monkeypatch.setattr("sinkbench.trial.audit.counted", lambda own: found)
    plan = plan_of("postgres/jdbc-upsert", load={"changes": {"inserts": 0.5, "updates": 0.4, "deletes": 0.1}})
    return drained(FakeCluster(plan, **more))


def test_a_load_of_changes_is_audited_by_key_and_its_records_are_all_accounted_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = SinkBloat(0, 3, 10, 8_192), SinkBloat(70, 5, 10, 65_536)
    record = keyed(monkeypatch, versions(), bloats=[before, after])
    assert record.reasons == []
    assert (record.audit.stored, record.audit.superseded, record.audit.stale) == (3, RECORDS - 3, 0)
    assert (record.audit.clean, record.records_per_write) == (True, 500)
    assert record.bloat == Bloat(dead_rows=70, deadlocks=2, rollbacks=0, bytes_before=8_192, bytes_after=65_536)


def test_wrong_keys_make_a_trial_invalid_and_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    record = keyed(monkeypatch, versions(("a", 3), ("c", 9), ("d", 2)))
    assert codes(record) == [CODES.STALE, CODES.MISSING, CODES.NOT_DELETED]
    assert [reason.text for reason in record.reasons][:2] == ["1 key is stale: a", "1 key is missing: b"]
    assert (record.wrong_keys, record.bloat) == ({"stale": ["a"], "missing": ["b"], "not_deleted": ["d"]}, None)


def test_dead_letters_are_told_apart_from_lost_records(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = tuple((PREFIX + name, text) for name, text in (("exception.message", b"no"), ("topic", b"tides")))
    value = json.dumps({"bench": {"run": "abcdef_001", "seq": 3}}).encode()
    monkeypatch.setattr("sinkbench.trial.audit.letters_of", lambda own, queue: [DeadLetter(None, value, headers)])
    record = drained(FakeCluster(PLAN, lost=4))
    assert (record.audit.dead_letters, record.audit.lost, record.lost_ranges) == (1, 3, "0-2")
    assert CODES.DEAD_LETTERS in codes(record)


def test_a_trial_is_set_as_its_plan_says_until_it_is_removed() -> None:
    settings = {"pgbouncer": {"pool_mode": "session", "default_pool_size": "20"}}
    cluster = FakeCluster(PLAN)
    own = resources(cluster, replace(CELL, settings=settings, acks="1"))
    record = run_trial(own, Drain(), 1)[0]
    assert (record.settings, record.acks, cluster.set_to) == (settings, "1", settings)
    own.remove()
    assert cluster.set_to == {}
