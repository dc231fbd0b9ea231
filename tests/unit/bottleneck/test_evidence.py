"""What is made of a trial's samples before the rules look at it."""

import pytest

from sinkbench.analysis.samples import Sample
from sinkbench.bottleneck.evidence import Circumstances, Evidence, evidence_of
from tests.support.present import present
from tests.support.trials import sample as read_sample

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
    assert found.cores_by_service() == pytest.approx({"connect": 0.6})
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
    assert whole([sample(n / 4, 25 * n) for n in range(41)]).stalls == []
