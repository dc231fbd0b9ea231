"""Loads of changes: what is drawn, and what is left of it."""

import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.changestream import DRAWN_AT_ONCE, ChangeMaker, ChangeStream, last_versions
from loadgen.options import Changes, Load, load_from
from loadgen.records import key_names

EVEN = Changes(inserts=0.4, updates=0.3, deletes=0.3)
NOW_US = 1_769_879_160_000_000


@st.composite
def any_changes(draw: st.DrawFn) -> Changes:
    inserts = draw(st.floats(0.01, 1))
    updates = draw(st.floats(0, 1 - inserts))
    skew, exponent = draw(st.sampled_from(["uniform", "zipf"])), draw(st.floats(0.1, 4))
    rest = max(0.0, 1 - inserts - updates)
    seed = draw(st.integers(0, 99))
    return Changes(inserts=inserts, updates=updates, deletes=rest, skew=skew, exponent=exponent, seed=seed)


def drawn(of: Changes, keys: int, records: int) -> list[tuple[int, bool]]:
    blocks = islice(ChangeStream(of, keys).blocks(), records // DRAWN_AT_ONCE + 1)
    pairs = [pair for block in blocks for pair in zip(*(part.tolist() for part in block), strict=True)]
    return pairs[:records]


@given(any_changes(), st.integers(1, 50), st.integers(0, 2 * DRAWN_AT_ONCE))
def test_only_keys_that_are_there_are_deleted_and_what_is_left_is_known(of: Changes, keys: int, records: int) -> None:
    state: dict[int, tuple[int, bool]] = {}
    for seq, (key, deletes) in enumerate(drawn(of, keys, records)):
        assert 0 <= key < keys
        assert not deletes or state.get(key, (0, False))[1]
        state[key] = (seq, not deletes)
    left = zip(*(found.tolist() for found in last_versions(of, keys, records)), strict=True)
    assert {key: found for key, found in enumerate(left) if found[0] >= 0} == state


def test_the_same_seed_gives_the_same_changes_and_another_one_others() -> None:
    other = EVEN.model_copy(update={"seed": 1})
    assert drawn(EVEN, 100, 500) == drawn(EVEN, 100, 500) != drawn(other, 100, 500)


def test_records_are_shared_out_as_was_asked() -> None:
    kinds = drawn(Changes(inserts=0.5, updates=0.3, deletes=0.2), 1_000_000, 100_000)
    seen: set[int] = set()
    inserts = 0
    for key, deletes in kinds:
        inserts += not deletes and key not in seen
        (seen.discard if deletes else seen.add)(key)
    assert inserts / len(kinds) == pytest.approx(0.5, abs=0.01)
    assert sum(deletes for _, deletes in kinds) / len(kinds) == pytest.approx(0.2, abs=0.01)


def test_where_all_keys_are_there_an_insert_is_an_update() -> None:
    last, there = last_versions(Changes(inserts=1, updates=0), 10, 1_000)
    assert there.all()
    assert last.max() == 999


def test_zipf_updates_few_keys_mostly_as_its_exponent_says() -> None:
    full = Changes(inserts=0.01, updates=0.99, skew="zipf", exponent=1.0)
    keys = [key for key, _ in drawn(full, 100, 400_000)][200_000:]
    counts = np.sort(np.bincount(keys, minlength=100))[::-1] / len(keys)
    # The density 1 / x between 1 and 101: its first unit has log(2) / log(101) of it.
    assert counts[0] == pytest.approx(np.log(2) / np.log(101), rel=0.05)
    assert counts[9] == pytest.approx(np.log(11 / 10) / np.log(101), rel=0.15)
    even = [key for key, _ in drawn(full.model_copy(update={"skew": "uniform"}), 100, 400_000)][200_000:]
    assert np.bincount(even).max() / len(even) < 0.013


def load(**more: object) -> Load:
    options = {"bootstrap": "-", "topic": "t", "count": 10_000, "keys": 50, "changes": EVEN.model_dump()}
    return load_from({**options, **more})


@pytest.mark.parametrize("record_bytes", [0, 512])
def test_records_bear_the_keys_that_were_drawn_whatever_the_batches(record_bytes: int) -> None:
    maker = ChangeMaker(load(record_bytes=record_bytes), EVEN)
    names, expected = key_names(50), drawn(EVEN, 50, 5_000)
    seq = 0
    while seq < 5_000:
        count = min(1 + seq % 97, maker.longest_batch(seq), 5_000 - seq)
        batch = maker.batch(seq, count, NOW_US, NOW_US)
        for record, (key, deletes) in zip(batch, expected[seq : seq + count], strict=True):
            assert record["key"] == names[key]
            assert (record["value"] is None) == deletes
            if not deletes:
                value = json.loads(str(record["value"]))
                assert (value["bench"]["seq"], value["metadata"]["id"]) == (seq, names[key])
                assert len(str(record["value"])) == record_bytes or not record_bytes
            seq += 1


def test_records_are_made_in_their_order_alone() -> None:
    maker = ChangeMaker(load(), EVEN)
    with pytest.raises(ValueError, match="next record is 0, found 5"):
        maker.batch(5, 1, 1, 2)
