"""A record is what design.md says, of the asked length, none is like another, and its checksum is that of its value."""

import json
import zlib
from collections import Counter
from datetime import datetime, timedelta
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.checksum import checksum, crc_before_bench, parse
from loadgen.errors import OptionsError
from loadgen.forms import DOCUMENT, Form, added_bytes, has_envelope, has_schema, is_row, record_in, schema_of
from loadgen.options import load_from
from loadgen.records import LARGEST_BATCH, PAD_ALPHABET, Message, RecordMaker
from loadgen.tide import STEPS_BEFORE_REPEAT, Tide, load_stations, times
from sinkbench.plan.sections import LEAST_RECORD_BYTES
from tests.support.counts import count

DUE_US, SENT_US = 1769879160000000, 1769879160000123


def maker(**options: Any) -> RecordMaker:
    return RecordMaker(load_from({"bootstrap": "b", "topic": "t", "count": 10_000_000, **options}))


def make(records: RecordMaker, first: int, count: int, dues: bool = False) -> list[Message]:
    """With `dues` each record is due a microsecond after the one before."""
    made: list[Message] = []
    while len(made) < count:
        seq = first + len(made)
        few = min(records.longest_batch(seq), count - len(made))
        made += records.batch(seq, few, list(range(DUE_US + seq, DUE_US + seq + few)) if dues else DUE_US, SENT_US)
    return made


def value(message: Message) -> dict[str, Any]:
    return dict(json.loads(str(message["value"])))


def test_a_record_is_the_json_of_the_contract() -> None:
    message = maker(keys=3, run="r").batch(2, 1, DUE_US, SENT_US)[0]
    third = load_stations()[2]
    record = value(message)
    level = record["data"][0]
    where = {"id": third.id, "name": third.name, "lat": third.lat, "lon": third.lon}
    expected = {
        "metadata": {**where, "location": f"{third.lat},{third.lon}"},
        "data": [{"t": "2026-01-01 00:00", "v": level["v"], "s": level["s"], "f": level["f"], "q": "p"}],
        "bench": {"run": "r", "seq": 2, "due_us": DUE_US, "sent_us": SENT_US, "sum": checksum(record)},
    }
    assert record == expected
    assert [list(record), list(record["bench"])] == [list(expected), list(expected["bench"])]
    assert all(isinstance(each, str) for each in level.values())
    assert f"{float(level['v']):.3f}" == level["v"]
    assert message["key"] == third.id


@settings(max_examples=count(90, 18), deadline=None)
@given(
    form=st.sampled_from(get_args(Form)),
    run=st.text(min_size=1, max_size=30),
    keys=st.integers(1, 700),
    extra=st.none() | st.integers(0, 400),
    first=st.integers(0, 9_000_000),
    number=st.integers(1, 400),
    dues=st.booleans(),
)
def test_a_record_of_any_form_has_exactly_the_asked_bytes_and_its_checksum(
    form: Form, run: str, keys: int, extra: int | None, first: int, number: int, dues: bool
) -> None:
    size = 0 if extra is None else maker(run=run, keys=keys).smallest_bytes + extra
    messages = make(maker(run=run, keys=keys, form=form, record_bytes=size), first, number, dues)
    values = [str(message["value"]) for message in messages]
    assert len(set(values)) == number
    assert not size or {len(value.encode()) for value in values} == {size + added_bytes(form)}
    names = ["run", "seq", "due_us", "sent_us", *(["pad"] if size else [])]
    for seq, (message, value) in enumerate(zip(messages, values, strict=True), first):
        record = record_in(parse(value), form)
        row = record if is_row(form) else flat(record)
        assert [name for name in row if name.startswith("bench_")] == [f"bench_{name}" for name in names]
        assert (row["bench_run"], row["bench_seq"], row["bench_due_us"]) == (run, seq, DUE_US + seq * dues)
        assert message["key"] == row["metadata_id"]
        assert is_row(form) or (list(record["bench"])[-1], record["bench"]["sum"]) == ("sum", checksum(record))


def test_a_record_size_too_small_is_refused_with_the_smallest() -> None:
    smallest = maker(run="r").smallest_bytes
    maker(run="r", record_bytes=smallest)
    with pytest.raises(OptionsError, match=f"found {smallest - 1}.*needs {smallest},") as caught:
        maker(run="r", record_bytes=smallest - 1)
    assert "\n" not in str(caught.value)


def test_the_least_size_that_a_plan_may_give_is_enough_for_every_plan() -> None:
    # A million keys make a record two bytes longer than these do.
    run, longer = "ffffff_999_renamed_second", 2
    maker(run=run, keys=10_000, count=10**15, record_bytes=LEAST_RECORD_BYTES - longer)


