"""Which trials are taken again at the end of a run."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import Cell, expand
from sinkbench.plan.plan import Plan
from sinkbench.race.replacing import replacements, replacing, windows_for
from sinkbench.results import Audit, TrialRecord, settled
from tests.support.reasons import because
from tests.support.trials import trial


def plan_of(trials: int = 3, budget: float = 1_000, **fields: object) -> Plan:
    """A plan of two cells with this budget in total."""
    keys = {"name": "p", "pipelines": ["postgres/jdbc", "elasticsearch/camel-bulk"], "seed": 7, **fields}
    return Plan.model_validate({**keys, "trials": trials, "drain": {"warm_up_budget_seconds": budget / 2}})


PLAN = plan_of()
CELLS = JDBC, BULK = expand(PLAN, 3)
STALLED: dict[str, Any] = {"reasons": [because("6 s of 17 s", ReasonCode.STALLED)]}


def taken(cell: Cell, block: int, **fields: Any) -> TrialRecord:
    fields = {"trial": f"{cell.label}{block}", "block": block, "seconds": 10.0, "warm": True, **fields}
    return trial(fields.pop("rate", 1_000.0), cell, **fields)


def run_of(plan: Plan, **first: Any) -> list[TrialRecord]:
    """All blocks of a plan, in which the first trial of the first cell is so."""
    cells = expand(plan, 3)
    order = [(cell, block) for block in range(1, plan.most_blocks + 1) for cell in cells]
    return [taken(*order[0], **first), *(taken(*each) for each in order[1:])]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ({}, []),
        ({"warm": None}, []),
        ({"warm": False}, [JDBC]),
        (STALLED, [JDBC]),
        ({"warm": False, "audit": Audit(produced=9, stored=8, lost=1, duplicates=0)}, []),
        ({"reasons": [*STALLED["reasons"], because("a worker died", ReasonCode.SERVICE_DIED)]}, []),
        ({"warm": False, "pilot": True}, []),
        # One of three may be unsteady.
        ({"steady": False}, []),
    ],
)
def test_what_was_not_warm_or_stood_still_is_replaced(first: dict[str, Any], expected: list[Cell]) -> None:
    assert [each.cell for each in replacements(PLAN, CELLS, run_of(PLAN, **first))] == expected


@pytest.mark.parametrize(
    ("rates", "steady", "replaced"),
    [((500, 800, 1_000), True, 1), ((1_000, 800, 1_100), True, None), ((900, 900, 900), False, 1)],
)
def test_what_kept_a_cell_from_being_final_is_replaced(
    rates: tuple[float, ...], steady: bool, replaced: int | None
) -> None:
    trials = [taken(JDBC, block, rate=rate, steady=steady) for block, rate in enumerate(rates, start=1)]
    found = replacements(PLAN, [JDBC], trials)
    assert [each.replaced.block for each in found if each.replaced] == ([] if replaced is None else [replaced])


def test_cells_that_are_not_final_come_first_and_the_budget_ends_it() -> None:
    trials = [taken(JDBC, 1, warm=False), taken(JDBC, 2), taken(JDBC, 3)]
    trials += [taken(BULK, block, warm=block == 3) for block in (1, 2, 3)]
    assert [each.cell for each in replacements(PLAN, CELLS, trials)] == [BULK]
    final = settled([*trials, taken(BULK, 4, replaces=trials[3].trial)])
    assert [each.cell for each in replacements(PLAN, CELLS, final)] == [JDBC, BULK]
    assert [each.cell for each in replacements(plan_of(budget=15), CELLS, trials)] == [BULK]
    assert replacements(plan_of(budget=0), CELLS, trials) == []
    again = [*trials, taken(BULK, 4, replaces=trials[3].trial)]
    assert replacements(plan_of(budget=15), CELLS, settled(again)) == []


def test_where_intervals_need_every_pair_all_cells_have_a_trial_in_the_block() -> None:
    plan = plan_of(trials=5)
    trials = run_of(plan, warm=False)
    found = replacements(plan, CELLS, trials)
    assert {each.cell: each.replaced for each in found} == {JDBC: trials[0], BULK: None}
    assert replacements(plan_of(trials=5, budget=15), CELLS, trials) == []
    until = plan_of(trials=5, until={"interval_percent": 5, "trials": 9})
    assert replacements(until, CELLS, [*trials, *(taken(cell, 6) for cell in CELLS)]) == []


@given(st.integers(1, 4), st.floats(0, 200), st.data())
def test_replacing_ends_and_cells_keep_their_number_of_trials(count: int, budget: float, data: st.DataObject) -> None:
    plan = plan_of(count, budget)
    trials = [taken(cell, n, warm=data.draw(st.booleans())) for n in range(1, count + 1) for cell in CELLS]
    while block := replacements(plan, CELLS, trials):
        number = 1 + max(each.block for each in trials)
        for each in block:
            assert each.replaced is not None
            new = taken(each.cell, number, warm=data.draw(st.booleans()))
            trials = settled([*trials, replacing(new, each.replaced)])
    assert sum(each.seconds for each in trials if each.replaces) <= budget
    for cell in CELLS:
        mine = [each for each in trials if each.cell == cell.key]
        assert sum(not each.pilot for each in mine) == count


def test_a_standstill_is_named_by_the_trial_that_replaces_it() -> None:
    assert replacing(taken(JDBC, 4), taken(JDBC, 1, warm=False)).notes == []
    record = replacing(taken(JDBC, 4), taken(JDBC, 1, **STALLED))
    assert (record.replaces, record.notes) == ("postgres/jdbc1", ["another trial was replaced: 6 s of 17 s"])


@pytest.mark.parametrize(
    ("warm", "drained", "planned", "windows"),
    [
        (False, 6.0, 4.0, 3.0),
        (False, 6.0, 10.0, 1.5),
        (False, 18.0, 20.0, 1.0),
        (False, 5.0, 4.0, 1.0),
        (False, None, 4.0, 1.0),
        (True, 6.0, 4.0, 1.0),
    ],
)
def test_a_cold_trial_whose_time_went_into_its_drain_is_replaced_by_a_longer_one(
    warm: bool, drained: float | None, planned: float, windows: float
) -> None:
    assert windows_for(taken(JDBC, 1, warm=warm, window_seconds=drained), planned) == windows
    assert windows_for(None, planned) == 1
