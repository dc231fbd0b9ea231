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
        # One that was not steady does not count.
        [*taken(900, steady=False), *taken(400, 800, steady=True)],
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


BY_HAND = "another connector, by-hand, ran 3 tasks on these workers"
OFFERED = {"mode": "capacity", "offered_records_per_second": 476}
UNCHECKED = {"audit": Audit(produced=100, stored=100, lost=0, duplicates=0, checked=0)}
COLD = [*taken(229, 343, warm=False, compiling_share=0.44), *taken(476, warm=True)]
HOT = "still warming: compilers took up to 44 % of the CPU time in 2 of 3 trials"
RISING = "still warming: each trial was faster than the one before, 229 to 476 records/s"


@pytest.mark.parametrize(
    ("trials", "code", "bounded", "text"),
    [
        (COLD, ReasonCode.NOT_WARM, True, HOT),
        (
            [*taken(300, 400, others=[BY_HAND]), *taken(476)],
            ReasonCode.SHARED,
            True,
            f"not alone in 2 of 3 trials: {BY_HAND}",
        ),
        (taken(476, others=[BY_HAND], **OFFERED), ReasonCode.SHARED, True, "not alone in its only trial"),
        ([*taken(400), *taken(476, **UNCHECKED)], ReasonCode.CONTENT_NOT_CHECKED, False, "in 1 of 2 trials"),
        # Whatever the JVMs say.
        *((taken(229, 343, 476, warm=warm), ReasonCode.RISING, True, RISING) for warm in (True, None)),
        (taken(476, 200, 400, warm=True, steady=False), ReasonCode.NOT_STEADY, False, "at the end of 3 of 3 trials"),
    ],
)
def test_a_cell_most_of_whose_trials_are_unfit_surely_reaches_its_best_rate_at_most(
    trials: list[TrialRecord], code: str, bounded: bool, text: str
) -> None:
    found = present(at_least(trials))
    assert (found.code, found.figures.pop("fastest_trial")) == (code, 476)
    assert found.figures == ({"records_per_second": 476} if bounded else {})
    assert text in found.text


def test_content_that_was_not_checked_is_named_where_there_is_no_rate_either() -> None:
    found = present(at_least([trial(None, **UNCHECKED)]))
    assert (found.code, found.figures) == (ReasonCode.CONTENT_NOT_CHECKED, {})


def test_a_constant_load_is_the_same_for_who_is_not_alone() -> None:
    trials = taken(500, 500, mode="sustain", offered_records_per_second=500, others=[BY_HAND])
    assert at_least(trials) is None
    assert rated(trials) == trials


@pytest.mark.parametrize(("ahead", "bounded"), [(100_000, True), (100_001, False), (None, True)])
def test_trials_whose_tasks_read_far_ahead_of_the_sink_are_no_lower_bound(ahead: int | None, bounded: bool) -> None:
    trials = taken(229, 343, 476, warm=False, records=1_000_000, read_ahead_records=ahead)
    assert ("records_per_second" in present(at_least(trials)).figures) is bounded


@given(st.lists(st.tuples(st.floats(1, 1e6), st.sampled_from([True, False, None])), min_size=1, max_size=8))
def test_what_it_is_at_least_is_its_fastest_trial(seen: list[tuple[float, bool | None]]) -> None:
    found = at_least([trial(rate, warm=warm) for rate, warm in seen])
    if found is not None:
        assert set(found.figures.values()) == {max(rate for rate, _ in seen)}
