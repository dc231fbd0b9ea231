"""Whether a sink holds what was sent, by what the topic shows and by the checksums that records bear."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.checksum import parse
from loadgen.dataset.store import DatasetMaker
from loadgen.options import load_from
from loadgen.records import made_by, records_of
from sinkbench.analysis.content import ChecksumAudit, Content, bear_checksums, compare_content, documents_of, one_in
from tests.support.anyrecords import VALUES, changed, text_of
from tests.support.counts import count
from tests.support.respelled import respelled
from tests.unit.loadgen.test_loadgen_dataset import built

DOCUMENT = {"metadata": {"id": "8454000", "name": "Providence"}, "data": {"v": "1.5", "q": "p"}, "bench": {"seq": 1}}


@pytest.mark.parametrize(
    ("stored", "altered", "how"),
    [
        (
            {"metadata": {"id": "8454000"}, "data": {"v": 1.5, "q": "p"}, "bench": {"seq": 1}},
            1,
            "metadata.name gone, data.v changed",
        ),
        ("text", 1, "the whole document changed"),
        # What the sink has added alters nothing, and no order of members does.
        ({**DOCUMENT, "ingested": "today"}, 0, ""),
        ({name: dict(reversed(part.items())) for name, part in reversed(DOCUMENT.items())}, 0, ""),
    ],
)
def test_members_that_are_gone_or_changed_are_named(stored: Any, altered: int, how: str) -> None:
    found = compare_content({1: DOCUMENT}, {1: stored})
    assert (found.compared, found.altered, found.how) == (1, altered, how)


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
    dataset = built([f'{{"own":{text_of(record)}}}'.encode() for record in records])
    sent = documents_of(made_by(DatasetMaker(dataset, "r"), 0, len(records)), "r")
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


COUNT = 2_000
MADE = records_of(
    load_from({"bootstrap": "b", "topic": "t", "run": "r", "count": COUNT, "keys": 50, "record_bytes": 512})
)


def stored() -> list[Any]:
    return [parse(value) for value in MADE]


def checked(documents: list[Any], few: Content | None = None) -> Content:
    audit = ChecksumAudit(COUNT, few or Content())
    audit.add(documents[:700])
    audit.add(documents[700:])
    return audit.result()


@given(st.integers(0, COUNT - 1), st.sampled_from(["pad", "sent_us", "v", "more", "sum"]))
def test_one_changed_record_is_found(seq: int, what: str) -> None:
    documents = stored()
    documents[seq] = changed = copy.deepcopy(documents[seq])
    if what == "pad":
        changed["bench"]["pad"] = changed["bench"]["pad"][:-1] + "\u00e9"
    elif what == "sent_us":
        changed["bench"]["sent_us"] += 1
    elif what == "v":
        changed["data"][0]["v"] = float(changed["data"][0]["v"])
    elif what == "more":
        changed["ingested"] = "today"
    else:
        del changed["bench"]["sum"]
    found = checked(documents)
    assert (found.compared, found.altered, found.altered_ranges) == (COUNT, 1, f"{seq}")


def test_records_that_have_taken_the_contents_of_each_other_are_altered() -> None:
    documents = stored()
    documents[3]["data"], documents[4]["data"] = [{"v": "1"}], [{"v": "2"}]
    documents[3]["bench"]["seq"], documents[4]["bench"]["seq"] = 4, 3
    assert checked(documents).altered_ranges == "3-4"


def test_what_was_added_to_every_record_alters_none_and_hides_no_change() -> None:
    documents = stored()
    for document in documents:
        document["ingested"] = {"at": "today"}
        document["bench"]["topic"] = "tides"
    documents[77]["metadata"]["id"] = "another"
    sent = documents_of(MADE[:64], "r")
    few = compare_content(sent, {seq: documents[seq] for seq in sent})
    assert (few.added, few.altered) == ({("ingested",), ("bench", "topic")}, 0)
    assert (checked(documents, few).altered, checked(documents, few).altered_ranges) == (1, "77")
    assert checked(documents).altered == COUNT


def test_a_record_is_counted_once_however_often_it_is_stored() -> None:
    documents = stored()
    other = copy.deepcopy(documents[5])
    other["data"] = []
    found = checked([*documents, documents[6], other, other])
    assert (found.compared, found.altered, found.altered_ranges) == (COUNT, 1, "5")


def test_what_the_topic_shows_is_counted_along() -> None:
    few = Content(2, 1, "data gone", compared_seqs=(1, 2), altered_seqs=(2,))
    audit = ChecksumAudit(COUNT, few)
    assert audit.result("none") == Content(2, 1, "data gone", 0, "2", "none")
    audit.add(stored()[2:5])
    assert audit.result() == Content(4, 1, "data gone", 3, "2")


@pytest.mark.parametrize(
    "strange",
    [None, 1, [], {}, {"bench": None}, {"bench": {}}, {"bench": {"seq": "1"}}, {"bench": {"seq": -1}},
     {"bench": {"seq": COUNT}}, {"bench": {"seq": True}}, {"bench": [["seq", 1]]}],
)  # fmt: skip
def test_what_is_no_record_of_the_load_is_passed_by(strange: Any) -> None:
    assert checked([strange]) == Content()


def test_only_records_that_bear_checksums_are_to_be_checked() -> None:
    assert bear_checksums(documents_of(MADE[:3], "r"))
    assert not bear_checksums({})
    assert not bear_checksums({9: {"bench": {"seq": 9}}, **documents_of(MADE[:3], "r")})
    assert not bear_checksums(documents_of([json.dumps({"bench_run": "r", "bench_seq": 1}).encode()], "r", "row"))


def test_of_many_or_large_records_some_are_checked() -> None:
    assert (one_in(20_000, 512), one_in(20_001, 512), one_in(900_000, 512)) == (1, 2, 45)
    assert (one_in(100, 10_000_000), one_in(3, 1e12), one_in(0, 512)) == (34, 3, 1)
