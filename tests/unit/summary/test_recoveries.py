"""What a fault did to a pipeline over several trials: one that did not come back is no fast one."""

from sinkbench.metrics.recovery import recovery_over
from sinkbench.results import Recovery
from tests.support.present import present

BACK = Recovery(target="postgres", recovered=True, first_record_seconds=4.0, rate_seconds=5.0, lag_seconds=6.0)


def test_times_are_medians_where_each_trial_has_seen_the_end() -> None:
    later = BACK.model_copy(update={"rate_seconds": 7.0, "standstill_seconds": 3.0})
    found = present(recovery_over([BACK, later, later]))
    assert (found.first_record_seconds, found.rate_seconds, found.lag_seconds) == (4.0, 7.0, 6.0)
    assert (found.standstill_seconds, found.is_silent) == (3.0, False)


def test_a_trial_that_stored_nothing_any_more_is_not_hidden_by_others() -> None:
    found = present(recovery_over([BACK, BACK, Recovery(target="postgres", recovered=True)]))
    assert (found.first_record_seconds, found.rate_seconds, found.lag_seconds) == (None, None, None)
    assert found.is_silent


def test_a_rate_that_one_trial_has_not_seen_is_not_known_though_records_came() -> None:
    found = present(recovery_over([BACK, BACK.model_copy(update={"rate_seconds": None})]))
    assert (found.first_record_seconds, found.rate_seconds, found.is_silent) == (4.0, None, False)
