"""The cells of a plan and the order of their trials."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sinkbench.errors import PlanError
from sinkbench.plan.cells import blocks, expand
from sinkbench.plan.plan import load_plan
from sinkbench.settings import CHECKOUT
from tests.support.trials import a_cell, connectors_in, plan_in, plan_of


def test_a_cell_is_a_pipeline_at_a_multiple_of_the_workers() -> None:
    bulk = {"pipeline": "elasticsearch/camel-bulk", "multiples": [3], "overrides": {"a": 1}}
    cells = expand(plan_of("postgres/jdbc", bulk, multiples=[1, 2]), workers=3)
    assert [cell.key for cell in cells] == ["postgres/jdbc@3x1", "postgres/jdbc@3x2", "elasticsearch/camel-bulk@3x3"]
    assert [(cell.tasks, cell.sink) for cell in cells] == [(3, "postgres"), (6, "postgres"), (9, "elasticsearch")]
    assert (cells[2].overrides, len(set(cells))) == ({"a": "1"}, 3)


@given(st.lists(st.integers(1, 8), min_size=1, unique=True), st.integers(1, 16), st.integers(1, 16))
def test_a_plan_for_a_number_of_workers_has_as_many_tasks_on_more_and_equally_many_on_each(
    multiples: list[int], of: int, workers: int
) -> None:
    plan = plan_of("postgres/jdbc", multiples=sorted(multiples), workers=of, load={"partitions": 200})
    asked = [multiple * of for multiple in sorted(multiples)]
    rounded = {min(range(workers, 300, workers), key=lambda n: (n < tasks, n)) for tasks in asked}
    assert [cell.tasks for cell in expand(plan, workers)] == sorted(rounded)
    assert [cell.tasks for cell in expand(plan, of)] == asked
    rescale = expand(plan_of("postgres/jdbc", mode="rescale", multiples=[1, 2, 4], workers=1), 3)
    assert [(cell.before, cell.multiple) for cell in rescale] == [(None, 1), (None, 2), (1, 2), (2, 1)]


def test_the_default_plan_has_three_tasks_on_up_to_three_workers() -> None:
    plan = load_plan(CHECKOUT / "plans" / "quick.yaml", CHECKOUT / "connectors")
    assert [expand(plan, workers)[0].key.partition("@")[2] for workers in (1, 2, 3, 6)] == ["1x3", "2x2", "3x1", "6x1"]


def test_more_tasks_than_partitions_are_refused_with_the_line_of_the_multiple(tmp_path: Path) -> None:
    connectors = connectors_in(tmp_path, "postgres/jdbc")

    def refusal(text: str, workers: int) -> str:
        with pytest.raises(PlanError) as refused:
            expand(plan_in(tmp_path, text, connectors), workers)
        return str(refused.value).replace(f"{tmp_path}/", "")

    own = "pipelines:\n  - pipeline: postgres/jdbc\n    multiples:\n      - 1\n      - 9\n"
    assert refusal(own, 3) == (
        "mine.yaml:2: multiple 9 on 3 workers makes 27 tasks of postgres/jdbc, but the topic has 24 partitions;"
        " raise load.partitions to 27 or lower the multiple"
    )
    assert refusal("pipelines: [postgres/jdbc]\nmultiples: [1, 9]", 3).startswith("mine.yaml:2: multiple 9")
    with pytest.raises(PlanError, match=r"^plan p: multiple 9"):
        expand(plan_of(multiples=[9]), workers=3)
    assert refusal("trials: 1\npipelines:\n  - postgres/jdbc", 30).startswith("mine.yaml:3: multiple 1 on 30 workers")


@given(count=st.integers(0, 12), trials=st.integers(0, 6), seed=st.integers(0, 2**63 - 1))
def test_every_block_has_every_cell_once_and_a_seed_gives_one_order(count: int, trials: int, seed: int) -> None:
    cells = [a_cell(label=f"c{number}") for number in range(count)]
    order = blocks(cells, trials, seed)
    assert len(order) == trials
    assert all(sorted(block, key=cells.index) == cells for block in order)
    assert blocks(cells, trials, seed) == order


@given(rates=st.lists(st.floats(1, 1e8).map(lambda rate: round(rate, 3)), min_size=2, max_size=6, unique=True))
def test_cells_of_different_rates_have_different_keys(rates: list[float]) -> None:
    keys = [a_cell(label="c", offered=rate).key for rate in rates]
    assert len(set(keys)) == len(rates)
    assert a_cell(label="c", offered=1e6).key == "c@3x1@1000000"


def test_readers_make_cells_of_their_own_of_one_place() -> None:
    cells = expand(plan_of(mode="sustain", sustain={"records_per_second": 100, "readers": [0, 2]}), 3)
    assert {cell.key: cell.readers for cell in cells} == {"postgres/jdbc@3x1@100": 0, "postgres/jdbc@3x1+2g@100": 2}
    searches = plan_of(mode="capacity", sustain={"readers": [0, 2]}, capacity={"of_capacity": [0.5]})
    keys = ["", "@50%", "+2g", "+2g@50%"]
    assert [cell.key for cell in expand(searches, 3)] == [f"postgres/jdbc@3x1{key}" for key in keys]
    assert {cell.place for cell in cells} == {"postgres/jdbc@3x1"}
    with pytest.raises(ValidationError, match="readers"):
        plan_of(mode="sustain", sustain={"records_per_second": 5, "readers": -1})


def test_reads_make_cells_of_their_own_and_need_queries() -> None:
    load = {"records_per_second": [100, 200], "reads_per_second": [0, 2.5]}
    plan = plan_of(mode="sustain", queries="queries", sustain=load)
    reads = {"@100": None, "@100+2.5r": 2.5, "@200": None, "@200+2.5r": 2.5}
    assert {cell.key: cell.reads for cell in expand(plan, 3)} == {f"postgres/jdbc@3x1{k}": n for k, n in reads.items()}
    # One pilot warms up all of them.
    assert {cell.place for cell in expand(plan, 3)} == {"postgres/jdbc@3x1"}
    other = {"pipeline": "postgres/jdbc", "reads_from": "standby"}
    asked = expand(plan_of(mode="sustain", queries="queries", sustain=load, pipelines=[other]), 3)
    found = {(cell.reads_from, cell.identity()["reads_from"]) for cell in asked if cell.reads}
    assert found == {("standby", "standby")}
    for mode in ("sustain", "faults"):
        with pytest.raises(ValidationError, match="reads_from"):
            plan_of(mode=mode, sustain={"records_per_second": 5}, pipelines=[other])
    with pytest.raises(ValidationError, match="reads_per_second needs a plan with queries"):
        plan_of(mode="sustain", sustain={"records_per_second": 5, "reads_per_second": 2})
