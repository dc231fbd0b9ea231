"""Six counts of the same records, held against one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.audit import WORDS, reconcile
from sinkbench.results import Reconciliation

PUT_TWICE = "1,000 committed as read, but 1,200 put to the sink by the tasks (some twice)"


@pytest.mark.parametrize(
    ("different", "found"),
    [
        ({"sent": 1010}, {"1,010 sent, but 1,000 acknowledged": True}),
        ({"sent": 1010, "acknowledged": 1010}, {"1,010 acknowledged, but 1,000 in the topic": True}),
        ({"put": None, "consumed": None, "stored": 900}, {"1,000 in the topic, but 900 stored": True}),
        ({"put": None, "consumed": None}, {}),
        ({"put": 1200, "stored": 1200}, {PUT_TWICE: False}),
        # What was put twice and stored once is no loss, and does not hide one.
        ({"put": 1200}, {PUT_TWICE: False, "1,200 put to the sink by the tasks, but 1,000 stored (some twice)": False}),
        (
            {"put": 1200, "stored": 990},
            {
                PUT_TWICE: False,
                "1,200 put to the sink by the tasks, but 990 stored": True,
                "1,000 in the topic, but 990 stored": True,
            },
        ),
    ],
)
def test_counts_that_differ_are_named_with_both_and_lost_records_make_a_trial_invalid(
    different: dict[str, int], found: dict[str, bool]
) -> None:
    assert reconcile(Reconciliation(**{**dict.fromkeys(WORDS, 1000), **different})) == found


@given(st.fixed_dictionaries({name: st.none() | st.integers(0, 5) for name in WORDS}))
def test_less_stored_than_is_in_the_topic_is_always_invalid_and_equal_counts_never(
    values: dict[str, int | None],
) -> None:
    found = reconcile(Reconciliation(**values))
    assert bool(found) == (len({value for value in values.values() if value is not None}) > 1)
    whole, stored = values["in_topic"], values["stored"]
    if whole is not None and stored is not None and stored < whole:
        assert any(found.values())
