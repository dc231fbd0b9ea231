"""What each of two steps accounts for of the way between two rates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.shares import Share, share_of_first
from tests.support.present import present

RATES = st.floats(1, 1e6)
# A rate, and how many times that each step makes of it; in each of some blocks.
WAYS = st.lists(st.tuples(RATES, st.floats(1.01, 100), st.floats(1.01, 100)), min_size=1, max_size=9)


def shared(*ways: tuple[float, float, float]) -> Share | None:
    """The share of the first step, of blocks with a rate and the factors of both steps."""
    start = {block: rate for block, (rate, _, _) in enumerate(ways)}
    middle = {block: rate * first for block, (rate, first, _) in enumerate(ways)}
    end = {block: rate * first * second for block, (rate, first, second) in enumerate(ways)}
    return share_of_first(start, middle, end)


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [(2, 2, 0.5), (4, 2, 2 / 3), (100, 1, 1.0), (1, 7, 0.0), (10, 100, 1 / 3), (8, 0.5, 1.5)],
)
def test_factors_multiply_so_their_shares_are_those_of_their_logarithms(
    first: float, second: float, share: float
) -> None:
    found = present(shared((500, first, second)))
    assert (found.estimate, found.rest.estimate) == (pytest.approx(share), pytest.approx(1 - share))


@given(WAYS)
def test_the_shares_of_both_steps_are_1_together_and_a_share_lies_within_its_interval(
    ways: list[tuple[float, float, float]],
) -> None:
    found = present(shared(*ways))
    assert found.estimate + found.rest.estimate == pytest.approx(1)
    assert (found.interval is not None) == (len(ways) >= 5)
    for each in (found, found.rest):
        if each.interval is not None:
            assert each.interval.low - 1e-9 <= each.estimate <= each.interval.high + 1e-9


@given(WAYS, st.floats(0.1, 10))
def test_what_slows_a_whole_block_changes_nothing(ways: list[tuple[float, float, float]], slow: float) -> None:
    usual, slowed = shared(*ways), shared(*((rate * slow, first, second) for rate, first, second in ways))
    assert present(slowed).estimate == pytest.approx(present(usual).estimate)


def test_without_a_difference_in_every_block_there_is_nothing_to_share_out() -> None:
    assert shared((100, 2, 3), (100, 1, 1)) is None
    assert shared((100, 2, 3), (100, 0.5, 1.5)) is None


def test_only_blocks_count_that_have_all_three_above_0() -> None:
    assert share_of_first({1: 100}, {2: 200}, {1: 400}) is None
    assert share_of_first({1: 0}, {1: 200}, {1: 400}) is None
    found = present(share_of_first({1: 100, 2: 1}, {1: 200, 3: 1}, {1: 400, 2: 9, 3: 9}))
    assert found.estimate == pytest.approx(0.5)
