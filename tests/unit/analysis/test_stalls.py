"""Gaps in which a drain stored nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.samples import Sample
from sinkbench.analysis.stalls import idle_tasks, much_stalled, silences, stalls
from tests.support.present import present
from tests.support.trials import sample

RECORDS, RATE, STEP = 10_000, 500, 0.25


def drain(frozen_from: float, seconds: float, *, read: bool = True) -> list[Sample]:
    """Samples, four a second, of a drain of 500 records/s that stands still for so long in between."""
    samples, stored, at = [], 0.0, 100.0
    while stored < RECORDS:
        stands = frozen_from <= at - 100 < frozen_from + seconds
        samples.append(sample(at, round(stored) if read or not stands else None))
        stored += 0 if stands else RATE * STEP
        at += STEP
    return [*samples, sample(at, RECORDS)]


@pytest.mark.parametrize("read", [True, False])
def test_a_sink_that_was_frozen_is_named_with_its_length_and_moment(read: bool) -> None:
    (stall,) = stalls(drain(9, 8, read=read), RECORDS)
    assert (stall.seconds, stall.began_seconds) == (pytest.approx(8, abs=2 * STEP), pytest.approx(9, abs=STEP))
    moment = f"from second {stall.began_seconds} on"
    assert stall.in_words == f"no new record was seen in the sink for {stall.seconds} s, {moment}"


@given(st.floats(0, 2.4))
def test_a_short_gap_is_none(seconds: float) -> None:
    assert stalls(drain(9, seconds), RECORDS) == []


def test_what_comes_in_bunches_has_no_stalls_but_longer_ones() -> None:
    # 1,000 records every four seconds, then nothing for half a minute.
    bunches = [sample(0, 0), *(sample(4.0 * count, 1_000 * count) for count in range(1, 6))]
    assert stalls([*bunches, *(sample(4.0 * count, 1_000 * count) for count in range(6, 11))], RECORDS) == []
    late = [*bunches, *(sample(30 + 4.0 * count, 1_000 * count) for count in range(6, 11))]
    assert [each.seconds for each in stalls(late, RECORDS)] == [34.0]


def test_before_and_after_the_middle_no_rate_suffers() -> None:
    assert (stalls(drain(1, 8), RECORDS), stalls(drain(19, 8), RECORDS)) == ([], [])
    assert stalls(drain(9, 8)[:40], RECORDS) == []


def muted(service: str, *seconds: int, since: float = 12.0) -> list[Sample]:
    """A sample a second from second 10 on; in these seconds after it the service does not answer."""
    return [sample(10.0 + at, 100 * at, silent={service: since} if at in seconds else {}) for at in range(12)]


def test_a_service_that_answers_no_probe_is_named_from_its_last_answer_on() -> None:
    (silence,) = silences(muted("connect", 4, 5, 6))
    assert silence.in_words == "Connect answered no probe for 5.0 s, from second 2.0 on"
    (to_the_end,) = silences(muted("kafka", 8, 9, 10, 11, since=17.5))
    assert (to_the_end.service, to_the_end.began_seconds, to_the_end.seconds) == ("kafka", 7.5, 3.5)
    assert silences(muted("kafka", 3)) == silences(muted("kafka")) == []


@pytest.mark.parametrize(("silent_from", "service"), [(9.5, "pgbouncer"), (12, "pgbouncer"), (14, "")])
def test_the_cause_of_a_stall_is_who_was_silent_for_half_of_it(silent_from: float, service: str) -> None:
    seen = [
        replace(each, silent={"pgbouncer": 100 + silent_from} if silent_from <= each.seconds - 100 < 17 else {})
        for each in drain(9, 8)
    ]
    (stall,) = stalls(seen, RECORDS)
    assert stall.silent == service
    assert stall.in_words.endswith("PgBouncer answered no probe meanwhile") is bool(service)


@pytest.mark.parametrize(("seconds", "share"), [(3.5, 0.19), (8, 0.33)])
def test_the_share_of_the_measured_time_counts(seconds: float, share: float) -> None:
    seen = drain(9, seconds)
    found, stall = present(much_stalled(stalls(seen, RECORDS), seen, RECORDS))
    assert (found, stall.seconds) == (pytest.approx(share, abs=0.03), pytest.approx(seconds, abs=0.5))
    # Of a long drain it is little, and what was before the middle is not measured.
    records = 40_000
    long = [sample(each.seconds, each.stored) for each in seen[:-1]]
    long += [sample(each.seconds + 0.25 * at, 10_000 + 125 * at) for at, each in enumerate([seen[-1]] * 241)]
    assert (much_stalled(stalls(long, records), long, records) is None) is (seconds < 5)
    assert much_stalled([], seen, RECORDS) is None


def test_a_drain_that_was_not_looked_at_for_a_while_did_not_stand_still() -> None:
    seen = [each for each in drain(30, 0) if not 108 < each.seconds < 113]
    found = stalls(seen, RECORDS)
    assert [each.seconds for each in found] == [5.0]
    assert much_stalled(found, seen, RECORDS) is None


def drained_by(*running: int | None, failed: int = 0) -> list[Sample]:
    """A sample a second, with so many tasks that run."""
    return [sample(10.0 + at, 100 * at, tasks_running=tasks, tasks_failed=failed) for at, tasks in enumerate(running)]


def test_tasks_that_did_not_run_are_named_with_their_time_and_counted_to_the_end() -> None:
    (idle,) = idle_tasks(drained_by(None, 0, 3, 3, 0, 1, 3, 3), 10_000, 3)
    asks = "was the connector paused, restarted or changed?"
    assert idle == f"only 0 of 3 tasks ran for about 2 s, from second 4.0 on: {asks}"
    (idle,) = idle_tasks(drained_by(3, 3, 1, 1, None, 1), 10_000, 3)
    assert idle.startswith("only 1 of 3 tasks ran for about 3 s, from second 2.0 on")


@pytest.mark.parametrize(
    "samples",
    [
        # Not all have started yet.
        drained_by(0, 1, 2, 3, 3),
        drained_by(0, 1, 2),
        drained_by(3, 3, 2, 2, failed=1),
        # The connector was deleted after its last record.
        [*drained_by(3, 3), sample(20, 10_000, tasks_running=0, tasks_failed=0)],
    ],
)
def test_tasks_that_start_that_failed_or_are_done_are_not(samples: list[Sample]) -> None:
    assert idle_tasks(samples, 10_000, 3) == []
