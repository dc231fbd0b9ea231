"""How long the rest of a run takes."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from sinkbench.plan.plan import Plan
from sinkbench.race.estimate import StepsLeft, seconds_left, trial_seconds

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
