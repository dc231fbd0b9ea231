"""The audit: exact counts of what was lost, stored twice or stale, and six counts held against one another."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.audit import WORDS, SeqAudit, VersionAudit, few_ranges, reconcile
from sinkbench.results import Reconciliation


def audit_of(expected_count: int, *chunks: list[int]) -> SeqAudit:
    audit = SeqAudit(expected_count)
    for chunk in chunks:
        audit.add(np.array(chunk, dtype=np.int64))
    return audit


def test_a_record_stored_more_than_255_times_is_counted_in_full() -> None:
    assert audit_of(2, [1] * 70_000).result().duplicates == 69_999


def test_records_that_are_lost_or_stored_twice_are_told_as_ranges() -> None:
    audit = audit_of(1000, [*range(17), *range(517, 900), *range(901, 1000)])
    assert [audit.lost_ranges(limit=limit) for limit in (1, 2)] == ["17-516 and 1 more", "17-516, 900"]
    assert audit_of(10, [0, 1, 1, 2], [2, 3, 9], [9, 9, 9]).duplicated_ranges(limit=1) == "1-2 and 1 more"


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        ("7", "7"),
        ("1, 3, 5-6", "1, 3, 5-6"),
        ("1, 3, 5-6, 8", "1, 3, 5-6 and 1 more range; all are in trials.jsonl"),
        ("1, 3, 5-6, 8, 10", "1, 3, 5-6 and 2 more ranges; all are in trials.jsonl"),
        ("1, 3, 5-6, 8 and 40 more", "1, 3, 5-6 and 41 more ranges; the first 4 are in trials.jsonl"),
        # An earlier sinkbench kept no more.
        ("1, 3 and 2000 more", "1, 3 and 2,000 more ranges"),
    ],
)
def test_a_few_ranges_are_shown_and_the_rest_is_counted(kept: str, shown: str) -> None:
    assert few_ranges(kept, 3) == shown


@given(expected_count=st.integers(0, 30), chunks=st.lists(st.lists(st.integers(-5, 40), max_size=30), max_size=5))
def test_it_agrees_with_counting_one_by_one(expected_count: int, chunks: list[list[int]]) -> None:
    counted = Counter(seq for chunk in chunks for seq in chunk)
    ours = {seq: count for seq, count in counted.items() if 0 <= seq < expected_count}
    result = audit_of(expected_count, *chunks).result()
    assert (result.stored, result.foreign) == (counted.total(), counted.total() - sum(ours.values()))
    assert (result.lost, result.duplicates) == (expected_count - len(ours), sum(count - 1 for count in ours.values()))
    audit = audit_of(expected_count, *chunks)
    assert numbers(audit.lost_ranges()) == [seq for seq in range(expected_count) if seq not in ours]
    assert numbers(audit.duplicated_ranges()) == sorted(seq for seq, count in ours.items() if count > 1)


def numbers(ranges: str) -> list[int]:
    ends = [each.split("-") for each in ranges.split(", ") if each]
    return [seq for each in ends for seq in range(int(each[0]), int(each[-1]) + 1)]


def test_a_dead_letter_is_not_lost_unless_it_is_stored_after_all() -> None:
    audit = SeqAudit(6)
    audit.add([0, 1, 2])
    audit.add_dead([2, 3, 4, 4, 17, -1])
    found = audit.result()
    assert (found.stored, found.dead_letters, found.lost, found.clean) == (3, 2, 1, False)
    assert audit.lost_ranges() == "5"


# "a" and "b" are there, "c" was deleted, and no record had "d".
LAST, THERE = np.array([7, 8, 9, -1]), np.array([True, True, False, False])


def audit(*rows: tuple[str, int]) -> VersionAudit:
    found = VersionAudit(10, ["a", "b", "c", "d"], LAST, THERE)
    found.add([key for key, _ in rows], np.array([seq for _, seq in rows], dtype=np.int64))
    return found


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([("a", 3), ("b", 8)], {"stale": ["a"]}),
        ([("b", 8)], {"missing": ["a"]}),
        ([("a", 7), ("b", 8), ("c", 5)], {"not_deleted": ["c"]}),
        ([("b", 1), ("c", 5)], {"stale": ["b"], "missing": ["a"], "not_deleted": ["c"]}),
    ],
)
def test_what_is_wrong_is_named_by_its_kind_and_key(rows: list[tuple[str, int]], wrong: dict[str, list[str]]) -> None:
    found = audit(*rows)
    assert found.wrong_keys() == wrong
    result = found.result()
    assert not result.clean
    assert {what: getattr(result, what) for what in wrong} == {what: len(keys) for what, keys in wrong.items()}
    assert result.lost == result.duplicates == result.foreign == 0


def test_rows_beyond_the_first_of_a_key_are_duplicates_and_stale_if_one_of_them_is() -> None:
    result = audit(("a", 7), ("a", 3), ("b", 8)).result()
    assert (result.stale, result.duplicates, result.missing) == (1, 1, 0)


def test_rows_of_keys_that_no_record_had_are_foreign() -> None:
    found = audit(("a", 7), ("b", 8), ("d", 1), ("of somebody", 1))
    found.add_foreign(3)
    assert found.result().foreign == 5


def test_only_the_first_keys_are_named() -> None:
    keys = [f"k{number}" for number in range(9)]
    found = VersionAudit(9, keys, np.arange(9), np.ones(9, dtype=np.bool_))
    assert found.wrong_keys(2) == {"missing": ["k0", "k1"]}
    assert found.result().missing == 9


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(-1, 20), st.booleans()), max_size=30))
def test_the_counts_always_reconcile_whatever_the_chunks(rows: list[tuple[int, int, bool]]) -> None:
    keys = [f"k{number}" for number in range(6)]
    last = np.array([5, 6, 7, 8, -1, -1])
    found = VersionAudit(20, keys, last, np.array([True, True, False, False, False, False]))
    for key, seq, alone in rows:
        found.add([f"k{key}"] * (1 if alone else 2), np.full(1 if alone else 2, seq))
    result = found.result()
    assert result.stored == sum(1 if alone else 2 for *_, alone in rows)
    assert result.superseded == 18


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
