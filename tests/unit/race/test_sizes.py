"""How many records each trial drains."""

import pytest

from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import Plan
from sinkbench.race.sizes import Sizes, is_too_short
from sinkbench.results import Audit, Rescale
from tests.support.reasons import because
from tests.support.trials import trial

PLAN = Plan.model_validate({"name": "p", "pipelines": ["postgres/jdbc"], "drain": {"window_seconds": 10}})
CELL = expand(PLAN, 3)[0]
SHORT = [because("too short", ReasonCode.TOO_SHORT)]
TWICE = Audit(produced=100, stored=101, lost=0, duplicates=1)
LATE = [because("3 of 6 tasks started", ReasonCode.TASKS_NOT_STARTED)]


def test_a_trial_is_sized_by_the_pilot_and_then_by_the_trial_before() -> None:
    sizes = Sizes(PLAN.drain)
    assert sizes.records(CELL) == 10_000
    sizes.learn(CELL.place, 5_000)
    assert sizes.records(CELL) == 50_000
    sizes.see(CELL, trial(7_000, CELL))
    assert sizes.records(CELL) == 70_000
    # An invalid one changes no size.
    sizes.see(CELL, trial(9_000, CELL, reasons=[because("a service died")]))
    assert sizes.records(CELL) == 70_000


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reasons": SHORT}, True),
        ({"reasons": [*SHORT, because("a service died")]}, False),
        ({"reasons": SHORT, "audit": Audit(produced=100, stored=99, lost=1, duplicates=0)}, False),
        ({"reasons": SHORT, "records": 20_000_000}, False),
        ({"reasons": LATE, "window_seconds": 1.5}, True),
        ({"reasons": LATE, "window_seconds": 12.0}, False),
        ({"reasons": [*LATE, *SHORT], "window_seconds": 1.5}, False),
        ({}, False),
        ({"reasons": SHORT, "audit": TWICE}, False),
        ({"reasons": SHORT, "audit": TWICE, "rescale": Rescale(tasks_before=3)}, True),
    ],
)
def test_too_short_is_what_nothing_else_is_wrong_with(fields: dict[str, object], expected: bool) -> None:
    assert is_too_short(trial(None, CELL, **fields), 10) == expected


def test_a_cold_trial_sizes_the_next_one_and_a_cold_one_that_was_too_short_grows() -> None:
    sizes = Sizes(PLAN.drain)
    sizes.see(CELL, trial(2_000, CELL, pilot=True, warm=False))
    assert sizes.records(CELL) == 20_000
    sizes.see(CELL, trial(None, CELL, records=20_000, window_seconds=9.0, pilot=True, warm=False, reasons=SHORT))
    assert sizes.records(CELL) == 80_000


def test_one_in_which_tasks_came_too_late_grows_though_it_has_a_rate() -> None:
    sizes = Sizes(PLAN.drain)
    sizes.learn(CELL.place, 1_000)
    sizes.see(CELL, trial(6_000, CELL, records=10_000, window_seconds=1.5, pilot=True, reasons=LATE))
    assert sizes.records(CELL) > 60_000
