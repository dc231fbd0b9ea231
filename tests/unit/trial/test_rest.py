"""The rest of a trial that trouble has ended: when it is over, and when it is given up."""

from sinkbench.errors import ReasonCode
from sinkbench.trial.rest import RestWatch
from sinkbench.trial.stop import End, Timeouts
from tests.support.trials import sample

REST = Timeouts(stall_seconds=30, timeout_seconds=300)


def test_a_rest_is_over_when_all_is_committed_and_nothing_more_is_stored() -> None:
    watch = RestWatch(REST)
    assert watch.see(sample(0, 500, uncommitted=100)) is None
    assert watch.see(sample(1, 600, uncommitted=0)) is None
    # An aggregate that was not full when its offsets were committed.
    assert watch.see(sample(5, 620, uncommitted=0)) is None
    assert watch.see(sample(9, 620, uncommitted=0)) is None
    # What could not be read says nothing.
    assert watch.see(sample(11, None, uncommitted=0)) is None
    assert watch.see(sample(12, 620, uncommitted=0)) == End()


def test_a_rest_waits_as_long_as_kafka_keeps_the_partitions_of_a_dead_consumer() -> None:
    watch = RestWatch(REST)
    assert watch.see(sample(0, 500, uncommitted=100)) is None
    assert watch.see(sample(75, 500, uncommitted=100)) is None
    assert watch.see(sample(76, 500, uncommitted=100)).reason.code == ReasonCode.NO_PROGRESS
    late = RestWatch(REST)
    ends = [late.see(sample(second, second, uncommitted=1_000 - second)) for second in range(302)]
    assert [place for place, each in enumerate(ends) if each is not None] == [301]


def test_tasks_that_fail_again_are_started_a_few_times_and_not_for_ever() -> None:
    watch = RestWatch(REST)
    asked = [second for second in range(60) if watch.wants_restart(sample(second, 0, tasks_failed=1))]
    assert asked == [0, 5, 10, 15, 20]
    assert not RestWatch(REST).wants_restart(sample(0, 0, tasks_failed=0))
