"""What is left of a plan: with what is kept it makes the whole, in the same order, wherever a run was cut off."""

import random
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinkbench.analysis.latency import BOUNDED, GROWING, UNCLEAR
from sinkbench.analysis.limits import GENERATOR, with_block
from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import Cell, blocks, expand
from sinkbench.plan.plan import Plan
from sinkbench.plan.schedule import (
    LimitOf,
    Offer,
    block_of,
    blocks_left,
    cells_left,
    feed,
    is_enough,
    is_over,
    limits_in_blocks,
    new_search,
    searches_of,
)
from sinkbench.results import Lag, Limit, LimitInBlock, TrialRecord
from tests.support.counts import count
from tests.support.present import present
from tests.support.reasons import because
from tests.support.trials import plan_of as any_plan
from tests.support.trials import trial

PIPELINES = ["postgres/jdbc", "elasticsearch/camel-bulk", "postgres/jdbc-pgbouncer"]


plan_of = partial(any_plan, *PIPELINES[:2], seed=7)


def taken(cell: Cell, block: int, **fields: object) -> TrialRecord:
    return trial(float(fields.pop("rate", 1000.0)), cell, **{"trial": f"t{block}", "block": block, **fields})  # type: ignore[arg-type]


def settled(sink: str, way: str, batch: int | None = 512) -> Limit:
    """A limit whose search has settled the way to write."""
    return Limit(sink=sink, way=way, records_per_second=1e5, connections=2, batch=batch)


def go_on(
    plan: Plan, cells: Sequence[Cell], kept: Sequence[TrialRecord], take: Callable[[Cell, int], TrialRecord]
) -> list[TrialRecord]:
    """All trials of a run in blocks that has those kept, as a race takes them."""
    trials = list(kept)
    for block in blocks_left(plan, cells, kept):
        if is_over(plan, cells, trials, block):
            break
        trials += [take(cell, block.number) for cell in block.cells]
    return trials


@given(
    pipelines=st.integers(1, 3),
    multiples=st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
    count=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    cut=st.integers(0, 60),
    mode=st.sampled_from(["drain", "rescale", "sustain"]),
)
def test_kept_and_left_make_the_whole_in_the_same_order(
    pipelines: int, multiples: list[int], count: int, seed: int, cut: int, mode: str
) -> None:
    if mode == "rescale":
        multiples = [*multiples, 6]
    load = {"sustain": {"records_per_second": [100, 200]}} if mode == "sustain" else {}
    plan = plan_of(pipelines=PIPELINES[:pipelines], multiples=multiples, trials=count, seed=seed, mode=mode, **load)
    cells = expand(plan, 3)
    order = [(number, cell) for number, block in enumerate(blocks(cells, count, seed), start=1) for cell in block]
    kept = [taken(cell, number) for number, cell in order[:cut]]
    left = [(block.number, cell) for block in blocks_left(plan, cells, kept) for cell in block.cells]
    assert left == order[cut:]
    assert {cell.key for cell in cells_left(plan, cells, kept)} == {cell.key for _, cell in order[cut:]}
    assert go_on(plan, cells, kept, taken)[: len(kept)] == kept


@given(count=st.integers(2, 6), seed=st.integers(0, 2**32), cut=st.integers(0, 40))
def test_limits_in_blocks_are_left_where_a_run_was_cut_off(count: int, seed: int, cut: int) -> None:
    plan = plan_of(trials=count, seed=seed, limits=True)
    cells = expand(plan, 3)
    bare = [settled("postgres", "COPY"), settled("elasticsearch", "bulk"), settled("kafka", "group", batch=None)]

    def steps(trials: Sequence[TrialRecord], limits: Sequence[Limit]) -> list[tuple[int, Cell | LimitOf]]:
        return [(block.number, step) for block in blocks_left(plan, cells, trials, limits) for step in block.steps]

    order = steps([], bare)
    assert len(order) == count * (len(cells) + 2)
    # The trials have the order that they have without limits.
    without = [cell for block in blocks(cells, count, seed) for cell in block]
    assert [cell for _, cell in order if isinstance(cell, Cell)] == without
    done, left = order[:cut], order[cut:]
    trials = [taken(step, number) for number, step in done if isinstance(step, Cell)]
    limits = bare
    for number, step in done:
        if isinstance(step, LimitOf):
            found = LimitInBlock(block=number, records_per_second=1.0)
            limits = [with_block(each, found) if (each.sink, each.way) == step else each for each in limits]
    assert steps(trials, limits) == left
    # Whoever has a step left is warmed up before.
    sinks = {step.sink for _, step in left}
    assert {cell.sink for cell in cells_left(plan, cells, trials, limits)} == sinks


