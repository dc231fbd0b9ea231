"""What limits a trial: every rule where it must speak, where it must not, and what it is given of the samples."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.samples import Sample
from sinkbench.analysis.stalls import Stall
from sinkbench.bottleneck import rules
from sinkbench.bottleneck.evidence import Circumstances, Evidence, evidence_of
from sinkbench.bottleneck.rules import NOT_IDENTIFIED, ranks, shared_cause
from sinkbench.bottleneck.rules import cause_of as verdict_of
from sinkbench.results import Bottleneck
from sinkbench.sinks.elasticsearch import nodes as elasticsearch
from sinkbench.sinks.postgres import clients as postgres
from sinkbench.sinks.postgres.service import PGBOUNCER, POSTGRES
from tests.support.present import present
from tests.support.trials import sample as read_sample

OF_SINKS = (*postgres.RULES, *elasticsearch.RULES)
ALL = [rule for rank in ranks(OF_SINKS) for rule in rank]
AROUND = {each.name for each in fields(Circumstances)}


def cause_of(evidence: Evidence | None) -> Bottleneck | None:
    """The verdict with the rules of both sinks."""
    return verdict_of(evidence, OF_SINKS)


def seen(**given: Any) -> Evidence:
    """Evidence of three tasks, with what differs."""
    cores = {each.name: each.usable_cores(3) for each in (POSTGRES, PGBOUNCER) if each.usable_cores}
    around = {"tasks": 3} | {key: given.pop(key) for key in AROUND & given.keys()}
    parts = {key: given.pop(key) for key in {"rises", "cores", "stalls"} & given.keys()}
    known = {"seconds": 10.0, "rises": {}, "cores": {}, "machine_busy": given.pop("busy", None), "levels": given}
    return Evidence(Circumstances(sink="postgres", usable_cores=cores, **around), **{**known, **parts})


HEALTHY = seen(
    **{"machine_cores": 4, "busy": 0.6, "placement": {"connect-1": 1, "connect-2": 1, "connect-3": 1}},
    cores={"connect-1": 0.3, "connect-2": 0.3, "connect-3": 0.4, "postgres": 1.0, "pgbouncer": 0.2, "kafka": 0.1},
    rises={"es_write_rejected": 0.0, "es_refresh_seconds": 0.02, "es_indexing_throttled_seconds": 0.0},
    **{"records_per_write": 498.0, "connection_limit": 100, "offered_share": 1.0},
    **{"partitions": 24, "partitions_with_records": 24},
    **{"tasks_put_share": 0.6, "tasks_poll_share": 0.3, "tasks_put_ms": 5.0, "tasks_records_per_put": 500.0},
    **{"tasks_busiest_share": 0.35, "tasks_without_records": 0.0, "tasks_without_partitions": 0.0},
    **{"pg_wait_lock": 0.0, "pg_wait_wal": 0.2, "pg_wait_io": 0.1, "pg_wait_lwlock": 0.1, "pg_wait_client": 0.4},
    **{"pool_waiting": 0.1, "pool_max_wait_seconds": 0.0},
    **{"es_write_queue": 0.5, "es_pressure_bytes": 1e6, "es_pressure_limit_bytes": 1e8},
)

# The rule, what it must speak about, its component and words of its evidence, and what is just not enough for it.
CASES: list[tuple[rules.Rule, Evidence, str, str, Evidence]] = [
    (rules.connections_used_up, seen(used_connections=97, connection_limit=100, failed_tasks=2), "postgres",
     "97 of 100 connections open, 2 of 3 tasks FAILED",
     seen(used_connections=97, connection_limit=100, failed_tasks=0)),
    # That they found no connection left says more.
    (rules.failed_tasks, seen(failed_tasks=2), "connect",
     "2 of 3 tasks FAILED, and left their partitions to the others",
     seen(used_connections=97, connection_limit=100, failed_tasks=2)),
    (rules.generator, seen(offered_share=0.98), "generator", "98.0 % of the load was sent in time",
     seen(offered_share=0.995)),
    (rules.request_a_record,
     seen(tasks_put_share=0.97, records_per_write=1.0, tasks_put_ms=900.0, tasks_records_per_put=500.0), "connector",
     "one request a record, 1.8 ms each; 97 % of the tasks' time", seen(tasks_put_share=0.46, records_per_write=1.0)),
    (rules.machine_saturated,
     seen(busy=0.97, machine_cores=2, cores={"connect-1": 0.4, "connect-2": 0.4, "postgres": 0.7}), "machine",
     "its 2 cores are 97 % busy: connect 0.8 cores, other services 0.7, what is no part of the stack 0.4",
     seen(busy=0.86, machine_cores=2)),
    (rules.service_saturated, seen(cores={"pgbouncer": 0.95}), "pgbouncer", "only thread", seen(cores={"kafka": 3.0})),
    (rules.service_saturated, seen(cores={"elasticsearch": 1.9}, cpu_limits={"elasticsearch": 2.0}), "elasticsearch",
     "elasticsearch uses 1.9 of the 2 cores that it is allowed",
     seen(cores={"elasticsearch": 1.7}, cpu_limits={"elasticsearch": 2.0})),
    (rules.service_saturated,
     seen(cores={"connect-2": 0.93}, placement={"connect-1": 1, "connect-2": 1, "connect-3": 1}), "connect",
     "connect-2 uses 0.93 of the 1 core that its tasks can use",
     seen(cores={"connect-2": 0.93}, placement={"connect-1": 1, "connect-2": 2})),
    (rules.service_saturated, seen(cores={"postgres": 2.9}), "postgres",
     "2.9 of the 3 cores that a process for each task can use", seen(cores={"postgres": 2.0})),
    (postgres.lock_waits, seen(pg_wait_lock=1.5), "postgres", "50 % of the tasks' time", seen(pg_wait_lock=0.8)),
    (postgres.pool_waits, seen(pool_waiting=2.4), "pgbouncer", "2.4 clients wait", seen(pool_waiting=0.8)),
    (postgres.wal_waits, seen(pg_wait_wal=1.2), "postgres", "40 % of the tasks' time",
     seen(pg_wait_wal=1.2, tasks_put_share=0.2)),
    (postgres.waits_for_disk, seen(pg_wait_io=0.9, pg_wait_lwlock=0.3), "postgres",
     "30 % of the tasks' time PostgreSQL waits for its files, 10 %", seen(pg_wait_io=0.5, pg_wait_lwlock=0.3)),
    (postgres.waits_for_client, seen(pg_wait_client=1.8), "connect", "60 %", seen(pg_wait_client=1.4)),
    # Open transactions of others are not the connector's.
    (postgres.waits_for_client, seen(pg_wait_client=1.8), "connect", "60 %", seen(pg_wait_client=9.3)),
    (elasticsearch.write_queue, seen(rises={"es_write_rejected": 0.2}, es_write_queue=9.0), "elasticsearch",
     "2 writes rejected, 9.0 queued", seen(rises={"es_write_rejected": 0.0}, es_write_queue=2.9)),
    (elasticsearch.write_queue, seen(es_pressure_bytes=9e7, es_pressure_limit_bytes=1e8), "elasticsearch",
     "90 % of its memory for writes", seen(es_pressure_bytes=7e7, es_pressure_limit_bytes=1e8)),
    (elasticsearch.merges_throttle, seen(rises={"es_indexing_throttled_seconds": 0.4}), "elasticsearch",
     "held back for merges 40 % of the time", seen(rises={"es_indexing_throttled_seconds": 0.05})),
    (elasticsearch.refreshes, seen(rises={"es_refresh_seconds": 0.5}), "elasticsearch", "refreshing 50 % of the time",
     seen(rises={"es_refresh_seconds": 0.2})),
    (rules.idle_tasks,
     seen(tasks_without_records=2.0, tasks_without_partitions=0.0, partitions=24, partitions_with_records=1), "topic",
     "2 of 3 tasks never had records; 1 of 24 partitions hold records",
     seen(tasks_without_records=0.0, partitions=24, partitions_with_records=1)),
    (rules.idle_tasks, seen(tasks_without_records=1.0, tasks_without_partitions=1.0), "topic",
     "1 of 3 tasks never had a partition", seen(tasks=12, tasks_without_records=1.0)),
    (rules.idle_tasks, seen(tasks=6, partitions=4, partitions_with_records=4), "topic",
     "2 of 6 tasks never had a partition; 4 of 4", seen(tasks=4, partitions=4, partitions_with_records=4)),
    (rules.absent_tasks, seen(tasks=12, tasks_without_records=8.0, tasks_without_partitions=8.0, partitions=24),
     "connect", "8 of 12 tasks never asked for one of the 24 partitions",
     seen(tasks=12, tasks_without_records=8.0, tasks_without_partitions=8.0, partitions=4)),
    (rules.uneven_records, seen(tasks_busiest_share=0.6), "topic",
     "one task has 60 % of the records, 33 % would be even", seen(tasks_busiest_share=0.45)),
    (rules.uneven_placement, seen(placement={"connect-1": 2, "connect-2": 1, "connect-3": 0}), "connect",
     "connect-1: 2, connect-2: 1, connect-3: 0", seen(placement={"connect-1": 2, "connect-2": 1, "connect-3": 1})),
    (rules.stalled, seen(stalls=[Stall(1.0, 3.0), Stall(4.2, 5.0)]), "sink",
     "no new record was seen in the sink for 5.0 s, from second 4.2 on; 80 % of the time in all", seen(stalls=[])),
    (rules.waits_for_sink, seen(tasks_put_share=0.9, tasks_put_ms=20.0, tasks_records_per_put=500.0), "sink",
     "wait for the sink 90 % of their time: 20 ms for 500 records", seen(tasks_put_share=0.7)),
    (rules.waits_for_sink, seen(tasks_put_share=0.9, tasks_put_ms=1510.4, tasks_records_per_put=500.0), "sink",
     "90 % of their time: 1,510 ms for 500 records", seen(tasks_put_share=0.7)),
    (rules.waits_for_records, seen(tasks_poll_share=0.8), "kafka", "80 %", seen(tasks_poll_share=0.8, mode="sustain")),
]  # fmt: skip
NAMES = [f"{rule.__name__}-{number}" for number, (rule, *_) in enumerate(CASES)]


@pytest.mark.parametrize(("rule", "evidence", "component", "words", "silent"), CASES, ids=NAMES)
def test_a_rule_names_its_component_with_figures_and_is_silent_below_its_threshold_and_where_all_is_well(
    rule: rules.Rule, evidence: Evidence, component: str, words: str, silent: Evidence
) -> None:
    found = present(rule(evidence))
    assert found.component == component
    assert words in found.evidence
    assert 0 < found.share <= 1
    assert rule(silent) is rule(Evidence()) is rule(HEALTHY) is None


def test_every_rule_has_a_case_and_is_asked_once() -> None:
    assert {rule for rule, *_ in CASES} == set(ALL)
    assert len(ALL) == len(set(ALL))


IDLE = {"tasks_without_records": 2.0, "tasks_without_partitions": 0.0, "tasks_busiest_share": 1.0}
FULL = {"partitions": 24, "partitions_with_records": 24}
ABSENT = {"tasks_without_records": 8.0, "tasks_without_partitions": 8.0, "tasks_busiest_share": 0.5}


@pytest.mark.parametrize(
    ("evidence", "component", "cause"),
    [
        (seen(**IDLE), "topic", "idle tasks"),
        (seen(tasks=12, **FULL, **ABSENT), "connect", "absent tasks"),
        (seen(failed_tasks=2, **FULL, **{**IDLE, "tasks_without_partitions": 2.0}), "connect", "failed tasks"),
    ],
)
def test_tasks_that_do_nothing_have_one_cause(evidence: Evidence, component: str, cause: str) -> None:
    found = present(cause_of(evidence))
    assert (found.component, found.cause, found.also) == (component, cause, [])


def test_what_waits_while_there_is_no_cpu_left_waits_for_the_cpu() -> None:
    found = cause_of(seen(busy=0.97, machine_cores=2, pool_waiting=3.0, pg_wait_lock=2.0))
    assert present(found).component == "machine"


def test_where_no_rule_applies_the_verdict_is_not_identified_with_the_figures() -> None:
    found = present(cause_of(HEALTHY))
    assert found.component == found.cause == NOT_IDENTIFIED
    assert found.evidence == "machine CPU 60 %, put 60 %, poll 30 %"
    assert cause_of(None) is None


def test_one_request_a_record_counts_more_than_the_cpu_that_it_uses_up_which_is_named_too() -> None:
    found = present(cause_of(seen(tasks_put_share=0.95, records_per_write=1.0, busy=0.98, machine_cores=2)))
    assert (found.component, found.cause) == ("connector", "a request a record")
    assert found.also[0].startswith("machine CPU: its 2 cores are 98 % busy")
    assert found.also[1].startswith("waits for the sink")


@pytest.mark.parametrize(
    ("busy", "put", "cause", "other", "also"),
    [
        (0.94, 0.9, "machine CPU", "", ["waits for the sink"]),
        (0.91, 0.9, "machine CPU", "waits for the sink", ["waits for the sink"]),
        (0.89, 0.9, "machine CPU", "waits for the sink", ["waits for the sink"]),
        (0.86, 0.9, "waits for the sink", "", []),
        (0.94, 0.78, "machine CPU", "", []),
        (0.91, 0.78, "machine CPU", "waits for the sink", ["waits for the sink"]),
        (0.91, 0.2, "machine CPU", "", []),
        (0.89, 0.2, "machine CPU", NOT_IDENTIFIED, []),
        (0.86, 0.78, "waits for the sink", NOT_IDENTIFIED, []),
    ],
)
def test_near_a_threshold_both_causes_are_named(
    busy: float, put: float, cause: str, other: str, also: list[str]
) -> None:
    found = present(cause_of(seen(busy=busy, machine_cores=2, tasks_put_share=put)))
    assert (found.cause, found.or_cause) == (cause, other)
    assert [each.split(":")[0] for each in found.also] == also
    assert bool(found.or_component) == bool(other)


def test_of_several_waits_the_longest_counts() -> None:
    found = present(cause_of(seen(pool_waiting=1.2, pg_wait_lock=2.4, tasks_put_share=0.95)))
    assert found.cause == "lock waits"
    assert [each.split(":")[0] for each in found.also] == ["pool waits", "waits for the sink"]


COUNTS = [name for name in HEALTHY.levels if not name.endswith("_share")]


@given(
    st.dictionaries(st.sampled_from([name for name in HEALTHY.levels if name.endswith("_share")]), st.floats(0, 1)),
    st.dictionaries(st.sampled_from(COUNTS), st.floats(0, 1e6)),
    st.floats(0, 1) | st.none(),
)
def test_no_evidence_makes_a_rule_fail_or_account_for_more_than_all(
    shares: dict[str, float], counts: dict[str, float], busy: float | None
) -> None:
    evidence = Evidence(Circumstances(tasks=3, machine_cores=2), 5.0, {**shares, **counts}, {}, {}, busy)
    for rule in ALL:
        found = rule(evidence)
        assert found is None or 0 <= found.share <= 1
    assert cause_of(evidence) is not None


LOCKS = Bottleneck(component="postgres", cause="lock waits", evidence="40 %")
CPU = Bottleneck(component="machine", cause="machine CPU", evidence="its 2 cores")


def test_a_cell_takes_the_verdict_that_most_of_its_trials_share_and_says_how_many_do() -> None:
    assert shared_cause([LOCKS, LOCKS]) == LOCKS
    found = present(shared_cause([CPU, None, LOCKS, LOCKS.model_copy(update={"evidence": "50 %"})]))
    assert (found.component, found.evidence) == ("postgres", "40 % (so in 2 of 3 trials)")
    assert shared_cause([None]) is None


def test_two_causes_that_as_many_trials_name_are_both_the_cells() -> None:
    either = CPU.model_copy(update={"or_component": "postgres", "or_cause": "lock waits"})
    for trials in ([CPU, LOCKS], [either, either], [CPU, LOCKS, either]):
        found = present(shared_cause(trials))
        assert (found.cause, found.or_cause) == ("machine CPU", "lock waits")
    found = present(shared_cause([CPU, either, CPU]))
    assert (found.cause, found.or_cause, found.evidence) == ("machine CPU", "", "its 2 cores")


TWO_CORES = Circumstances(tasks=3, machine_cores=2)


def sample(seconds: float, stored: int | None, cpu: dict[str, float | None] | None = None, **signs: float) -> Sample:
    return read_sample(seconds, stored, tasks_running=3, tasks_failed=0, cpu_seconds=cpu or {}, signs=signs)


def whole(samples: list[Sample], around: Circumstances = TWO_CORES) -> Evidence:
    return present(evidence_of(samples, 1000, around))


def test_only_the_time_between_a_tenth_and_nine_tenths_of_the_records_counts() -> None:
    # 100 records a second: 10 % at 1 s, 90 % at 9 s.
    found = whole([sample(n, 100 * n, pg_wait_lock=3.0 if n in (0, 10) else 1.0) for n in range(11)])
    assert (found.seconds, found.levels["pg_wait_lock"]) == (pytest.approx(8), pytest.approx(1))


def test_counts_become_rates_and_cpu_seconds_cores() -> None:
    used = [{"connect-1": 0.4 * n, "connect-2": 0.2 * n} for n in range(11)]
    found = whole([sample(n, 100 * n, used[n], machine_cpu_seconds_total=100 + 1.5 * n) for n in range(11)])
    assert found.cores == pytest.approx({"connect-1": 0.4, "connect-2": 0.2})
    assert found.machine_busy == pytest.approx(0.75)


def test_what_is_read_seldom_is_taken_from_the_readings_around_the_window() -> None:
    samples = [sample(n, 100 * n) for n in range(11)]
    samples[0] = sample(0, 0, es_refresh_seconds_total=1.0)
    samples[10] = sample(10, 1000, es_refresh_seconds_total=3.0)
    assert whole(samples).rises["es_refresh_seconds"] == pytest.approx(0.2)


def test_one_reading_of_a_count_or_one_that_began_anew_is_no_rate() -> None:
    samples = [sample(n, 100 * n, connect_gc_seconds_total=10.0 - n) for n in range(11)]
    samples[5] = sample(5, 500, es_refresh_seconds_total=1.0)
    assert whole(samples).rises == {}


def test_of_the_tasks_averages_the_last_counts_since_it_is_of_the_longest_time() -> None:
    found = whole([sample(n, 100 * n, tasks_put_share=n / 10) for n in range(11)])
    assert found.levels["tasks_put_share"] == pytest.approx(0.9)


def test_how_the_records_were_divided_is_known_at_the_end() -> None:
    samples = [sample(n, 100 * n, tasks_without_records=2.0, tasks_put_share=0.5) for n in range(11)]
    found = evidence_of(samples, 1000, TWO_CORES, {"tasks_without_records": 0.0, "tasks_put_share": 0.1})
    assert present(found).levels == {"tasks_without_records": 0, "tasks_put_share": 0.5}


def test_a_trial_that_did_not_get_far_counts_as_a_whole() -> None:
    found = whole([sample(0, 0, pg_wait_lock=3.0), sample(1, 50, pg_wait_lock=1.0), sample(4, None)])
    assert (found.seconds, found.levels["pg_wait_lock"]) == (4, 2)


def test_what_cannot_be_seen_stays_unknown() -> None:
    found = whole([sample(n, 100 * n, {"kafka": None}) for n in range(11)], Circumstances())
    assert (found.cores, found.machine_busy) == ({}, None)
    assert evidence_of([sample(0, 0)], 1000, TWO_CORES) is None


def test_the_workers_own_count_of_cpu_stands_in_where_no_other_reads_it() -> None:
    samples = [sample(n, 100 * n, {"connect-1": None}, connect_cpu_seconds_total=0.9 * n) for n in range(11)]
    assert whole(samples).cores == pytest.approx({"connect": 0.9})


def test_a_gap_in_which_nothing_was_stored_is_a_stall() -> None:
    frozen = [sample(n / 4, 200 if 8 <= n < 40 else 25 * n if n < 8 else 25 * (n - 32)) for n in range(73)]
    (stall,) = whole(frozen).stalls
    assert stall.seconds == pytest.approx(8.5, abs=0.5)
