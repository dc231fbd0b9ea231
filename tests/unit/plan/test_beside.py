"""Which limits are measured beside the trials, and at which place of a block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.plan.cells import Cell
from sinkbench.plan.plan import Plan
from sinkbench.plan.schedule import LimitOf, limits_in_blocks, with_limits
from sinkbench.results import Limit
from tests.support.trials import a_cell

COPY, INSERT, BULK = LimitOf("postgres", "COPY"), LimitOf("postgres", "INSERT"), LimitOf("elasticsearch", "bulk")
SETTLED = Limit(sink="postgres", way="COPY", records_per_second=1e5, connections=2, batch=512)
KAFKA = Limit(sink="kafka", way="consumer group", records_per_second=1e6, connections=3)
UNSETTLED = Limit(sink="postgres", way="INSERT", note="permission denied")


def plan(**fields: object) -> Plan:
    return Plan.model_validate({"name": "p", "pipelines": ["postgres/jdbc"], "limits": True, **fields})


@given(st.integers(1, 6), st.sets(st.sampled_from([COPY, INSERT, BULK])), st.text(max_size=5))
def test_each_limit_is_in_the_block_once_and_the_cells_keep_their_order(
    count: int, limits: set[LimitOf], seed: str
) -> None:
    cells = [a_cell(multiple=multiple) for multiple in range(1, count + 1)]
    steps = with_limits(cells, sorted(limits), seed)
    assert [step for step in steps if isinstance(step, Cell)] == cells
    assert sorted(step for step in steps if isinstance(step, LimitOf)) == sorted(limits)
    assert steps == with_limits(cells, sorted(limits), seed)


def test_what_the_search_has_settled_is_measured_in_blocks_and_what_comes_before_the_sink_is_not() -> None:
    assert limits_in_blocks(plan(), [KAFKA, SETTLED, UNSETTLED]) == [COPY]


@pytest.mark.parametrize("fields", [{"limits": False}, {"trials": 1}, {"mode": "capacity"}])
def test_without_blocks_or_without_an_efficiency_a_limit_is_measured_once(fields: dict[str, object]) -> None:
    assert limits_in_blocks(plan(**fields), [SETTLED]) == []
