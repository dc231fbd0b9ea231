"""A record's checksum stays the same whatever a sink may do to its text, and differs if its value does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.checksum import checksum, crc_before_bench, parse
from loadgen.forms import FORMS, Form, is_row, record_in
from loadgen.options import load_from
from loadgen.records import RecordMaker
from tests.support.counts import count

DUE_US, SENT_US = 1769879160000000, 1769879160000123


def record_of(members: dict[str, Any], **bench: Any) -> dict[str, Any]:
    return {**members, "bench": {"run": "r", "seq": 7, **bench}}


@settings(max_examples=count(40, 8), deadline=None)
@given(
    form=st.sampled_from([form for form in FORMS if not is_row(form)]),
    run=st.text(min_size=1, max_size=30),
    keys=st.integers(1, 700),
    first=st.integers(0, 9_000_000),
    record_bytes=st.sampled_from([0, 800]),
    dues=st.booleans(),
)
def test_every_record_of_noaa_bears_its_checksum(
    form: Form, run: str, keys: int, first: int, record_bytes: int, dues: bool
) -> None:
    options = {"bootstrap": "b", "topic": "t", "count": 10_000_000, "keys": keys, "form": form}
    maker = RecordMaker(load_from({**options, "run": run, "record_bytes": record_bytes}))
    count = min(300, maker.longest_batch(first))
    due_us: Any = list(range(DUE_US, DUE_US + count)) if dues else DUE_US
    for message in maker.batch(first, count, due_us, SENT_US):
        record = record_in(parse(str(message["value"])), form)
        assert list(record["bench"])[-1] == "sum"
        assert record["bench"]["sum"] == checksum(record)


def checksums(*texts: str) -> list[str]:
    """Of records that have these JSON texts as a member."""
    return [checksum(parse(f'{{"x": {text}, "bench": {{"seq": 1}}}}')) for text in texts]


def test_a_value_that_is_another_is_not() -> None:
    numbers = ["9007199254740993", "9007199254740992", "1", "true", '"1"', "1.5", '"1.5"']
    texts = ['"a"', '"a "', '"\\u00e9"', '"e\\u0301"']
    parts = ["null", "{}", '{"a": null}', '["a", "b"]', '["b", "a"]', '{"a": "b", "c": "d"}', '{"a": "d", "c": "b"}']
    each = [*numbers, *texts, *parts]
    assert len(set(checksums(*each))) == len(each)


def test_the_checksum_is_of_bench_too_but_not_of_itself() -> None:
    record = record_of({"x": 1})
    assert checksum(record_of({"x": 1}, sum="00000000")) == checksum(record)
    assert checksum(record_of({"x": 1}, pad="x")) != checksum(record)
    assert record == {"x": 1, "bench": {"run": "r", "seq": 7}}


def test_a_record_that_is_nested_too_deeply_is_refused() -> None:
    nested: Any = {}
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises(ValueError, match="nested too deeply"):
        crc_before_bench(nested)
