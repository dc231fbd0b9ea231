"""The audit: exact counts of what was lost and what was stored twice."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.audit import SeqAudit, few_ranges


def audit_of(expected_count: int, *chunks: list[int]) -> SeqAudit:
    audit = SeqAudit(expected_count)
    for chunk in chunks:
        audit.add(np.array(chunk, dtype=np.int64))
    return audit


def test_a_record_stored_more_than_255_times_is_counted_in_full() -> None:
    assert audit_of(2, [1] * 70_000).result().duplicates == 69_999


def test_lost_records_are_told_as_ranges() -> None:
    audit = audit_of(1000, [*range(17), *range(517, 900), *range(901, 1000)])
    assert [audit.lost_ranges(limit=limit) for limit in (1, 2)] == ["17-516 and 1 more", "17-516, 900"]


def test_records_that_are_stored_twice_are_told_as_ranges() -> None:
    # Within a chunk, and in two.
    audit = audit_of(10, [0, 1, 1, 2], [2, 3, 9], [9, 9, 9])
    assert (audit.duplicated_ranges(), audit.duplicated_ranges(limit=1)) == ("1-2, 9", "1-2 and 1 more")


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
