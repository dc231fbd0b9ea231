"""A running connector with another number of tasks: what its samples show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.samples import Sample
from sinkbench.trial.values import Rescaled
from sinkbench.trial.workloads.drain import rate_after, rescale_of, stalls_outside
from tests.support.trials import sample


def samples(before: float, after: float, asked: float, still: float, every: float = 0.25) -> tuple[list[Sample], int]:
    """A drain at `before` records/s until `asked`, at none for `still` seconds, then at `after` for 20 s."""
    records = round(before * asked + after * 20)
    made = []
    for seconds in np.arange(0, asked + still + 21, every).tolist():
        stored = before * min(seconds, asked) + after * max(seconds - asked - still, 0.0)
        made.append(sample(seconds, min(records, int(stored))))
    return made, records


@given(before=st.floats(100, 50_000), factor=st.floats(0.5, 4), asked=st.floats(5, 15), still=st.floats(0, 6))
def test_rates_and_standstill_are_those_of_the_drain(before: float, factor: float, asked: float, still: float) -> None:
    taken, records = samples(before, factor * before, asked, still)
    settled = asked + still + 0.25
    found = rescale_of(taken, records, 3, asked, settled)
    assert found.standstill_seconds == pytest.approx(still, abs=0.51)
    assert (found.rebalance_seconds, found.tasks_before) == (pytest.approx(still + 0.25, abs=0.01), 3)
    assert rate_after(taken, records, settled) == pytest.approx(factor * before, rel=0.05)
    if found.before_records_per_second is not None:
        # To within the sampling interval at its end.
        assert found.before_records_per_second == pytest.approx(before, rel=0.25 * max(factor, 1))


def test_what_stands_still_while_tasks_change_is_no_stall() -> None:
    taken, records = samples(1_000, 1_000, 10, 6)
    (stall,) = stalls_outside(taken, records, Rescaled())
    assert stall.seconds == pytest.approx(6, abs=0.5)
    assert stalls_outside(taken, records, Rescaled(10.0, 12.0)) == []


def test_the_rate_before_is_not_told_of_a_moment() -> None:
    taken, records = samples(100, 325, 7.375, 0)
    assert rescale_of(taken, records, 3, 7.375, 7.7).before_records_per_second is None
    taken, records = samples(1_000, 1_000, 15, 0)
    assert rescale_of(taken, records, 3, 15, 15.3).before_records_per_second == pytest.approx(1_000, rel=0.02)


def test_a_drain_that_stores_nothing_more_has_no_standstill_and_no_rate() -> None:
    taken, records = samples(1_000, 0, 10, 0)
    assert rescale_of(taken, 2 * records, 3, 10, 12).standstill_seconds is None
    assert rate_after(taken, 2 * records, 12) is None
