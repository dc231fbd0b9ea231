"""The audit by key: stale, missing and not deleted keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.audit import VersionAudit

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
