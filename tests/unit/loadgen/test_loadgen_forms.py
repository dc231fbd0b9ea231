"""The forms of a record: the same values in each, in what the converters and Debezium's sink expect around them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.errors import OptionsError
from loadgen.forms import DOCUMENT, FORMS, Form, added_bytes, has_envelope, has_schema, is_row, record_in, schema_of
from loadgen.options import load_from
from loadgen.records import RecordMaker
from tests.support.counts import count

DUE_US, SENT_US = 1769879160000000, 1769879160000123


def made(form: Form, first: int = 5, count: int = 3, **options: Any) -> list[str]:
    load = load_from({"bootstrap": "b", "topic": "t", "count": 10_000_000, "keys": 300, "form": form, **options})
    return [str(each["value"]) for each in RecordMaker(load).batch(first, count, DUE_US, SENT_US)]


def flat(document: dict[str, Any]) -> dict[str, Any]:
    """A document as a row, which bears no checksum."""
    bench = {name: value for name, value in document["bench"].items() if name != "sum"}
    parts = {**document, "data": document["data"][0], "bench": bench}
    return {f"{part}_{name}": value for part, members in parts.items() for name, value in members.items()}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_values_of_the_document(form: Form) -> None:
    documents = [json.loads(value) for value in made(DOCUMENT)]
    records = [record_in(json.loads(value), form) for value in made(form)]
    assert records == ([flat(each) for each in documents] if is_row(form) else documents)


@pytest.mark.parametrize("form", [form for form in FORMS if has_envelope(form)])
def test_an_envelope_is_that_of_an_insertion(form: Form) -> None:
    value = json.loads(made(form)[0])
    event = value["payload"] if has_schema(form) else value
    assert list(event) == ["before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]
    assert (event["before"], event["op"], event["ts_ms"]) == (None, "c", SENT_US // 1000)
    assert event["source"]["table"] == "tides"
    # Debezium's sink knows an envelope by this ending.
    assert schema_of(form)["name"].endswith(".Envelope")


@settings(max_examples=count(40, 8), deadline=None)
@given(form=st.sampled_from(FORMS), run=st.text(min_size=1, max_size=30), first=st.integers(0, 9_000_000))
def test_a_form_adds_as_many_bytes_to_every_padded_record(form: Form, run: str, first: int) -> None:
    values = made(form, first, 2, run=run, record_bytes=700)
    assert {len(value.encode()) for value in values} == {700 + added_bytes(form)}
    records = [record_in(json.loads(value), form) for value in values]
    assert [each["bench_run"] if is_row(form) else each["bench"]["run"] for each in records] == [run] * 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"form": "rows"}, r"form: found 'rows'; input should be 'document', "),
        ({"changes": {"inserts": 0.5, "updates": 0.5}, "form": "row"}, "changes are made of documents alone"),
    ],
)
def test_a_form_that_cannot_be_made_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionsError, match=said):
        load_from({"bootstrap": "b", "topic": "t", "count": 10, **options})
