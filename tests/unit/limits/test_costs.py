"""What a limit took, and whether it was disturbed, from a reading before and one after it."""

from collections.abc import Callable

import pytest

from sinkbench.limits.measure import LimitJob
from sinkbench.limits.tune import Costs, Measured, Point, Tuned, costs_between, disturbance
from sinkbench.results import Limit
from sinkbench.trial.resources import Observer
from tests.support.silent import Silent
from tests.support.trials import sample

COMPILING = "elasticsearch_compiler_cpu_seconds_total"
SETTLED = Limit(sink="elasticsearch", way="bulk", records_per_second=9e4, connections=2, batch=512)


def costs(before: dict[str, float | None], after: dict[str, float | None], compiled: float = 0.0) -> Costs:
    first = sample(10.0, None, cpu_seconds=before, signs={COMPILING: 5.0})
    last = sample(12.5, None, cpu_seconds=after, signs={COMPILING: 5.0 + compiled})
    return costs_between(first, last, 500_000, 0.75)


def test_cpu_time_is_given_per_million_records_for_each_service_and_the_clients() -> None:
    found = costs({"elasticsearch": 100.0, "connect-1": 7.0}, {"elasticsearch": 104.0, "connect-1": 7.5})
    assert found.cpu_seconds_per_million == pytest.approx({"elasticsearch": 8.0, "connect": 1.0, "client": 1.5})


def test_the_costs_of_a_service_whose_counters_began_again_are_not_known() -> None:
    assert costs({"elasticsearch": 100.0}, {"elasticsearch": 3.0}).cpu_seconds_per_million["elasticsearch"] is None


def test_what_still_compiles_is_not_warm() -> None:
    found = costs({"elasticsearch": 100.0}, {"elasticsearch": 104.0}, compiled=2.0)
    assert found.compiling_share == pytest.approx(2 / 4.75)
    assert disturbance(found, 0.2) is not None
    assert disturbance(found, 0.6) is None


def job(again: Callable[[Point, Observer], Measured] | None) -> LimitJob:
    return LimitJob("elasticsearch", "bulk", lambda observer: Tuned(None, ()), again)


def test_in_a_block_the_setting_that_was_found_is_measured() -> None:
    measured = {Point(512, 2): Measured(8e4, costs=Costs({"elasticsearch": 8.0}, 0.1))}
    found = job(lambda point, observer: measured[point]).in_block(SETTLED, 3, 0.2, Silent())
    assert (found.block, found.records_per_second, found.problem) == (3, 8e4, None)
    assert found.cpu_seconds_per_million == {"elasticsearch": 8.0}


@pytest.mark.parametrize(
    "measured",
    [
        Measured(None, "429"),
        Measured(0.0),
        Measured(8e4, costs=Costs(compiling_share=0.5)),
    ],
)
def test_what_was_disturbed_has_no_rate_and_says_why(measured: Measured) -> None:
    found = job(lambda point, observer: measured).in_block(SETTLED, 1, 0.2, Silent())
    assert found.records_per_second is None
    assert found.problem
    assert found.cpu_seconds_per_million == {}


@pytest.mark.parametrize("limit", [SETTLED, SETTLED.model_copy(update={"batch": None})])
def test_what_is_measured_once_is_not_measured_in_blocks(limit: Limit) -> None:
    again = None if limit.batch else lambda point, observer: Measured(1.0)
    with pytest.raises(ValueError, match="not measured in blocks"):
        job(again).in_block(limit, 1, 0.2, Silent())
