"""How long the rest of a run takes."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.race.estimate import StepsLeft, forecast, seconds_left, trial_seconds
from sinkbench.topology import Topology

PLAN = Plan.model_validate({"name": "p", "pipelines": ["postgres/jdbc"]})
COUNTS = st.integers(1, 100)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.lists(st.floats(1, 600), max_size=20))
def test_one_step_less_takes_less(pilots: int, limits: int, trials: int, in_blocks: int, taken: list[float]) -> None:
    left = StepsLeft(pilots, limits, trials, in_blocks)
    assert left.steps == pilots + limits + trials + in_blocks
    for field in fields(StepsLeft)[:4]:
        fewer = replace(left, **{field.name: getattr(left, field.name) - 1})
        assert seconds_left(PLAN, fewer, taken) < seconds_left(PLAN, left, taken)


def test_pilots_of_a_fresh_stack_use_up_their_time() -> None:
    assert seconds_left(PLAN, StepsLeft(1, 0, 0, 0, 240.0), []) == 240
    assert seconds_left(PLAN, StepsLeft(4, 0, 0, 0, 1.0), []) == seconds_left(PLAN, StepsLeft(4, 0, 0), []) > 1


def test_a_trial_takes_as_long_as_those_before() -> None:
    assert trial_seconds(PLAN, [10.0, 20.0]) == 15.0
    assert trial_seconds(PLAN, []) > PLAN.drain.window_seconds


def test_a_forecast_counts_cells_and_trials_and_bounds_the_time() -> None:
    keys = {"name": "p", "pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"], "multiples": [1, 2]}
    plan = Plan.model_validate(keys)
    found = forecast(plan, expand(plan, 3), None)
    assert (found.cells, found.trials, found.memory_bytes) == (4, 12, None)
    assert 0 < found.seconds < found.most_seconds
    until = Plan.model_validate({**keys, "until": {"interval_percent": 5, "trials": 9}})
    again = forecast(until, expand(until, 3), Topology())
    assert (again.trials, again.seconds) == (12, found.seconds)
    assert again.most_seconds > found.most_seconds
    assert again.memory_bytes >= 1e9
    search = Plan.model_validate({**keys, "mode": "capacity", "limits": True})
    assert forecast(search, expand(search, 3), None).trials > 12
