"""Whether a sink holds what was sent."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.checksum import parse
from loadgen.dataset.store import Builder, DatasetMaker
from loadgen.records import made_by
from sinkbench.analysis.content import ChecksumAudit, Content, compare_content, documents_of
from tests.support.anyrecords import VALUES, changed, text_of
from tests.support.counts import count
from tests.support.respelled import respelled

DOCUMENT = {"metadata": {"id": "8454000", "name": "Providence"}, "data": {"v": "1.5", "q": "p"}, "bench": {"seq": 1}}


def test_the_same_document_is_not_altered_whatever_the_order_of_its_members() -> None:
    metadata = {"name": "Providence", "id": "8454000"}
    stored = {"bench": {"seq": 1}, "data": {"q": "p", "v": "1.5"}, "metadata": metadata}
    assert compare_content({1: DOCUMENT}, {1: stored}) == Content(1, 0, "")


@pytest.mark.parametrize(
    ("stored", "altered", "how"),
    [
        (
            {"metadata": {"id": "8454000"}, "data": {"v": 1.5, "q": "p"}, "bench": {"seq": 1}},
            1,
            "metadata.name gone, data.v changed",
        ),
        ("text", 1, "the whole document changed"),
        # What the sink has added alters nothing.
        ({**DOCUMENT, "ingested": "today"}, 0, ""),
    ],
)
def test_members_that_are_gone_or_changed_are_named(stored: Any, altered: int, how: str) -> None:
    found = compare_content({1: DOCUMENT}, {1: stored})
    assert (found.altered, found.how) == (altered, how)


def test_only_records_that_both_know_are_compared() -> None:
    assert compare_content({1: DOCUMENT, 2: DOCUMENT}, {2: DOCUMENT, 3: {}}) == Content(1, 0, "")
    assert compare_content({1: DOCUMENT}, {}) == Content()


def test_what_others_write_to_a_topic_ends_no_comparison() -> None:
    mine = b'{"bench": {"run": "r", "seq": 1}}'
    strange = [b"[" * 100_000, b'{"bench": {"run": "r", "seq": 1e999}}', b"\xff", b"{}", b"[]", b'{"bench": 1}', b"no"]
    others = [b'{"bench": {"run": "s", "seq": 8}}', b'{"bench": {"run": "r"}}']
    assert documents_of([*strange, *others, mine], "r") == {1: {"bench": {"run": "r", "seq": 1}}}


def test_many_members_are_named_by_the_first() -> None:
    sent = {seq: dict.fromkeys("abcde", 1) for seq in range(2)}
    assert compare_content(sent, {0: {}, 1: {"e": 2}}) == Content(
        2, 2, "a, b, c and 2 more gone, e changed; e from 1 to 2"
    )


def test_a_record_is_found_in_what_its_form_has_around_it() -> None:
    row = {"data_v": "1.5", "bench_run": "r", "bench_seq": 7}
    event = {"before": None, "after": row, "op": "c"}
    values = [
        json.dumps(each).encode() for each in ({"schema": {}, "payload": event}, {"payload": {"after": None}}, row)
    ]
    assert documents_of(values, "r", "row-debezium-schema") == {7: row}
    assert (documents_of(values, "r", "row"), documents_of(values, "r")) == ({7: row}, {})


RECORDS = st.lists(VALUES, min_size=1, max_size=3)


def judged(records: list[Any], stored: list[str]) -> list[int]:
    """How many records are altered by the comparison with the topic, and how many by checksum alone."""
    builder = Builder()
    for record in records:
        builder.add(f'{{"own":{text_of(record)}}}'.encode(), None)
    values = made_by(DatasetMaker(builder.build("here", whole=True), "r"), 0, len(records))
    sent = documents_of(values, "r")
    assert list(sent) == list(range(len(records)))
    documents = {seq: {**sent[seq], "own": parse(text)} for seq, text in enumerate(stored)}
    by_checksum = ChecksumAudit(len(records), Content())
    by_checksum.add(documents.values())
    assert by_checksum.result().checked == len(records)
    return [compare_content(sent, documents).altered, by_checksum.result().altered]


@settings(max_examples=count(2_000, 100), deadline=None)
@given(RECORDS, st.randoms(use_true_random=False))
def test_what_a_text_pipeline_or_jsonb_keeps_is_never_altered(records: list[Any], draw: Any) -> None:
    assert judged(records, [respelled(parse(text_of(record)), draw) for record in records]) == [0, 0]


@settings(max_examples=count(2_000, 100), deadline=None)
@given(RECORDS, st.data())
def test_one_other_digit_character_or_member_always_is(records: list[Any], data: Any) -> None:
    place = data.draw(st.integers(0, len(records) - 1))
    stored = [*records]
    stored[place] = data.draw(changed(records[place]))
    assert judged(records, list(map(text_of, stored))) == [1, 1]


@pytest.mark.parametrize(
    ("sent", "stored", "how"),
    [
        ("18446744073709551615", "-1", "changed; x from 18446744073709551615 to -1, read as a long by the connector"),
        ("0.1234567890123456789", "0.12345678901234568", "0.12345678901234568, read as a double by the connector"),
        ("[12345678901234567890.5]", "[1.2345678901234567E19]", "x.0 changed; x.0 from 12345678901234567890.5 to "),
        ("1", "true", "x changed"),
        ("7", "8", "x changed; x from 7 to 8"),
    ],
)
def test_what_made_another_number_of_one_is_said(sent: str, stored: str, how: str) -> None:
    assert how in compare_content(*({1: parse(f'{{"x": {text}}}')} for text in (sent, stored))).how
