"""Which rates may be quoted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.errors import ReasonCode
from sinkbench.metrics.taken import at_least, quotable, rated
from sinkbench.results import Audit, TrialRecord
from tests.support.present import present
from tests.support.trials import trial


def taken(*rates: float, **fields: object) -> list[TrialRecord]:
    return [trial(rate, block=block, **fields) for block, rate in enumerate(rates, start=1)]


@pytest.mark.parametrize(
    "trials",
    [
        taken(1_000, 1_100, 990, warm=True, steady=True, compiling_share=0.02),
        # Whether they were warm and steady is not known.
        taken(1_000, 1_100, 990),
        [],
        # They rise by little, not each time, or once.
        taken(1_000, 1_100, 1_200),
        taken(229, 476, 343),
        taken(229, 476),
        taken(229, 343, 476, offered_records_per_second=500.0),
    ],
)
def test_what_is_warm_steady_or_not_known_may_be_quoted(trials: list[TrialRecord]) -> None:
    assert at_least(trials) is None


@pytest.mark.parametrize("unfit", [{"warm": False}, {"others": ["another connector"]}])
def test_a_single_trial_that_was_not_warm_or_not_alone_is_left_out(unfit: dict[str, object]) -> None:
    trials = [*taken(300, **unfit), *taken(476, 480, warm=True)]
    assert at_least(trials) is None
    assert [each.records_per_second for each in rated(trials)] == [476, 480]


def test_only_valid_trials_of_a_warm_cell_are_compared_and_no_pilots() -> None:
    assert quotable(taken(300, 500, warm=False)) == []
    assert quotable([*taken(9, pilot=True), *taken(8, invalid=["x"]), *taken(476)]) == taken(476)


BEST = {"fastest_trial": 476, "records_per_second": 476}


def test_a_cell_most_of_whose_trials_were_not_warm_is_still_warming() -> None:
    found = present(at_least([*taken(229, 343, warm=False, compiling_share=0.44), *taken(476, warm=True)]))
    assert (found.code, found.figures) == (ReasonCode.NOT_WARM, BEST)
    assert found.text == "still warming: compilers took up to 44 % of the CPU time in 2 of 3 trials"


BY_HAND = "another connector, by-hand, ran 3 tasks on these workers"


def test_a_cell_most_of_whose_trials_were_not_alone_surely_reaches_its_best_rate() -> None:
    trials = [*taken(900, 800, others=[BY_HAND]), *taken(1_000)]
    found = present(at_least(trials))
    assert (found.code, found.figures) == (ReasonCode.SHARED, {"fastest_trial": 1_000, "records_per_second": 1_000})
    assert found.text == f"not alone in 2 of 3 trials: {BY_HAND}"
    assert at_least(taken(900, mode="capacity", offered_records_per_second=900, others=[BY_HAND])) is not None


def test_content_that_was_not_checked_may_not_be_quoted_and_is_named_where_there_is_no_rate_either() -> None:
    unchecked = Audit(produced=100, stored=100, lost=0, duplicates=0, checked=0)
    found = present(at_least([*taken(900), *taken(1_000, audit=unchecked)]))
    assert (found.code, found.figures) == (ReasonCode.CONTENT_NOT_CHECKED, {"fastest_trial": 1_000})
    found = present(at_least([trial(None, audit=unchecked)]))
    assert (found.code, found.figures) == (ReasonCode.CONTENT_NOT_CHECKED, {})


def test_a_constant_load_is_the_same_for_who_is_not_alone() -> None:
    trials = taken(500, 500, mode="sustain", offered_records_per_second=500, others=[BY_HAND])
    assert at_least(trials) is None
    assert rated(trials) == trials


@pytest.mark.parametrize("warm", [True, None])
def test_trials_that_rise_are_still_warming_whatever_the_jvms_say(warm: bool | None) -> None:
    found = present(at_least(taken(229, 343, 476, warm=warm)))
    assert (found.code, found.figures) == (ReasonCode.RISING, BEST)
    assert found.text == "still warming: each trial was faster than the one before, 229 to 476 records/s"


def test_a_rate_that_was_not_steady_bounds_nothing() -> None:
    found = present(at_least(taken(900, 400, 800, warm=True, steady=False)))
    assert (found.code, found.figures) == (ReasonCode.NOT_STEADY, {"fastest_trial": 900})
    assert at_least([*taken(900, steady=False), *taken(400, 800, steady=True)]) is None


@pytest.mark.parametrize(("ahead", "bounded"), [(100_000, True), (100_001, False), (None, True)])
def test_trials_whose_tasks_read_far_ahead_of_the_sink_are_no_lower_bound(ahead: int | None, bounded: bool) -> None:
    trials = taken(229, 343, 476, warm=False, records=1_000_000, read_ahead_records=ahead)
    assert ("records_per_second" in present(at_least(trials)).figures) is bounded


@given(st.lists(st.tuples(st.floats(1, 1e6), st.sampled_from([True, False, None])), min_size=1, max_size=8))
def test_what_it_is_at_least_is_its_fastest_trial(seen: list[tuple[float, bool | None]]) -> None:
    trials = [trial(rate, warm=warm) for rate, warm in seen]
    found = at_least(trials)
    if found is not None:
        assert set(found.figures.values()) == {max(rate for rate, _ in seen)}
