"""Six counts of the same records, held against one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.reconcile import WORDS, reconcile
from sinkbench.results import Reconciliation


def counts(**different: int | None) -> Reconciliation:
    return Reconciliation(**{**dict.fromkeys(WORDS, 1000), **different})


@pytest.mark.parametrize(
    ("different", "text"),
    [
        ({"sent": 1010}, "1,010 sent, but 1,000 acknowledged"),
        ({"sent": 1010, "acknowledged": 1010}, "1,010 acknowledged, but 1,000 in the topic"),
        ({"consumed": 990, "put": 990, "stored": 990}, "1,000 in the topic, but 990 committed as read"),
        ({"put": 900}, "1,000 committed as read, but 900 put to the sink by the tasks"),
        ({"stored": 995}, "1,000 put to the sink by the tasks, but 995 stored"),
    ],
)
def test_records_missing_from_one_count_to_the_next_are_named_with_both_and_make_a_trial_invalid(
    different: dict[str, int], text: str
) -> None:
    first = reconcile(counts(**different))[0]
    assert (first.text, first.invalid) == (text, True)


def test_records_that_went_twice_are_noted_and_the_trial_stands() -> None:
    (found,) = reconcile(counts(put=1200, stored=1200))
    assert found.text == "1,000 committed as read, but 1,200 put to the sink by the tasks (some twice)"
    assert not found.invalid


def test_records_put_twice_do_not_hide_that_some_were_lost() -> None:
    found = reconcile(counts(put=1200, stored=990))
    assert [each.text for each in found if each.invalid] == [
        "1,200 put to the sink by the tasks, but 990 stored",
        "1,000 in the topic, but 990 stored",
    ]


def test_records_put_twice_and_stored_once_are_no_loss() -> None:
    assert not [each for each in reconcile(counts(put=1200)) if each.invalid]


def test_a_count_that_is_not_known_is_passed_over() -> None:
    assert (reconcile(Reconciliation()), reconcile(counts(put=None, consumed=None))) == ([], [])
    (found,) = reconcile(counts(put=None, consumed=None, stored=900))
    assert found.text == "1,000 in the topic, but 900 stored"


@given(st.fixed_dictionaries({name: st.none() | st.integers(0, 5) for name in WORDS}))
def test_nothing_is_said_exactly_if_all_known_counts_are_equal(values: dict[str, int | None]) -> None:
    known = {value for value in values.values() if value is not None}
    assert (reconcile(Reconciliation(**values)) == []) == (len(known) <= 1)


@given(st.fixed_dictionaries({name: st.none() | st.integers(0, 5) for name in WORDS}))
def test_less_stored_than_is_in_the_topic_is_always_invalid(values: dict[str, int | None]) -> None:
    whole, stored = values["in_topic"], values["stored"]
    if whole is not None and stored is not None and stored < whole:
        assert any(each.invalid for each in reconcile(Reconciliation(**values)))