def test_padding_neither_repeats_nor_compresses() -> None:
    pads = [value(message)["bench"]["pad"] for message in make(maker(record_bytes=1024), 0, 2000)]
    assert len(set(pads)) == len(pads)
    text = "".join(pads).encode()
    assert set(text) <= set(PAD_ALPHABET)
    assert len(zlib.compress(text, 9)) > 0.8 * len(text)


@pytest.mark.parametrize("keys", [1, 114, LARGEST_BATCH, LARGEST_BATCH + 1])
def test_records_go_round_the_keys_and_the_levels_of_one_key_are_six_minutes_apart(keys: int) -> None:
    made = make(maker(keys=keys), 0, 4 * keys)
    assert set(Counter(message["key"] for message in made).values()) == {4}
    for key in {0, keys - 1}:
        assert len({message["key"] for message in made[key::keys]}) == 1
        times = [value(message)["data"][0]["t"] for message in made[key::keys]]
        first = datetime(2026, 1, 1)
        assert times == [(first + number * timedelta(minutes=6)).strftime("%Y-%m-%d %H:%M") for number in range(4)]


def test_a_record_does_not_depend_on_its_batch_which_does_not_cross_a_change_of_digits() -> None:
    one_by_one = [maker(keys=7).batch(seq, 1, DUE_US, SENT_US)[0] for seq in range(40)]
    assert maker(keys=7).batch(0, 40, DUE_US, SENT_US) == one_by_one
    assert (maker().longest_batch(9_990), maker().longest_batch(10_000)) == (10, LARGEST_BATCH)


@given(first=st.integers(0, 10**8))
@settings(max_examples=count(30, 6))
def test_no_level_is_beyond_the_bound(first: int) -> None:
    tide = Tide(load_stations())
    assert int(np.abs(tide.levels_mm(first, 240)).max()) <= tide.highest_mm


def test_the_year_keeps_four_digits_however_long_the_load() -> None:
    assert len(times(STEPS_BEFORE_REPEAT - 1, 1)[0]) == 16
    assert times(STEPS_BEFORE_REPEAT, 1) == times(0, 1)


def made(form: Form) -> list[str]:
    return [str(each["value"]) for each in maker(keys=300, form=form).batch(5, 3, DUE_US, SENT_US)]


def flat(document: dict[str, Any]) -> dict[str, Any]:
    """A document as a row, which bears no checksum."""
    bench = {name: value for name, value in document["bench"].items() if name != "sum"}
    parts = {**document, "data": document["data"][0], "bench": bench}
    return {f"{part}_{name}": value for part, members in parts.items() for name, value in members.items()}


@pytest.mark.parametrize("form", get_args(Form))
def test_every_form_holds_the_values_of_the_document(form: Form) -> None:
    documents = [json.loads(value) for value in made(DOCUMENT)]
    records = [record_in(json.loads(value), form) for value in made(form)]
    assert records == ([flat(each) for each in documents] if is_row(form) else documents)


@pytest.mark.parametrize("form", [form for form in get_args(Form) if has_envelope(form)])
def test_an_envelope_is_that_of_an_insertion(form: Form) -> None:
    value = json.loads(made(form)[0])
    event = value["payload"] if has_schema(form) else value
    assert list(event) == ["before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]
    assert (event["before"], event["op"], event["ts_ms"]) == (None, "c", SENT_US // 1000)
    assert event["source"]["table"] == "tides"
    # Debezium's sink knows an envelope by this ending.
    assert schema_of(form)["name"].endswith(".Envelope")


def test_a_value_that_is_another_is_not() -> None:
    numbers = ["9007199254740993", "9007199254740992", "1", "true", '"1"', "1.5", '"1.5"']
    texts = ['"a"', '"a "', '"\\u00e9"', '"e\\u0301"']
    parts = ["null", "{}", '{"a": null}', '["a", "b"]', '["b", "a"]', '{"a": "b", "c": "d"}', '{"a": "d", "c": "b"}']
    each = [*numbers, *texts, *parts]
    assert len({checksum(parse(f'{{"x": {text}, "bench": {{"seq": 1}}}}')) for text in each}) == len(each)


def test_the_checksum_is_of_bench_too_but_not_of_itself() -> None:
    bench = {"run": "r", "seq": 7}
    record = {"x": 1, "bench": bench}
    assert checksum({"x": 1, "bench": {**bench, "sum": "00000000"}}) == checksum(record)
    assert checksum({"x": 1, "bench": {**bench, "pad": "x"}}) != checksum(record)
    assert record == {"x": 1, "bench": {"run": "r", "seq": 7}}


def test_a_record_that_is_nested_too_deeply_is_refused() -> None:
    nested: Any = {}
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises(ValueError, match="nested too deeply"):
        crc_before_bench(nested)
