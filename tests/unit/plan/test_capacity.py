"""The search for a capacity, on pipelines whose capacity is known."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.latency import BOUNDED, GROWING, UNCLEAR
from sinkbench.plan.schedule import INVALID, CapacitySearch, Offer

PRECISION = 0.05
MOST_STEPS = 60


def searched(search: CapacitySearch, outcome: Callable[[Offer], str]) -> CapacitySearch:
    for _ in range(MOST_STEPS):
        if (offer := search.next()) is None:
            return search
        found = outcome(offer)
        search.take(found, problem="a reason" if found == INVALID else None)
    raise AssertionError(f"no end after {MOST_STEPS} steps")


@given(
    capacity=st.floats(100, 1e6),
    guess=st.floats(0.1, 10),
    confirmations=st.integers(1, 5),
    precision=st.floats(0.01, 0.2),
)
def test_a_known_capacity_is_found_from_a_poor_guess(
    capacity: float, guess: float, confirmations: int, precision: float
) -> None:
    search = CapacitySearch(capacity * guess, 1e8, precision, confirmations)
    searched(search, lambda offer: BOUNDED if offer.records_per_second <= capacity else GROWING)
    assert capacity / (1 + precision) * (1 - 1e-9) <= search.capacity <= capacity
    assert [step.confirms for step in search.path].count(True) == confirmations
    assert not search.at_most_of_generator


@given(seed=st.integers(0, 10_000))
def test_noise_costs_no_more_than_a_few_steps_of_precision(seed: int) -> None:
    draw = random.Random(seed)

    def outcome(offer: Offer) -> str:
        share = offer.records_per_second / 10_000
        # Between 0.97 and 1.03 of the capacity chance decides.
        return BOUNDED if share < 0.97 + 0.06 * draw.random() else draw.choice([GROWING, UNCLEAR])

    search = searched(CapacitySearch(8_000, 1e6, PRECISION, 3), outcome)
    if search.capacity is None:
        assert search.problem is not None
    else:
        assert 0.8 * 10_000 < search.capacity < 1.03 * 10_000


@pytest.mark.parametrize(("least", "said"), [(1_000, "no rate could be confirmed: 4 candidates"), (0, "not even")])
def test_a_rate_that_is_not_sustained_again_or_never_is_not_reported(least: float, said: str) -> None:
    search = CapacitySearch(1_000, 1e6, PRECISION, 3)
    searched(search, lambda offer: GROWING if offer.confirms or offer.records_per_second > least else BOUNDED)
    assert search.capacity is None
    assert said in str(search.problem)


def test_the_generators_own_limit_ends_the_search_and_is_said() -> None:
    search = searched(CapacitySearch(1_000, 5_000, PRECISION, 3), lambda offer: BOUNDED)
    assert (search.capacity, search.at_most_of_generator) == (5_000, True)
    assert max(step.offered for step in search.path) == 5_000


def test_an_invalid_trial_is_repeated_once_and_two_end_the_search() -> None:
    search = CapacitySearch(1_000, 1e6, PRECISION, 1)
    search.take(INVALID, problem="a service died")
    assert search.next() == Offer(1_000)
    search.take(BOUNDED)
    assert search.next() == Offer(1_400)
    search.take(INVALID, problem="a service died")
    search.take(INVALID, problem="a service died")
    assert search.next() is None
    assert search.capacity is None
    assert search.problem == "2 trials at 1,400 records/s were invalid: a service died"