def test_a_limit_of_a_connector_warms_up_its_own_cell_and_no_other() -> None:
    plan = plan_of(trials=2, limits=True)
    cells = expand(plan, 3)
    trials = [taken(cell, block) for block in (1, 2) for cell in cells]
    for cell in cells:
        (left,) = cells_left(plan, cells, trials, [settled("connector", cell.key)])
        assert left == cell


@settings(max_examples=count(20, 4))
@given(seed=st.integers(0, 1000), cut=st.integers(0, 30), spread=st.floats(0.001, 0.5))
def test_a_run_until_it_is_sure_ends_where_it_would_have_ended(seed: int, cut: int, spread: float) -> None:
    plan = plan_of(trials=5, until={"interval_percent": 20, "trials": 9}, seed=seed)
    cells = expand(plan, 3)

    def take(cell: Cell, block: int) -> TrialRecord:
        draw = random.Random(f"{seed} {cell.key} {block}")
        return taken(cell, block, rate=1000 * (1 + spread * draw.random()))

    whole = go_on(plan, cells, [], take)
    kept = whole[:cut]
    assert go_on(plan, cells, kept, take) == whole
    assert bool(cells_left(plan, cells, kept)) == (len(kept) < len(whole))


def test_an_invalid_trial_is_taken_and_one_that_was_too_short_is_not() -> None:
    plan = plan_of(trials=1)
    cells = expand(plan, 3)
    first, second = blocks_left(plan, cells, [])[0].cells
    (block,) = blocks_left(plan, cells, [taken(first, 1, invalid=["a service died"]), taken(second, 1, pilot=True)])
    assert (block.number, block.cells, block.begun) == (1, [second], True)


def test_a_block_that_has_begun_is_ended_however_sure_the_run_is() -> None:
    plan = plan_of(trials=1, until={"interval_percent": 50, "trials": 9})
    cells = expand(plan, 3)
    sure = [taken(cell, block) for block in range(1, 6) for cell in cells]
    assert cells_left(plan, cells, sure) == []
    begun = [*sure, taken(cells[0], 6)]
    assert cells_left(plan, cells, begun) != []
    names = [(each.block, each.cell) for each in go_on(plan, cells, begun, taken)]
    assert names[len(sure) :] == [(6, cells[0].key), (6, cells[1].key)]


GENERATOR_LIMIT = Limit(sink=GENERATOR, way="loadgen", records_per_second=50_000.0)


def search_on(
    plan: Plan, cells: Sequence[Cell], kept: Sequence[TrialRecord], outcome: Callable[[Cell, Offer, int], TrialRecord]
) -> list[TrialRecord]:
    """All trials of a run that searches and has those kept, as a race takes them."""
    trials = list(kept)
    searches = searches_of(plan, cells, kept, [GENERATOR_LIMIT])
    for cell in cells_left(plan, cells, kept, [GENERATOR_LIMIT]):
        search = searches.get(cell.key) or new_search(plan, START[cell.key], [GENERATOR_LIMIT])
        while (offer := search.next()) is not None:
            found = outcome(cell, offer, block_of(search))
            feed(search, found)
            trials.append(found)
    return trials


CAPACITY = plan_of(mode="capacity", trials=2)
CELLS = expand(CAPACITY, 3)
# The one begins with more than the generator can do; neither has a number of tenths.
START = {CELLS[0].key: 1e6 / 3, CELLS[1].key: 1234.5678}


def offered(cell: Cell, offer: Offer, block: int, seed: int, capacity: float) -> TrialRecord:
    rate = offer.records_per_second
    draw = random.Random(f"{seed} {cell.key} {rate} {block}")
    verdict = BOUNDED if rate <= capacity else draw.choice([GROWING, UNCLEAR])
    told = {"trial": f"{draw.randrange(2**32)}", "block": block, "pilot": not offer.confirms}
    lag = Lag(verdict=verdict, growth_per_second=round(draw.random(), 3))
    invalid = ["a service died"] if draw.random() < 0.1 else []
    return trial(rate, cell, invalid=invalid, offered_records_per_second=round(rate, 1), lag=lag, **told)


@given(seed=st.integers(0, 10_000), cut=st.integers(0, 60), capacity=st.floats(50, 1e5))
def test_a_search_goes_on_from_its_trials_as_if_it_had_not_been_cut_off(seed: int, cut: int, capacity: float) -> None:
    def outcome(cell: Cell, offer: Offer, block: int) -> TrialRecord:
        return offered(cell, offer, block, seed, capacity)

    whole = search_on(CAPACITY, CELLS, [], outcome)
    assert search_on(CAPACITY, CELLS, whole[:cut], outcome) == whole
    assert bool(cells_left(CAPACITY, CELLS, whole[:cut], [GENERATOR_LIMIT])) == (cut < len(whole))


def test_a_trial_that_the_search_would_not_have_offered_is_refused() -> None:
    first = offered(CELLS[0], present(new_search(CAPACITY, 1000.0, []).next()), 0, 1, 1e9)
    odd = first.model_copy(update={"trial": "odd", "offered_records_per_second": 1234.5})
    with pytest.raises(ValueError, match="trial odd of postgres/jdbc@3x1 is not what the search offers"):
        searches_of(CAPACITY, CELLS, [first, odd], [])


@pytest.mark.parametrize(
    ("verdict", "codes", "goes_down"),
    [
        (GROWING, [ReasonCode.TIMED_OUT], True),
        (GROWING, [ReasonCode.TIMED_OUT, ReasonCode.SERVICE_DIED], False),
        (UNCLEAR, [ReasonCode.TIMED_OUT], False),
        (GROWING, [ReasonCode.SERVICE_DIED], False),
    ],
)
def test_a_load_that_was_too_much_to_be_stored_in_time_is_one_that_was_not_kept_up_with(
    verdict: str, codes: list[ReasonCode], goes_down: bool
) -> None:
    search = new_search(CAPACITY, 1000.0, [])
    offer = present(search.next())
    reasons = [because("it was too much", code) for code in codes]
    over = offered(CELLS[0], offer, 0, 1, 0).model_copy(update={"lag": Lag(verdict=verdict), "reasons": reasons})
    feed(search, over)
    following = search.next()
    # What is invalid for a reason of its own is offered once more.
    assert (following.records_per_second < offer.records_per_second) == goes_down


def test_what_the_search_has_settled_is_measured_in_blocks_and_what_comes_before_the_sink_is_not() -> None:
    copy, kafka = settled("postgres", "COPY"), settled("kafka", "group", batch=None)
    unsettled = Limit(sink="postgres", way="INSERT", note="permission denied")
    assert limits_in_blocks(plan_of(limits=True), [kafka, copy, unsettled]) == [LimitOf("postgres", "COPY")]
    for fields in ({"limits": False}, {"trials": 1}, {"mode": "capacity"}):
        assert limits_in_blocks(plan_of(**{"limits": True, **fields}), [copy]) == []


NARROW = [1000.0, 1001.0, 1002.0, 1003.0, 1004.0]
WIDE = [500.0, 800.0, 1000.0, 1500.0, 1700.0]


@pytest.mark.parametrize(
    ("trials", "most", "done", "rates", "enough"),
    [
        # Without `until` a run takes its trials.
        *((3, None, done, [NARROW], done == 3) for done in (0, 2, 3)),
        (5, 20, 5, [NARROW, NARROW], True),
        (5, 20, 5, [NARROW, WIDE], False),
        # Never before the least or after the most.
        (8, 20, 7, [NARROW], False),
        (5, 20, 20, [WIDE], True),
        # A cell without an interval is never narrow enough.
        *((5, 20, 5, [NARROW, rates], False) for rates in ([], NARROW[:4], [0.0] * 5)),
    ],
)
def test_how_many_trials_are_enough(
    trials: int, most: int | None, done: int, rates: list[list[float]], enough: bool
) -> None:
    plan = plan_of(trials=trials, until=None if most is None else {"interval_percent": 10, "trials": most})
    assert is_enough(plan, done, {str(number): each for number, each in enumerate(rates)}) is enough
